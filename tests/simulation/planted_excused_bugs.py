"""Bugs that a check would excuse if it believed what the application records of itself, or any injected fault."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.job import Job, Stop, StopKind
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle import orphans, running, stopping
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.running import UNKNOWN_TASK
from relaunch.core.machines import living, table
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.events import ClaimReleased, MachineEvent
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine
from relaunch.usecases import advance_job as advancing
from relaunch.usecases import sweep_cluster as sweeping
from relaunch_local.simulation.faults.rare import RareFaults
from simulation.broken_parts import accounted, action, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, writes


def _many_hidden() -> AbstractContextManager[object]:
    """Let ECS hide tasks for longer than it documents, as often as there are rare faults."""
    return patched(RareFaults, _weighted_faults=lambda self: {"task-denied-too-long": (1, self._deny)})


def _warned_by_nobody(_before: Job, decision: Decision) -> Decision:
    attempt = decision.job.attempt
    if attempt is None or attempt.warned_at is not None or decision.job.state is not JobState.RUNNING:
        return decision
    return replace(decision, job=replace(decision.job, attempt=replace(attempt, warned_at=attempt.started_at)))


def _warning_dropped(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda job, event: (job, original(job, event)[1])


def _of_an_unknown_task(original: Callable[..., Stop]) -> Callable[..., Stop]:
    return lambda *given: replace(original(*given), stopped_reason=UNKNOWN_TASK)


def _failures_are_interruptions(original: Callable[..., Stop]) -> Callable[..., Stop]:
    def classify(*given: Any) -> Stop:
        stop = original(*given)
        return replace(stop, kind=StopKind.INTERRUPTION) if stop.kind is StopKind.USER_ERROR else stop

    return classify


def _without_prices(_before: Job, decision: Decision) -> Decision:
    attempt = decision.job.attempt
    if attempt is None:
        return decision
    placement = replace(attempt.placement, usd_per_hour_by_zone={}, price_usd_per_hour=0.0)
    return replace(decision, job=replace(decision.job, attempt=replace(attempt, placement=placement)))


def _noted_and_not_stopped(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
    decided = orphans.stop_orphaned_task(job, event, now, limits)  # type: ignore[arg-type]  # of the rows for TaskSeen
    return replace(decided, job=replace(decided.job, pending=job.pending))


def _orphans_postponed(_target: object, suspects: Any, _sweep: object, deps: Any) -> None:
    for task in suspects:
        deps.log.decided("postponed", job_id=task.owner.job_id, reason="sweeping the cluster: another time")


def _when_ready(change: Callable[[Machine, datetime], Machine]) -> AbstractContextManager[object]:
    def wake(machine: Machine, event: MachineEvent, now: datetime, limits: MachineLimits) -> MachineDecision:
        return living.wake_ready(change(machine, now), event, now, limits)  # type: ignore[arg-type]  # of its row

    rows = (replace(row, action=wake) if row.action.__name__ == "wake_ready" else row for row in table.TABLE)
    return patched(table, TABLE=tuple(rows))


def _idle_anew(machine: Machine, now: datetime) -> Machine:
    return replace(machine, idle_since=now) if machine.idle_since is not None else machine


def _warned_anew(machine: Machine, now: datetime) -> Machine:
    return replace(machine, warned_at=machine.warned_at or now - timedelta(hours=1))


def _unusable(job_id: str, reason: str, **_named: bool) -> ClaimReleased:
    return ClaimReleased(job_id, reason, is_unusable=True)


EXCUSED_BUGS = (
    PlantedBug(
        "warned-by-nobody",
        "a job that runs has a warning that EC2 did not give",
        lambda: writes(_warned_by_nobody),
        "a warning that is recorded was given",
    ),
    PlantedBug(
        "warning-not-recorded",
        "a warning stops its task, and is not kept",
        replaced(running, "_warned", _warning_dropped),
        "a warning that was told is recorded",
        30,
    ),
    PlantedBug(
        "end-said-to-be-unknown",
        "every task is said to be unknown to ECS when it has stopped",
        replaced(stopping, "classify_stop", _of_an_unknown_task),
        "a stop's reason is its cause",
    ),
    PlantedBug(
        "failure-said-to-be-an-interruption",
        "a program that failed was interrupted",
        replaced(stopping, "classify_stop", _failures_are_interruptions),
        "a stop's reason is its cause",
        30,
    ),
    PlantedBug(
        "run-time-counted-twice",
        "the run time of an attempt is added twice",
        accounted(lambda before, after: replace(after, run_seconds=2 * after.run_seconds - before.run_seconds)),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "prices-not-kept",
        "a placement keeps no price, so that its cost is unknown",
        lambda: writes(_without_prices),
        "a price that EC2 told is known",
        30,
    ),
    PlantedBug(
        "hidden-task-given-up-early",
        "a task that ECS does not show is given up after three and a half minutes, not five",
        changed(running, MISSING_GRACE=timedelta(seconds=210)),
        "nothing is launched beside a live task",
        60,
        world=_many_hidden,
    ),
    PlantedBug(
        "orphan-noted-and-not-stopped",
        "an orphaned task is noted in the timeline and not stopped",
        action("stop_orphaned_task", _noted_and_not_stopped),
        "what was hidden is stopped or kept once it is shown",
        100,
        world=_many_hidden,
    ),
    PlantedBug(
        "orphans-postponed",
        "a sweep puts every orphaned task off, and says so",
        changed(sweeping, _stop_orphans=_orphans_postponed),
        "a sweep finds what was given up",
        100,
        world=_many_hidden,
    ),
    PlantedBug(
        "machine-idle-anew",
        "a machine without a job begins its warm time anew whenever it is looked at",
        lambda: _when_ready(_idle_anew),
        "no instance lives that nobody needs",
        30,
    ),
    PlantedBug(
        "machine-warned-by-nobody",
        "a machine is taken for warned when it is looked at",
        lambda: _when_ready(_warned_anew),
        "a warning of a machine that is recorded was given",
        30,
    ),
    PlantedBug(
        "released-machine-unusable",
        "a machine that a job releases is unusable for all others",
        changed(advancing, ClaimReleased=_unusable),
        "no sound machine ends that a job needs",
        60,
    ),
)
