"""The example training with its checkpoints in S3, killed without warning while it saves."""

import pytest

from functional.examples.attempts import Job
from functional.examples.killing_s3 import S3World
from relaunch_training import find_complete

STEPS = ("--steps", "60", "--checkpoint-every", "20")
OBJECTS_OF_STEP_20 = [
    "demo/job-1/attempt-1/step-0000020/manifest.json",
    "demo/job-1/attempt-1/step-0000020/state.json",
    "demo/job-1/attempt-1/step-0000020/weights.json",
]
STEP_40 = "demo/job-1/attempt-1/step-0000040/"


@pytest.mark.parametrize(
    ("put", "store_it", "left_of_step_40", "resumed_at"),
    [
        pytest.param(5, False, ["state.json"], 20, id="between-two-objects"),
        pytest.param(6, False, ["state.json", "weights.json"], 20, id="before-the-manifest"),
        pytest.param(6, True, ["manifest.json", "state.json", "weights.json"], 40, id="after-the-manifest"),
    ],
)
def test_a_training_killed_while_it_saves_resumes_from_the_newest_complete_checkpoint(
    s3_world: S3World, job: Job, put: int, store_it: bool, left_of_step_40: list[str], resumed_at: int
) -> None:
    uninterrupted = job.run(*STEPS)
    s3_world.server.kill_at_put(put, store_it=store_it)
    killed = s3_world.job.start(*STEPS)
    s3_world.server.aim_at(killed.process)

    status = killed.finish()
    left = s3_world.keys()
    newest = next(find_complete(s3_world.job.uri))
    resumed = s3_world.job.run(*STEPS, resume=newest)

    assert status == -9
    assert left == OBJECTS_OF_STEP_20 + [STEP_40 + name for name in left_of_step_40]
    assert resumed.named("resumed")[0]["step"] == resumed_at
    assert resumed.named("step")[0]["step"] == resumed_at + 1
    assert resumed.result == uninterrupted.result


def test_a_training_told_to_resume_from_an_incomplete_checkpoint_takes_the_older_complete_one(
    s3_world: S3World,
) -> None:
    first = s3_world.job.run(*STEPS)
    for step in ("0000040", "0000060"):
        s3_world.client.delete_object(Bucket="checkpoints", Key=f"demo/job-1/attempt-1/step-{step}/manifest.json")

    resumed = s3_world.job.run(*STEPS, resume="s3://checkpoints/demo/job-1/attempt-1/step-0000040/")

    (rejected,) = resumed.named("checkpoint_rejected")
    assert rejected["reason"].endswith("step-0000040/manifest.json is missing")
    assert resumed.named("resumed")[0]["step"] == 20
    assert resumed.result == first.result


def test_a_bucket_that_is_not_there_fails_the_training_instead_of_starting_over(s3_world: S3World) -> None:
    training = s3_world.job.start(*STEPS, resume="s3://elsewhere/demo/job-1/attempt-1/step-0000020/")

    assert training.finish() == 1
    assert "NoSuchBucket" in training.complaint
    assert training.named("step") == []
