"""Bugs in what becomes of a job that gains no step, and of one that there is spot for: the simulation finds them."""

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

from relaunch.core.jobs import training
from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step
from relaunch.core.jobs.rates import observe_rate
from relaunch.core.jobs.state import NotedProgress
from relaunch.core.lifecycle import explanation, restart_policy, running, table
from relaunch.core.lifecycle.market_choice import is_in_market
from relaunch.core.lifecycle.moves import may_move
from relaunch.core.selection.rates import ObservedRate
from relaunch.usecases import choose_placement, claim_machine, hand_over, note_progress, reserve_budget
from relaunch_local.simulation import job_scenario
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in


def _everywhere() -> AbstractContextManager[object]:
    """Let trainings stall in every seed."""
    return patched(job_scenario, _STALLED_EVERY=1, _FIRST_STALLED=0)


def _returning_everywhere() -> AbstractContextManager[object]:
    """Let the jobs of one definition take hours in every seed, without a limit on their time."""
    return patched(job_scenario, _RETURNING_EVERY=1, _FIRST_RETURNING=0)


def _without_returns() -> AbstractContextManager[object]:
    owners = (running, table, explanation, hand_over, choose_placement, claim_machine, reserve_budget)
    return patched_in(owners, may_move=lambda job: may_move(job) and is_in_market(job))


def _has_saved_or_gained(attempt: Attempt, newest: SavedCheckpoint) -> bool:
    is_newer = newest.step == 0 and newest.attempt == attempt.number
    return is_newer or newest.step > resumed_step(attempt.placement.resume_uri)


def _seldom_everywhere() -> AbstractContextManager[object]:
    """Let the trainings of one definition save every hour or two, and be interrupted, in every seed."""
    return patched(job_scenario, _SELDOM_EVERY=1, _FIRST_SELDOM=0)


def _newest_gap(_job: Job, newest: SavedCheckpoint, before: NotedProgress | None) -> tuple[float, ...]:
    if newest.earlier:
        return ((newest.saved_at - newest.earlier[-1][1]).total_seconds(),)
    return () if before is None else before.gaps_seconds


def _counted_twice(job: Job, newest: SavedCheckpoint) -> ObservedRate | None:
    rate = observe_rate(job, newest)
    return None if rate is None else replace(rate, steps_per_second=2 * rate.steps_per_second)


PROGRESS_BUGS = (
    PlantedBug(
        "steps-counted-twice",
        "a training is learned to be twice as fast as it is",
        changed(note_progress, observe_rate=_counted_twice),
        "a speed that was learned is the true one",
        60,
        6,
    ),
    PlantedBug(
        "never-back-to-spot",
        "a job without a limit on its time stays on on-demand for good",
        _without_returns,
        "a job does not stay on on-demand beside spot",
        60,
        world=_returning_everywhere,
    ),
    PlantedBug(
        "no-progress-ignored",
        "a job goes on however many attempts gained no step",
        changed(choose_placement, is_to_be_judged=lambda _job: False),
        "a job without progress ends",
        30,
        world=_everywhere,
    ),
    PlantedBug(
        "steps-not-seen",
        "an attempt counts as one without progress whatever it saved",
        changed(restart_policy, _has_gained=lambda _attempt, _newest: False),
        "only a job without progress ends for that",
        60,
        world=_everywhere,
    ),
    PlantedBug(
        "step-0-is-progress",
        "a program that saves at its start and never again seems to gain steps",
        changed(restart_policy, _has_gained=_has_saved_or_gained),
        "a job without progress ends",
        60,
        world=_everywhere,
    ),
    PlantedBug(
        "stall-of-what-saves",
        "a training has stalled as soon as its newest checkpoint is as old as the usual time between two",
        changed(training, STALLED_AFTER=1, LEAST_STALL=timedelta(0), LEAST_STALL_AT_FIRST=timedelta(0)),
        "only a training that saves nothing has stalled",
        30,
        world=_everywhere,
    ),
    PlantedBug(
        "hasty-saves-count",
        "the newest two checkpoints say how often a training saves, also if it saved one because it was to leave",
        changed(training, latest_gaps=_newest_gap, ENOUGH_GAPS=1),
        "a job that trains is not said to be stalled",
        30,
        world=_seldom_everywhere,
    ),
    PlantedBug(
        "short-attempts-judged",
        "an attempt of a minute counts as one without progress",
        changed(restart_policy, between_checkpoints=lambda _seconds: timedelta(0), CHECKPOINT_INTERVAL=timedelta(0)),
        "only a job without progress ends for that",
        30,
        world=_everywhere,
    ),
    PlantedBug(
        "progress-never-noted",
        "nobody looks at how far the trainings are that run",
        changed(note_progress, _is_due=lambda _job, _minute: False),
        "how far a training is, is known in time",
        within=30,
    ),
)
