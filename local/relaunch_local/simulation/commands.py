"""People at the command and at job_api beside everything else: plans, `apply`, and a look at dead letters.

A command makes its calls with the identity of its user, whose permissions are tested elsewhere; its calls fail as those
of functions do, and its process may be killed. Whoever ran it runs it again until it succeeds.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from relaunch.adapters.aws.ec2.placement_scores import Ec2ZoneScores
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices
from relaunch.adapters.aws.sqs.dead_letters import SqsDeadLetters
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings
from relaunch.core.definitions.definition import JobDefinition, S3Trigger
from relaunch.core.messages.dead_letter import DeadLetterQueue
from relaunch.entrypoints.job_api import answer_request
from relaunch.ports import Dependencies, PortError
from relaunch.usecases import count_waiting_jobs as counting
from relaunch.usecases import dead_letters as looking
from relaunch.usecases import plan_jobs as planning
from relaunch_local.ecs import InProcessClient
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.applying import Applying
from relaunch_local.simulation.authorization import COMMAND
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.dead_letter_sqs import DeadLetterSqs
from relaunch_local.simulation.aws.fleet import EC2_ERRORS
from relaunch_local.simulation.aws.pages import in_pages
from relaunch_local.simulation.aws.runtime import Invocation, KilledError
from relaunch_local.simulation.aws.template import NOTICES_QUEUES, REGION
from relaunch_local.simulation.region import ModelEc2
from relaunch_local.simulation.workload import Workload

_MOST = 10
# Of the plans: how many are for what the stack has.
_OWN_SHARE = 0.5
_AGAIN_SECONDS = (5.0, 120.0)
# Another one may have changed the same meanwhile, and that is no fault of a call.
_MOST_TRIES = 4


class Commands:
    """Runs some commands while there are faults."""

    def __init__(self, account: SimulatedAccount, workload: Workload, applying: Applying) -> None:
        """Schedule the commands."""
        self._account = account
        self._applying = applying
        self._workload = workload
        self._dice = account.chance.stream("commands")
        self._numbers = itertools.count(1)
        self._in_vain = Counter[str]()
        """How often each command has failed in a row although no call of it did."""
        if not account.scenario.has_commands:
            return
        every: Sequence[Callable[[], None]] = (
            self._ask_for_plan,
            *(self._plan, self._plan),
            *(self._apply, self._apply),
            self._explain,
            *(self._look, self._look, self._look),
        )
        for _ in range(self._dice.randint(1, _MOST)):
            seconds = self._dice.uniform(0.0, 1.0) * account.scenario.chaos_seconds
            account.clock.call_later(seconds, self._dice.choice(every))

    def _ask_for_plan(self) -> None:
        """Ask job_api where a job would run now."""
        account = self._account
        definition = self._dice.choice(account.scenario.every_definition)
        inputs = {"batch-size": "8"} if definition.inputs else {}
        request = {"action": "plan", "definition": definition.name, "inputs": inputs}

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                self._workload.expect("job_api", error)
                self._again(self._ask_for_plan)
            else:
                account.invariants.check("a plan that is asked for is given", "plan" in answer, f"{request}: {answer}")

        account.lambdas.call("job_api", lambda: answer_request(request, "", account.deps), on_end, "plan")

    def _plan(self) -> None:
        """Run `relaunch plan`, for what the stack has or for all types of the region."""
        is_own = self._dice.random() < _OWN_SHARE
        deps = self._account.deps if is_own else self._regional_deps()

        def plan() -> None:
            plans = planning.plan_jobs(deps.definitions.list_definitions(), deps)
            for each in plans:
                why = [one.rejection.reason for one in (each.selection.rejected if each.selection else ())]
                mute = [text for text in (*each.notices, *why) if not text or "None" in text]
                message = f"{each.definition.name}: {mute[:3]}"
                self._account.invariants.check("a plan says why with all that it says", not mute, message)
            for each in plans if is_own else ():
                revision = each.revision.arn if each.revision is not None else ""
                self._account.choices.check_plan(each.definition, revision, each.selection, each.at)

        self._run("plan", plan, self._plan)

    def _regional_deps(self) -> Dependencies:
        account = self._account
        simulated = InProcessClient(account.simulator, "ec2", validate=False)
        model = ModelEc2(account.scenario, simulated, account.authorization, account.chance.stream("zone-scores"))
        ec2: Any = CallingClient("ec2", in_pages(model, account.scenario.page_size), account.calls, EC2_ERRORS)
        clock = account.deps.clock
        snapshot = CurrentSnapshot(account.snapshots.store, REGION, account.trace)
        return replace(
            account.deps,
            offerings=CurrentRegionalOfferings(snapshot, Ec2SpotPrices(ec2, clock), account.trace),
            zone_scores=Ec2ZoneScores(ec2, REGION, clock, account.trace),
        )

    def _explain(self) -> None:
        """Count what waits, as `relaunch explain` does."""
        definition = self._dice.choice(self._account.scenario.definitions)
        self._run("explain", lambda: counting.count_waiting_jobs(definition, self._account.deps), self._explain)

    def _apply(self) -> None:
        """Run `relaunch apply`: one definition watches one more bucket, to which nobody uploads."""
        changed = self._dice.choice(self._account.scenario.definitions).name
        bucket = S3Trigger("acme-more", prefix=f"{changed}/")

        def watch(definition: JobDefinition) -> JobDefinition:
            is_there = bucket in definition.triggers
            return definition if is_there else replace(definition, triggers=(*definition.triggers, bucket))

        self._applying.change(changed, watch)
        self._run("apply", self._applying.register, self._apply)

    def _look(self) -> None:
        """List the dead letters, show one, and redrive or delete it."""
        action = self._dice.choice(("redrive", "redrive", "drop", "redrive all"))
        self._run("dead-letters", lambda: self._handle_dead_letters(action), self._look)

    def _handle_dead_letters(self, action: str) -> None:
        account = self._account
        # A call for the dead letters of notices would change what others draw.
        queues_of_jobs = {name: each for name, each in account.stack.queues.items() if name not in NOTICES_QUEUES}
        names = [name for name, each in queues_of_jobs.items() if each.is_dead_letter_queue]
        sources = {each.dead_letter_queue: name for name, each in account.stack.queues.items()}
        queues = [DeadLetterQueue(name, name, sources.get(name)) for name in names]
        model = DeadLetterSqs(account.queues, account.clock, self._workload.deleted_dead_letters.append)
        client: Any = CallingClient("sqs", model, account.calls)
        dead_letters = SqsDeadLetters(client, queues)
        found = [each for listing in looking.list_dead_letters(dead_letters) for each in listing.messages]
        if action == "redrive all":
            looking.redrive_all(dead_letters, "", account.clock.now(), lambda _message: None)
        elif found:
            message = looking.show_dead_letter(found[0].message_id, dead_letters)
            if action == "drop" or message.queue.source_url is None:
                looking.drop_dead_letter(message, dead_letters)
            else:
                looking.redrive_dead_letter(message.message_id, dead_letters)

    def _run(self, what: str, body: Callable[[], object], again: Callable[[], None]) -> None:
        """Run a command, and later another one if it fails."""
        account = self._account
        began_at = account.clock.now()

        def on_end(_answer: Any, error: BaseException | None) -> None:
            has_failed = any(times[-1] >= began_at for times in account.calls.failed_at.values() if times)
            is_in_vain = error is not None and not (has_failed or isinstance(error, KilledError))
            self._in_vain[what] = self._in_vain[what] + 1 if is_in_vain else 0
            is_answered = self._in_vain[what] < _MOST_TRIES
            message = f"relaunch {what}: {self._in_vain[what]} times: {error!r}"
            account.invariants.check("who repeats a command gets what it is for", is_answered, message)
            if error is None:
                return
            if not isinstance(error, KilledError | PortError):
                account.invariants.unhandled(f"relaunch {what}", error)
            self._again(again)

        account.runtime.start(Invocation(-next(self._numbers), COMMAND), body, on_end)

    def _again(self, action: Callable[[], None]) -> None:
        if not self._account.chance.is_calm:
            self._account.clock.call_later(self._dice.uniform(*_AGAIN_SECONDS), action)
