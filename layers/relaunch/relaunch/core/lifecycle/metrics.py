"""The metrics of Relaunch, and the data that a decision records.

The dashboard and alarms of template.yaml and docs/operations.md name these metrics; tests check that they agree. Names
of jobs, definitions and instances are not dimensions: they have too many values.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.long_waits import WAITS_LONG
from relaunch.core.lifecycle.moves import WARNING_TO_LAST_MOMENT
from relaunch.core.lifecycle.orphans import ORPHANED
from relaunch.core.lifecycle.stalls import STALLED
from relaunch.core.lifecycle.stopping import STOP_TIMEOUT
from relaunch.core.lifecycle.unconfirmed_stops import UNCONFIRMED
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.ending import NOT_TERMINATED
from relaunch.core.machines.living import NOT_READY
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.requesting import REFUSED
from relaunch.core.records import dataclass

NAMESPACE = "Relaunch"
"""The namespace in CloudWatch."""


class Unit(StrEnum):
    """Units of CloudWatch."""

    COUNT = "Count"
    SECONDS = "Seconds"


class Metric(StrEnum):
    """The name of a metric."""

    JOBS_ACCEPTED = "JobsAccepted"
    JOBS_REJECTED = "JobsRejected"
    EVENTS_IGNORED = "EventsIgnored"
    EVENTS_POSTPONED = "EventsPostponed"
    EVENTS_GIVEN_UP = "EventsGivenUp"
    NOTICES_GIVEN_UP = "NoticesGivenUp"
    TASKS_LAUNCHED = "TasksLaunched"
    EVENT_TO_RUN_TASK = "EventToRunTask"
    WARNING_TO_STOP = "WarningToStop"
    INTERRUPTION_TO_RUNNING = "InterruptionToRunning"
    JOBS_ENDED = "JobsEnded"
    STOPS = "Stops"
    STOPS_UNCONFIRMED = "StopsUnconfirmed"
    ORPHANED_TASKS = "OrphanedTasks"
    UNKNOWN_TASKS = "UnknownTasks"
    IDLE_MACHINES = "IdleMachines"
    TASKS_UNREACHABLE = "TasksUnreachable"
    JOBS_OVERDUE = "JobsOverdue"
    JOBS_REFUSED = "JobsRefused"
    TRAININGS_STALLED = "TrainingsStalled"
    PROGRESS_LEFT_OUT = "ProgressLeftOut"
    CLUSTERS_UNREADABLE = "ClustersUnreadable"
    MESSAGES_FAILED = "MessagesFailed"
    MESSAGE_RETRY_TIME = "MessageRetryTime"
    DEAD_LETTERS = "DeadLetters"
    REFRESHES_FAILED = "RefreshesFailed"
    MACHINES_REQUESTED = "MachinesRequested"
    MACHINES_REFUSED = "MachinesRefused"
    MACHINE_TO_READY = "MachineToReady"
    MACHINES_NOT_READY = "MachinesNotReady"
    MACHINES_ABANDONED = "MachinesAbandoned"
    MACHINES_LEAKED = "MachinesLeaked"
    TERMINATIONS_REFUSED = "TerminationsRefused"
    MACHINE_ALERTS = "MachineAlerts"


@dataclass(frozen=True, slots=True)
class MetricKind:
    """The unit of a metric, and the name of its dimension; empty if it has none."""

    unit: Unit = Unit.COUNT
    dimension: str = ""


METRICS: Mapping[Metric, MetricKind] = {
    Metric.JOBS_ACCEPTED: MetricKind(),
    Metric.JOBS_REJECTED: MetricKind(),
    Metric.EVENTS_IGNORED: MetricKind(),
    Metric.EVENTS_POSTPONED: MetricKind(),
    Metric.EVENTS_GIVEN_UP: MetricKind(),
    Metric.NOTICES_GIVEN_UP: MetricKind(),
    Metric.TASKS_LAUNCHED: MetricKind(),
    Metric.EVENT_TO_RUN_TASK: MetricKind(Unit.SECONDS),
    Metric.WARNING_TO_STOP: MetricKind(Unit.SECONDS),
    Metric.INTERRUPTION_TO_RUNNING: MetricKind(Unit.SECONDS),
    Metric.JOBS_ENDED: MetricKind(dimension="state"),
    Metric.STOPS: MetricKind(dimension="kind"),
    Metric.STOPS_UNCONFIRMED: MetricKind(),
    Metric.ORPHANED_TASKS: MetricKind(),
    Metric.UNKNOWN_TASKS: MetricKind(),
    Metric.IDLE_MACHINES: MetricKind(),
    Metric.TASKS_UNREACHABLE: MetricKind(),
    Metric.JOBS_OVERDUE: MetricKind(),
    Metric.JOBS_REFUSED: MetricKind(),
    Metric.TRAININGS_STALLED: MetricKind(),
    Metric.PROGRESS_LEFT_OUT: MetricKind(),
    Metric.CLUSTERS_UNREADABLE: MetricKind(),
    Metric.MESSAGES_FAILED: MetricKind(dimension="queue"),
    Metric.MESSAGE_RETRY_TIME: MetricKind(Unit.SECONDS),
    Metric.DEAD_LETTERS: MetricKind(),
    Metric.REFRESHES_FAILED: MetricKind(),
    Metric.MACHINES_REQUESTED: MetricKind(),
    Metric.MACHINES_REFUSED: MetricKind(dimension="consequence"),
    Metric.MACHINE_TO_READY: MetricKind(Unit.SECONDS),
    Metric.MACHINES_NOT_READY: MetricKind(),
    Metric.MACHINES_ABANDONED: MetricKind(),
    Metric.MACHINES_LEAKED: MetricKind(),
    Metric.TERMINATIONS_REFUSED: MetricKind(),
    Metric.MACHINE_ALERTS: MetricKind(),
}


COUNTED_AS: Mapping[StopKind, StopKind] = {
    StopKind.STARTS_NOWHERE: StopKind.NOT_STARTED,
    StopKind.START_REFUSED: StopKind.NOT_STARTED,
    StopKind.IMAGE: StopKind.NOT_STARTED,
    StopKind.MACHINE_FAULT: StopKind.HOST_LOST,
    StopKind.SIDECAR: StopKind.USER_ERROR,
}
"""The stops that have no label of their own, which would be a metric to pay for."""


@dataclass(frozen=True, slots=True)
class MetricDatum:
    """One value of a metric; `label` is the value of its dimension, if it has one."""

    metric: Metric
    value: float = 1.0
    label: str = ""

    @property
    def unit(self) -> Unit:
        """Return the unit of the value."""
        return METRICS[self.metric].unit

    @property
    def dimensions(self) -> Mapping[str, str]:
        """Return the names and values of the dimensions: one or none."""
        dimension = METRICS[self.metric].dimension
        return {dimension: self.label} if dimension else {}


# A dashboard has 50 metrics for free, and the stop of a job says what its metric does not.


def acceptance_metrics(job: Job) -> tuple[MetricDatum, ...]:
    """Return the data of a new job, which may have failed at once."""
    return (MetricDatum(Metric.JOBS_ACCEPTED), *_ending(job))


def decision_metrics(before: Job, decision: Decision, now: datetime) -> tuple[MetricDatum, ...]:
    """Return the data of a saved decision."""
    after = decision.job
    metrics = [*_launch(before, after, now), *_stop(before, after), *_running_again(before, after)]
    orphans = sum(entry.event == ORPHANED for entry in decision.timeline)
    if orphans:
        metrics.append(MetricDatum(Metric.ORPHANED_TASKS, orphans))
    if any(entry.event == UNCONFIRMED for entry in decision.timeline):
        metrics.append(MetricDatum(Metric.STOPS_UNCONFIRMED))
    if after.machines.requested > before.machines.requested:
        metrics.append(MetricDatum(Metric.MACHINES_REQUESTED))
    if any(entry.event == STALLED for entry in decision.timeline):
        metrics.append(MetricDatum(Metric.TRAININGS_STALLED))
    is_told = any(entry.event == WAITS_LONG for entry in decision.timeline)
    if is_told or (after.refusals and after.refusals != before.refusals):
        metrics.append(MetricDatum(Metric.JOBS_REFUSED))
    if not before.state.is_final:
        metrics += _ending(after)
    return tuple(metrics)


def machine_metrics(before: Machine, decision: MachineDecision, now: datetime) -> tuple[MetricDatum, ...]:
    """Return the data of a saved decision about a machine.

    Each comes at most once for a machine, but that its instance does not end: that is reported again while it lives.
    """
    after = decision.machine
    event = after.timeline[-1].event if after.timeline[-1:] != before.timeline[-1:] else ""
    metrics: list[MetricDatum] = []
    if event == REFUSED and after.refusal is not None:
        metrics.append(MetricDatum(Metric.MACHINES_REFUSED, label=after.refusal.value))
    if after.state is MachineState.READY and before.state is not MachineState.READY:
        metrics.append(MetricDatum(Metric.MACHINE_TO_READY, _seconds(after.created_at, now)))
    if event == NOT_READY:
        metrics.append(MetricDatum(Metric.MACHINES_NOT_READY))
    if after.leave_by is not None and before.leave_by is None:
        metrics.append(MetricDatum(Metric.MACHINES_ABANDONED))
    if event == NOT_TERMINATED:
        metrics.append(MetricDatum(Metric.TERMINATIONS_REFUSED))
    if event == NOT_TERMINATED or (after.is_alert and not before.is_alert):
        metrics.append(MetricDatum(Metric.MACHINE_ALERTS))
    return tuple(metrics)


def leak_metrics(found: int) -> tuple[MetricDatum, ...]:
    """Return the data of a sweep that found so many instances without a machine."""
    if not found:
        return ()
    return (MetricDatum(Metric.MACHINES_LEAKED, found), MetricDatum(Metric.MACHINE_ALERTS, found))


def stop_metrics(job: Job, effect: StopTask, now: datetime) -> tuple[MetricDatum, ...]:
    """Return the time from the interruption warning to StopTask.

    Empty for a repeated stop, and for one with another reason.
    """
    attempt = job.attempt
    if attempt is None or attempt.warned_at is None or attempt.intent is None:
        return ()
    is_answer = attempt.intent.kind is IntentKind.INTERRUPTION and attempt.task_id == effect.task_id
    if not is_answer or now - attempt.intent.at >= STOP_TIMEOUT:
        return ()
    # As if every task that trained on had the same stop time-out: so much of the warning must be left, whatever it is.
    stop_by = attempt.handover.stop_by if attempt.handover is not None else None
    since = attempt.warned_at if stop_by is None else stop_by - WARNING_TO_LAST_MOMENT
    return (MetricDatum(Metric.WARNING_TO_STOP, _seconds(since, now)),)


def _launch(before: Job, after: Job, now: datetime) -> list[MetricDatum]:
    attempt = after.attempt
    if attempt is None or attempt.task_id is None:
        return []
    if before.attempt is not None and before.attempt.task_id == attempt.task_id:
        return []
    is_first = attempt.number == 1 and not any(each.task_id for each in attempt.closed_placements)
    first = [MetricDatum(Metric.EVENT_TO_RUN_TASK, _seconds(after.accepted_at, now))] if is_first else []
    return [MetricDatum(Metric.TASKS_LAUNCHED), *first]


def _stop(before: Job, after: Job) -> list[MetricDatum]:
    stop = after.attempt.stop if after.attempt else None
    was_stopped = before.attempt is not None and before.attempt.stop is not None
    if stop is None or was_stopped or stop.kind in {StopKind.MOVED, StopKind.OVER_BUDGET}:
        # Neither is a stop that anybody is to look at.
        return []
    # What several instances together tell of the job is no other stop of a task; each label is a metric to pay for.
    kind = COUNTED_AS.get(stop.kind, stop.kind)
    return [MetricDatum(Metric.STOPS, label=kind.value)]


def _running_again(before: Job, after: Job) -> list[MetricDatum]:
    attempt = after.attempt
    is_start = after.state is JobState.RUNNING and before.state is not JobState.RUNNING
    if not is_start or before.interrupted_at is None or attempt is None or attempt.started_at is None:
        return []
    return [MetricDatum(Metric.INTERRUPTION_TO_RUNNING, _seconds(before.interrupted_at, attempt.started_at))]


def _ending(job: Job) -> list[MetricDatum]:
    return [MetricDatum(Metric.JOBS_ENDED, label=job.state.value)] if job.state.is_final else []


def _seconds(since: datetime, until: datetime) -> float:
    """Return the seconds between two times, which may be from different clocks; never negative."""
    return max((until - since).total_seconds(), 0.0)
