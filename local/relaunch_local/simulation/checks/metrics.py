"""Checks that the metrics are what happened: each change that a function saved is counted by it, once, and no other.

What an invocation has to count is derived from what it saved, with the labels of docs/operations.md. Metrics of what a
sweep finds, or EC2 does not do, are not among them: checks/endings.py, and their own tests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.lifecycle.metrics import MetricDatum
from relaunch.core.machines.machine import Machine, MachineState
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.checks.endings import Endings

# The clocks of two functions differ by up to six seconds.
_CLOCK_SKEW = timedelta(seconds=7)
# Stops that are counted with others, by their kinds; those of a move and of a budget are not counted.
_COUNTED_AS = {
    "starts-nowhere": "not-started",
    "start-refused": "not-started",
    "image": "not-started",
    "machine-fault": "host-lost",
    "sidecar": "user-error",
    "moved": "",
    "over-budget": "",
}
_COUNTED = frozenset(
    {
        *("JobsAccepted", "JobsEnded", "TasksLaunched", "EventToRunTask", "Stops", "InterruptionToRunning"),
        *("OrphanedTasks", "MachinesRequested", "MachinesRefused", "MachineToReady", "MachinesAbandoned"),
        "TrainingsStalled",
    }
)

Name = tuple[str, str]
"""A metric and its label, "" without one."""


@dataclass(slots=True)
class MetricChecks:
    """Implements Metrics, and knows what each invocation saved."""

    _runtime: Runtime
    _check: Callable[[str, bool, str], None]
    _endings: Endings

    def record(self, *metrics: MetricDatum) -> None:
        """Check that each metric counts what was saved before."""
        self._endings.record(*metrics)
        if self._runtime.current is not None:
            for each in metrics:
                self._check_datum(self._runtime.current, each)

    def _check_datum(self, invocation: Invocation, datum: MetricDatum) -> None:
        name = (datum.metric.value, datum.label)
        if name[0] not in _COUNTED:
            return
        duration = invocation.durations.get(name[0])
        count = 1 if duration is not None else round(datum.value)
        message = f"{invocation.function}: {name} {datum.value}, and {invocation.uncounted[name]} were to be"
        self._check("nothing is counted that did not happen", invocation.uncounted[name] >= count, message)
        invocation.uncounted[name] -= count
        if duration is not None:
            self._check_seconds(name[0], datum.value, *duration)

    def message_handled(self) -> None:
        """Check that a function that handled a message, without a call that failed, has counted what it saved."""
        invocation = self._runtime.current
        if invocation is not None and not invocation.failed_calls:
            left = [name for name, count in invocation.uncounted.items() if count > 0]
            self._check("what happened is counted", not left, f"{invocation.function}: {left}")

    def job_saved(self, before: Job | None, job: Job, timeline: Sequence[TimelineEntry]) -> None:
        """Note what the running function has to count of a job that it saved."""
        self._add(_of_job(before, job, timeline))
        attempt = job.attempt
        if attempt is not None and before is not None:
            now = self._runtime.clock.now()
            self._note_seconds("EventToRunTask", job.accepted_at, now)
            if before.interrupted_at is not None and attempt.started_at is not None:
                self._note_seconds("InterruptionToRunning", before.interrupted_at, attempt.started_at)

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Note what the running function has to count of a machine that it saved."""
        if before is not None:
            self._add(_of_machine(before, machine))
            self._note_seconds("MachineToReady", machine.created_at, self._runtime.clock.now())

    def _add(self, names: Iterable[Name]) -> None:
        if self._runtime.current is not None:
            self._runtime.current.uncounted.update(names)

    def _note_seconds(self, metric: str, since: datetime, until: datetime) -> None:
        if self._runtime.current is not None:
            self._runtime.current.durations[metric] = (since, until)

    def _check_seconds(self, metric: str, seconds: float, since: datetime, until: datetime) -> None:
        # The answer to a write may come after a minute, and times of different clocks make no negative duration.
        least = max((until - since - _CLOCK_SKEW - timedelta(minutes=1)).total_seconds(), 0.0)
        most = max((until - since + _CLOCK_SKEW).total_seconds(), 0.0)
        message = f"{metric} is {seconds:.1f}, not {least:.1f} to {most:.1f}"
        self._check("a duration is counted as long as it was", least <= seconds <= most, message)


def _of_job(before: Job | None, job: Job, timeline: Sequence[TimelineEntry]) -> list[Name]:
    names = [] if before is not None else [("JobsAccepted", "")]
    if job.state.is_final and not (before is not None and before.state.is_final):
        names.append(("JobsEnded", job.state.value))
    if before is None:
        return names
    names += [("OrphanedTasks", "") for each in timeline if each.event == "orphaned task"]
    names += [("MachinesRequested", "")] * (job.machines.requested - before.machines.requested)
    is_stalled, was_stalled = (
        each.noted is not None and each.noted.stalled_since is not None for each in (job, before)
    )
    names += [("TrainingsStalled", "")] if is_stalled and not was_stalled else []
    attempt = job.attempt
    known = before.attempt
    if attempt is None:
        return names
    if attempt.task_id is not None and (known is None or known.task_id != attempt.task_id):
        names.append(("TasksLaunched", ""))
        if attempt.number == 1 and not any(each.task_id for each in attempt.closed_placements):
            names.append(("EventToRunTask", ""))
    if attempt.stop is not None and (known is None or known.stop is None):
        label = _COUNTED_AS.get(attempt.stop.kind.value, attempt.stop.kind.value)
        names += [("Stops", label)] if label else []
    has_started = job.state.value == "RUNNING" and before.state.value != "RUNNING"
    if has_started and before.interrupted_at is not None and attempt.started_at is not None:
        names.append(("InterruptionToRunning", ""))
    return names


def _of_machine(before: Machine, machine: Machine) -> list[Name]:
    names = []
    # A request that gives way to another one is none that EC2 refused.
    if machine.refusal is not None and before.refusal is None and machine.timeline[-1].event == "refused":
        names.append(("MachinesRefused", machine.refusal.value))
    if machine.state is MachineState.READY and before.state is not MachineState.READY:
        names.append(("MachineToReady", ""))
    if machine.leave_by is not None and before.leave_by is None:
        names.append(("MachinesAbandoned", ""))
    return names
