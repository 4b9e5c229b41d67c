"""Bugs that a check would excuse if it believed what the application records of itself, or any injected fault."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle import running, verdicts
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.running import UNKNOWN_TASK
from relaunch.core.machines import table
from relaunch.core.machines.decision import MachineDecision, set_next_check
from relaunch.core.machines.ending import terminate
from relaunch.core.machines.events import MachineEvent
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine
from relaunch_local.simulation.faults.rare import RareFaults
from simulation.broken_parts import accounted, changed, replaced
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
    return lambda *given, **named: replace(original(*given, **named), stopped_reason=UNKNOWN_TASK)


def _failures_are_interruptions(original: Callable[..., Stop]) -> Callable[..., Stop]:
    def classify(*given: Any, **named: Any) -> Stop:
        stop = original(*given, **named)
        return replace(stop, kind=StopKind.INTERRUPTION) if stop.kind is StopKind.USER_ERROR else stop

    return classify


def _without_prices(_before: Job, decision: Decision) -> Decision:
    attempt = decision.job.attempt
    if attempt is None:
        return decision
    placement = replace(attempt.placement, usd_per_hour_by_zone={}, price_usd_per_hour=0.0)
    return replace(decision, job=replace(decision.job, attempt=replace(attempt, placement=placement)))


def _when_ready(change: Callable[[Machine, datetime], MachineDecision]) -> AbstractContextManager[object]:
    def wake(machine: Machine, _event: MachineEvent, now: datetime, _limits: MachineLimits) -> MachineDecision:
        return change(machine, now)

    rows = (replace(row, action=wake) if row.action.__name__ == "wake_ready" else row for row in table.TABLE)
    return patched(table, TABLE=tuple(rows))


def _ended_as_unusable(machine: Machine, now: datetime) -> MachineDecision:
    return terminate(replace(machine, is_unusable=True), now, event="idle", detail="it starts nothing")


def _warned_anew(machine: Machine, now: datetime) -> MachineDecision:
    warned = replace(machine, warned_at=machine.warned_at or now - timedelta(hours=1))
    return set_next_check(warned, now + timedelta(minutes=1))


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
        replaced(verdicts, "classify_stop", _of_an_unknown_task),
        "a stop's reason is its cause",
    ),
    PlantedBug(
        "failure-said-to-be-an-interruption",
        "a program that failed was interrupted",
        replaced(verdicts, "classify_stop", _failures_are_interruptions),
        "a stop's reason is its cause",
        30,
        first=10,
    ),
    PlantedBug(
        "run-time-counted-twice",
        "the run time of an attempt is added twice",
        accounted(
            lambda before, after: replace(
                after,
                totals=replace(after.totals, run_seconds=2 * after.totals.run_seconds - before.totals.run_seconds),
            )
        ),
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
        "a stop's reason is its cause",
        60,
        world=_many_hidden,
    ),
    PlantedBug(
        "machine-warned-by-nobody",
        "a machine is taken for warned when it is looked at",
        lambda: _when_ready(_warned_anew),
        "a warning of a machine that is recorded was given",
        30,
    ),
    PlantedBug(
        "sound-machine-unusable",
        "a machine is ended as one that starts nothing when it is looked at",
        lambda: _when_ready(_ended_as_unusable),
        "no sound machine ends that a job needs",
        30,
    ),
)
