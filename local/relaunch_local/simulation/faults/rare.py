"""Rarer faults of people and services, some of which AWS's documentation rules out."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import EcsError
from relaunch_local.ecs.engine.model import CapacityProvider, Task
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.faults.injector import FaultInjector

# The others excuse every job that they meet, and so say little of deadlines.
_KEPT_WITH_CLOSE_DEADLINES = frozenset({"revision-deregistered"})
_HANGING_PULL_SECONDS = 3 * 3_600.0
# RunTask's documentation has callers retry for five minutes; this is longer.
_LONGEST_DENIAL_SECONDS = 2_400.0


class RareFaults(FaultInjector):
    """Injects a fault now and then until the faults stop, and records what the verdict needs."""

    stream = "mishaps"
    pause_seconds = (300.0, 2_400.0)

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault; `cancel` cancels a job."""
        super().__init__(account, cancel)
        self.stopped_by_others: set[str] = set()
        """Tasks that somebody stopped outside Relaunch."""

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        every = {
            "bucket-closed": (2, self._close_bucket),
            "bucket-key-denied": (2, self._deny_key),
            "pull-hangs": (5, self._hang_pulls),
            "revision-deregistered": (1, self._deregister),
            "run-task-forbidden": (1, self._forbid),
            "scaling-switched-off": (3, self._switch_scaling_off),
            "task-denied-too-long": (6, self._deny),
            "task-forgotten": (3, self._forget),
            "task-stopped-by-others": (2, self._stop_task),
        }
        if self._account.scenario.has_close_deadlines:
            return {name: fault for name, fault in every.items() if name in _KEPT_WITH_CLOSE_DEADLINES}
        return every

    def end(self) -> None:
        """End every fault."""
        now = self._account.clock.now()
        facts = self._account.facts
        facts.refused = [(begin, min(end, now)) for begin, end in facts.refused]
        self._open_bucket()
        self._allow_key()
        self._account.delayed_ecs.forbid(0.0)
        self._note_granted()
        self._account.delayed_ecs.end_denials()
        self._simulator.set_timing(self._account.scenario.timing)
        for provider in self._providers():
            _set_scaling(provider, "ENABLED")

    def _live_tasks(self) -> list[Task]:
        return [each for each in self._simulator.clusters.get(CLUSTER).tasks.values() if not each.is_stopping]

    def _task(self) -> Task | None:
        tasks = self._live_tasks()
        return self._random.choice(tasks) if tasks else None

    def _providers(self) -> list[CapacityProvider]:
        return list(self._simulator.clusters.get(CLUSTER).providers.values())

    def _close_bucket(self) -> str:
        self._account.objects.closed_since = self._account.clock.now()
        return self._until_granted(self._open_bucket)

    def _open_bucket(self) -> None:
        self._account.objects.closed_since = None

    def _deny_key(self) -> str:
        self._account.objects.is_locked = True
        return self._until_granted(self._allow_key)

    def _allow_key(self) -> None:
        self._account.objects.is_locked = False

    def _until_granted(self, grant: Callable[[], None]) -> str:
        # Somebody notices at once, or after lunch.
        longest_seconds = 1_200.0 if self._random.random() < 0.7 else 10_800.0
        seconds = self._random.uniform(60.0, longest_seconds)
        self._note_refused(seconds)
        self._account.clock.call_later(seconds, grant)
        return f"{seconds:.0f} s"

    def _hang_pulls(self) -> str:
        # A slow registry: a pull that starts meanwhile takes hours.
        seconds = self._random.uniform(120.0, 1_200.0)
        pull = self._account.scenario.timing.pull
        self._change_timing(pull=_HANGING_PULL_SECONDS)
        self._account.clock.call_later(seconds, lambda: self._change_timing(pull=pull))
        return f"{seconds:.0f} s"

    def _deregister(self) -> str:
        known = self._simulator.call("ListTaskDefinitions", {})["taskDefinitionArns"]
        own = {each.task_definition for each in self._account.scenario.definitions}
        # A definition whose family has no revision is refused when its job is submitted, which is reported at once.
        arns = [arn for arn in known if arn.rpartition("/")[2].partition(":")[0] not in own or arn.endswith(":2")]
        if not arns:
            return ""
        arn = str(self._random.choice(arns))
        self._simulator.call("DeregisterTaskDefinition", {"taskDefinition": arn})
        return arn

    def _forbid(self) -> str:
        # A deployment whose change IAM has not seen everywhere yet, or a permission that somebody took away.
        longest_seconds = 300.0 if self._random.random() < 0.5 else 10_800.0
        seconds = self._random.uniform(10.0, longest_seconds)
        self._account.delayed_ecs.forbid(seconds)
        self._note_refused(seconds)
        self._account.clock.call_later(seconds, self._note_granted)
        return f"{seconds:.0f} s"

    def _note_refused(self, seconds: float) -> None:
        now = self._account.clock.now()
        self._account.facts.refused.append((now, now + timedelta(seconds=seconds)))

    def _note_granted(self) -> None:
        if not self._account.delayed_ecs.is_forbidden():
            self._account.refusals.granted(self._account.delayed_ecs.refused_families)

    def _switch_scaling_off(self) -> str:
        providers = self._providers()
        if not providers:
            return ""
        seconds = self._random.uniform(60.0, 900.0)
        provider = self._random.choice(providers)
        _set_scaling(provider, "DISABLED")
        self._account.clock.call_later(seconds, lambda: _set_scaling(provider, "ENABLED"))
        return f"{provider.name} for {seconds:.0f} s"

    def _deny(self) -> str:
        tasks = [each for each in self._live_tasks() if each.arn not in self._account.invariants.hidden]
        if not tasks:
            return ""
        left = self._account.trainings.seconds_left
        # A task that ends before ECS shows it again is not orphaned: mostly choose the one with the most work left.
        arn = (
            max((each.arn for each in tasks), key=left)
            if self._random.random() < 0.8
            else self._random.choice(tasks).arn
        )
        self._account.delayed_ecs.deny(arn, _LONGEST_DENIAL_SECONDS)
        self._account.invariants.hide(arn)
        self._recall(arn)
        self._sometimes_cancel()
        return arn[-6:]

    def _recall(self, arn: str) -> None:
        """Show a task again soon after it was given up: one that ends before that is not orphaned."""
        if not self._account.delayed_ecs.is_denied(arn):
            return
        if any(arn in stops for stops in self._account.invariants.stops.values()):
            self._account.delayed_ecs.deny(arn, self._random.uniform(5.0, 200.0))
        else:
            self._account.clock.call_later(60.0, lambda: self._recall(arn))

    def _forget(self) -> str:
        task = self._task()
        if task is None:
            return ""
        self._account.delayed_ecs.forgotten.add(task.arn)
        self._sometimes_cancel()
        return task.arn[-6:]

    def _sometimes_cancel(self) -> None:
        if self._random.random() < 0.3:
            self._account.clock.call_later(self._random.uniform(0.0, 900.0), self._cancel)

    def _stop_task(self) -> str:
        jobs = self._account.invariants.jobs
        running = {job.attempt.task_id for job in jobs.values() if job.state is JobState.RUNNING and job.attempt}
        task = self._task()
        if task is None or task.arn not in running:
            return ""
        try:
            self._simulator.call("StopTask", {"cluster": CLUSTER, "task": task.arn, "reason": "not today"})
        except EcsError:
            return ""  # throttled, and not tried again
        self.stopped_by_others.add(task.arn)
        return task.arn[-6:]


def _set_scaling(provider: CapacityProvider, status: str) -> None:
    provider.settings = {
        **provider.settings,
        "managedScaling": {**provider.settings.get("managedScaling", {}), "status": status},
    }
