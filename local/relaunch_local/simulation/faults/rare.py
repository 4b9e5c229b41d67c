"""Rarer faults of people and services, some of which AWS's documentation rules out."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from relaunch.core.jobs.job import JobState
from relaunch_local.ecs.engine.model import CapacityProvider, Task
from relaunch_local.simulation.aws.account import SimulatedAccount
from relaunch_local.simulation.aws.template import CLUSTER

_HANGING_PULL_SECONDS = 3 * 3_600.0
# RunTask's documentation has callers retry for five minutes; this is longer.
_LONGEST_DENIAL_SECONDS = 2_400.0


class RareFaults:
    """Injects a fault now and then until the faults stop, and records what the verdict needs."""

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault; `cancel` cancels a job."""
        self.stopped_by_others: set[str] = set()
        """Tasks that somebody stopped outside Relaunch."""
        self.was_closed = False
        """Whether the bucket of the checkpoints was unreadable for a while."""
        self._cancel = cancel
        self._account = account
        self._simulator = account.simulator
        self._random = account.chance.stream("mishaps")
        # Weights, not probabilities: one of them is injected each time.
        self._faults: Mapping[str, tuple[int, Callable[[], str]]] = {
            "bucket-closed": (2, self._close_bucket),
            "pull-hangs": (5, self._hang_pulls),
            "revision-deregistered": (1, self._deregister),
            "run-task-forbidden": (1, self._forbid),
            "scaling-switched-off": (3, self._switch_scaling_off),
            "task-denied-too-long": (6, self._deny),
            "task-forgotten": (3, self._forget),
            "task-stopped-by-others": (2, self._stop_task),
        }
        self._later()

    def end(self) -> None:
        """End every fault."""
        self._account.objects.is_closed = False
        self._account.delayed_ecs.forbid(0.0)
        self._account.delayed_ecs.end_denials()
        self._simulator.set_timing(self._account.scenario.timing)
        for provider in self._providers():
            _set_scaling(provider, "ENABLED")

    def _later(self) -> None:
        self._account.clock.call_later(self._random.uniform(300.0, 2_400.0), self._act)

    def _act(self) -> None:
        chance = self._account.chance
        if chance.is_calm:
            return
        names = list(self._faults)
        name = self._random.choices(names, [self._faults[each][0] for each in names])[0]
        if chance.strikes(name, 2.0):
            target = self._faults[name][1]()
            self._account.trace.line(f"FAULT {name}: {target or 'nothing there'}")
            if not target:
                chance.withdraw()
        self._later()

    def _live_tasks(self) -> list[Task]:
        return [each for each in self._simulator.clusters.get(CLUSTER).tasks.values() if not each.is_stopping]

    def _task(self) -> Task | None:
        tasks = self._live_tasks()
        return self._random.choice(tasks) if tasks else None

    def _providers(self) -> list[CapacityProvider]:
        return list(self._simulator.clusters.get(CLUSTER).providers.values())

    def _close_bucket(self) -> str:
        seconds = self._random.uniform(60.0, 1_200.0)
        objects = self._account.objects
        objects.is_closed = self.was_closed = True
        self._account.clock.call_later(seconds, lambda: setattr(objects, "is_closed", False))
        return f"{seconds:.0f} s"

    def _hang_pulls(self) -> str:
        # A slow registry: a pull that starts meanwhile takes hours.
        seconds, timing = self._random.uniform(120.0, 1_200.0), self._account.scenario.timing
        self._simulator.set_timing(replace(timing, pull=_HANGING_PULL_SECONDS))
        self._account.clock.call_later(seconds, lambda: self._simulator.set_timing(timing))
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
        seconds = self._random.uniform(10.0, 300.0)
        self._account.delayed_ecs.forbid(seconds)
        return f"{seconds:.0f} s"

    def _switch_scaling_off(self) -> str:
        seconds, provider = self._random.uniform(60.0, 900.0), self._random.choice(self._providers())
        _set_scaling(provider, "DISABLED")
        self._account.clock.call_later(seconds, lambda: _set_scaling(provider, "ENABLED"))
        return f"{provider.name} for {seconds:.0f} s"

    def _deny(self) -> str:
        tasks = [each for each in self._live_tasks() if each.arn not in self._account.invariants.denied]
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
        self._account.invariants.deny(arn)
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
        running = {job.attempt.task_arn for job in jobs.values() if job.state is JobState.RUNNING and job.attempt}
        task = self._task()
        if task is None or task.arn not in running:
            return ""
        self._simulator.call("StopTask", {"cluster": CLUSTER, "task": task.arn, "reason": "not today"})
        self.stopped_by_others.add(task.arn)
        return task.arn[-6:]


def _set_scaling(provider: CapacityProvider, status: str) -> None:
    provider.settings = {
        **provider.settings,
        "managedScaling": {**provider.settings.get("managedScaling", {}), "status": status},
    }
