"""Bugs in how a job is judged whose attempts gain no step, which the simulation must find."""

from contextlib import AbstractContextManager
from datetime import timedelta

from relaunch.core.lifecycle import no_progress
from relaunch.usecases import launch_attempt as launching
from relaunch_local.simulation import scenario
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _everywhere() -> AbstractContextManager[object]:
    """Let trainings stall in every seed."""
    return patched(scenario, _STALLED_EVERY=1, _FIRST_STALLED=0)


PROGRESS_BUGS = (
    PlantedBug(
        "no-progress-ignored",
        "a job goes on however many attempts gained no step",
        changed(launching, is_to_be_judged=lambda _job: False),
        "a job without progress ends",
        30,
        world=_everywhere,
    ),
    PlantedBug(
        "steps-not-seen",
        "an attempt counts as one without progress whatever it saved",
        changed(no_progress, _has_gained=lambda _attempt, _newest: False),
        "only a job without progress ends for that",
        60,
        world=_everywhere,
    ),
    PlantedBug(
        "short-attempts-judged",
        "an attempt of a minute counts as one without progress",
        changed(no_progress, between_checkpoints=lambda _seconds: timedelta(0), CHECKPOINT_INTERVAL=timedelta(0)),
        "only a job without progress ends for that",
        30,
        world=_everywhere,
    ),
)
