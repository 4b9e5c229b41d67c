"""What a stack that sends notices has besides: the rule of its own events, the receivers, the token of GitHub.

What send_notices draws, and what is drawn for its queue, comes from streams of its own: a seed is the same without
receivers.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses
from relaunch.adapters.aws.receiver_parameters import SsmReceivers
from relaunch.adapters.aws.secret_text import SecretText
from relaunch.adapters.github.commit_statuses import GithubCommitStatuses, WithCommitStatuses
from relaunch.adapters.notices.receivers import ReceiverMaker, StoredReceivers
from relaunch.ports.commit_statuses import CommitStatusStore
from relaunch.ports.notices import NoReceivers, ReceiverSource
from relaunch_local.ecs import Clock
from relaunch_local.in_memory.commit_statuses import InMemoryCommitStatuses
from relaunch_local.simulation.authorization import AuthorizedClient, AuthorizedStore, FunctionAuthorization
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.eventbridge import EventBus
from relaunch_local.simulation.aws.outages import Outages
from relaunch_local.simulation.aws.runtime import FunctionClock, Runtime
from relaunch_local.simulation.aws.sqs import Queues
from relaunch_local.simulation.aws.table import CalledStore
from relaunch_local.simulation.aws.template import ACCOUNT, NOTICES_QUEUES, STACK, Stack
from relaunch_local.simulation.chance import Chance, ChanceApart
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.job_events import JobEventChecks
from relaunch_local.simulation.checks.trace import Trace
from relaunch_local.simulation.notice_plans import STATUS_TOKEN, NoticePlan, Service, StatusPlan
from relaunch_local.simulation.notices.checks import SENDER, NoticeChecks
from relaunch_local.simulation.notices.github import SimulatedStatuses
from relaunch_local.simulation.notices.services import Services
from relaunch_local.simulation.notices.status_checks import CommitStatusChecks
from relaunch_local.simulation.scenario import Scenario

if TYPE_CHECKING:
    from relaunch_local.simulation.aws.emulated_table import EmulatedTable

_PATH = f"/relaunch/{STACK}/notices"
# A notice is tried for a day, and its event may be an hour late.
_LONGEST_SECONDS = 30 * 3_600.0
_STEP_SECONDS = 600.0
_DEATHS = 7


class Account(Protocol):
    """What the notices of a run need of its account."""

    clock: Clock
    scenario: Scenario
    chance: Chance
    runtime: Runtime
    calls: Calls
    outages: Outages
    queues: Queues
    stack: Stack
    trace: Trace
    facts: AccountFacts
    invariants: Invariants
    job_events: JobEventChecks
    authorization: FunctionAuthorization
    emulated: "EmulatedTable | None"

    def per_container(self, make: Callable[[], Any]) -> Any:
        """Return an object that each container of a function has."""


class Notices:
    """The notices of a run, none in a seed without a plan of them."""

    def __init__(self, account: Account) -> None:
        """Make the receivers of the account's scenario."""
        self._account = account
        self.source: ReceiverSource = NoReceivers()
        self.checks: NoticeChecks | None = None
        self._statuses: CommitStatusChecks | None = None
        plan = account.scenario.notices
        if plan is None:
            return
        chance = account.chance
        runtime = account.runtime
        chance.apart = lambda: "notices/" if runtime.current and runtime.current.function == SENDER else ""
        rules = [each for each in account.stack.rules if each.queue in NOTICES_QUEUES]
        self._bus = EventBus(
            tuple(rules), account.queues, account.clock, ChanceApart(chance, "notices"), account.outages
        )
        account.job_events.on_taken = self._event_taken
        self.checks = NoticeChecks(
            account.clock,
            account.invariants.check,
            account.invariants.jobs,
            {each.name: each for each in account.scenario.every_definition},
            account.calls.failed_at,
            account.facts.outage_time,
        )
        self.source = self._make_source(plan, self.checks)

    def _make_source(self, plan: NoticePlan, checks: NoticeChecks) -> ReceiverSource:
        account = self._account
        services = Services(plan, account.clock, account.chance, account.runtime, checks)
        topics = [each.topic_arn for each in plan.receivers if each.service is Service.SNS]
        clock = FunctionClock(account.runtime)
        maker = ReceiverMaker(plan.hosts, topics, self._client("sns", services), clock, services.make_sender)
        parameters = SsmReceivers(self._client("ssm", _Parameters(services.parameters())), _PATH)
        stored = account.per_container(lambda: StoredReceivers(parameters, maker, clock, account.trace))
        return stored if plan.statuses is None else WithCommitStatuses(stored, self._make_statuses(plan.statuses))

    def _make_statuses(self, plan: StatusPlan) -> GithubCommitStatuses:
        account = self._account
        token = SecretText(self._client("secretsmanager", _Secrets()), STATUS_TOKEN)
        api = SimulatedStatuses(plan, account.clock, account.chance, account.runtime, token.read)
        api.failed_at = account.calls.failed_at
        account.trace.on_held = self._held
        self._statuses = api.checks = CommitStatusChecks(account.clock, account.invariants.check, api.github, plan)
        return GithubCommitStatuses(api, self._make_store(), FunctionClock(account.runtime))

    def _held(self, job_id: str) -> None:
        """Note an alert that a repository lacks the right to have statuses."""
        repository = self._account.invariants.jobs[job_id].trigger.environment.get("RELAUNCH_GIT_REPOSITORY", "")
        failed_at = self._account.calls.failed_at
        if self._statuses is not None:
            self._statuses.said(
                repository, (at for name, found in failed_at.items() if name.startswith("dynamodb:") for at in found)
            )

    def _make_store(self) -> CommitStatusStore:
        account = self._account
        if account.emulated is not None:
            return DynamoDbCommitStatuses(account.emulated.table)
        called: Any = CalledStore(InMemoryCommitStatuses(), account.calls)
        store: Any = AuthorizedStore("commit_statuses", called, account.authorization)
        return store  # type: ignore[no-any-return]  # it has each method of the port

    def _client(self, service: str, model: Any) -> Any:
        authorized = AuthorizedClient(service, model, self._account.authorization)
        return CallingClient(service, authorized, self._account.calls)

    def _event_taken(self, entry: Mapping[str, Any]) -> None:
        detail = json.loads(entry["Detail"])
        if self.checks is not None:
            self.checks.event_taken(detail)
        names = {"source": entry["Source"], "detail-type": entry["DetailType"], "account": ACCOUNT}
        self._bus.publish({**names, "detail": detail})

    def is_left(self) -> bool:
        """Return whether an event is still to be looked at."""
        queues = self._account.queues.queues
        return any(queues[name].open_bodies for name in NOTICES_QUEUES if name in queues)

    def check_end(self) -> None:
        """Wait until every event is settled, and check what the receivers have."""
        plan = self._account.scenario.notices
        if plan is None or self.checks is None:
            return
        clock = self._account.clock
        until = clock.now().timestamp() + _LONGEST_SECONDS
        while self.is_left() and clock.now().timestamp() < until:
            clock.advance(_STEP_SECONDS)
        check = self._account.invariants.check
        check("every event is settled for every receiver in the end", not self.is_left(), "notices are left")
        lost = self._lost()
        self.checks.check_end(plan.receivers, lost)
        if self._statuses is not None:
            self._statuses.check_end(self.checks.stories, lost)

    def _lost(self) -> frozenset[str]:
        """Return the IDs of the events whose message functions died of as often as they may."""
        dead = (each for each in self._account.queues.dead_letters if each.queue in NOTICES_QUEUES)
        return frozenset(json.loads(each.body)["detail"]["id"] for each in dead if each.deaths >= _DEATHS)


class _Parameters:
    """Systems Manager, with a page of every receiver."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get_parameters_by_path(self, **parameters: Any) -> Any:
        """GetParametersByPath."""
        path = parameters["Path"]
        return {"Parameters": [{"Name": f"{path}/{name}", "Value": text} for name, text in self._values.items()]}


class _Secrets:
    """Secrets Manager, with the token for statuses."""

    def get_secret_value(self, **_: Any) -> Any:
        """GetSecretValue."""
        return {"SecretString": "github_pat_statuses"}
