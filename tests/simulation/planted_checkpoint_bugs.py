"""Bugs in what a job resumes from, and in what the market policy makes of the time until its deadline."""

from contextlib import AbstractContextManager

from relaunch.adapters.aws import checkpoints
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.core.launches import launch_plan
from relaunch.core.lifecycle import market_choice, waiting
from relaunch.usecases import choose_placement, hand_over
from relaunch_local.simulation import job_scenario
from relaunch_local.simulation.checks.deadlines import PROMISE
from simulation import broken_parts as broken
from simulation.broken_parts import action, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _without_shortages() -> AbstractContextManager[object]:
    return patched(job_scenario, _SHORTAGES_SHARE=0.0)


CHECKPOINT_BUGS = (
    PlantedBug(
        "incomplete-checkpoint",
        "an attempt resumes from the newest folder, manifest or not",
        broken.any_step,
        "an attempt resumes from the newest complete checkpoint",
        30,
        first=60,
    ),
    PlantedBug(
        "oldest-checkpoint",
        "an attempt resumes from the oldest checkpoint",
        replaced(checkpoints, "_steps", broken.oldest_step),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "checkpoint-of-another-job",
        "an attempt resumes from the newest checkpoint of any job",
        replaced(S3Checkpoints, "newest_saved", broken.of_any_job),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "never-resumes",
        "no attempt resumes",
        changed(choose_placement, _resume_uri=lambda *_: (None, None)),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "unreadable-is-the-end",
        "a job whose checkpoints cannot be read fails",
        action("checkpoints_unreadable", waiting.launch_impossible),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "not-probed",
        "the bucket of the checkpoints is read for the first time on the second try",
        changed(S3Checkpoints, probe=lambda *_parts: None),
        "nothing is launched while its checkpoints cannot be read",
        60,
    ),
    PlantedBug(
        "one-checkpoint-prefix",
        "all attempts write under the same prefix",
        replaced(
            launch_plan,
            "training_environment",
            lambda original: lambda job: {**original(job), "RELAUNCH_CHECKPOINT_URI": "s3://acme-checkpoints/a/"},
        ),
        "an attempt writes under its own prefix",
    ),
    PlantedBug(
        "deadline-too-late",
        "the market policy takes every deadline for two hours later than it is",
        replaced(market_choice, "_situation", broken.with_two_more_hours),
        "a wait for the market leaves the time for on-demand",
        40,
        first=140,
    ),
    PlantedBug(
        "deadline-too-late-in-the-end",
        "the market policy takes every deadline for two hours later than it is, so that jobs end late",
        replaced(market_choice, "_situation", broken.with_two_more_hours),
        PROMISE,
        120,
        first=80,
    ),
    PlantedBug(
        "moved-unsaved",
        "a task is moved to spot before it has saved a checkpoint",
        replaced(hand_over, "newest_of", broken.without_its_own_checkpoint),
        "no move without a saved checkpoint",
        70,
        first=10,
        world=_without_shortages,
    ),
)
