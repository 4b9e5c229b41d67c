"""Retrying a job: one more of the same definition, which goes on from its checkpoints."""

import pytest

from fakes.builders import make_definition, make_revision
from fakes.story import MINUTE, SHA, WAITS_FOR_IMAGE, Story, image, push, upload
from relaunch.core.definitions.definition import ImageTrigger, InputRule, S3Trigger
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import PermanentError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.retry_job import CannotRetryError, retry_job
from relaunch.usecases.submit_job import (
    IdempotentParameterMismatchError,
    InvalidInputsError,
    UnknownDefinitionError,
    WaitingLimitReachedError,
)

ONE_FAILURE = {"max_failures": 0, "checkpoint_uri": "s3://acme-checkpoints/resnet/"}


@pytest.fixture
def story() -> Story:
    return Story(make_definition(**ONE_FAILURE))


def fail(story: Story, **checkpoint: str) -> Job:
    """Run a job that fails, and leaves this checkpoint (`at`), if any."""
    job_id = story.launch()
    if checkpoint:
        story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/{checkpoint['at']}"
    story.end(job_id, 1)
    assert story.job(job_id).state is JobState.FAILED
    return story.job(job_id)


def retry(story: Story, job: Job, key: str = "k1", **chosen: int) -> Job:
    asked = DirectRequest(f"api:key:{key}", job.definition.name, {}, "ada", story.now)
    submission = retry_job(job, asked, story.deps, **chosen)
    assert submission.job is not None
    return submission.job


def environments(story: Story) -> list[dict[str, str]]:
    return [dict(request.environment) for request in story.tasks.requests]


def test_a_retry_is_a_job_of_its_own_that_resumes_from_the_other_ones_checkpoint(story):
    failed = fail(story, at="attempt-1/step-0000300/")

    retried = retry(story, failed)
    story.settle()

    first, second = environments(story)
    assert retried.job_id != failed.job_id
    assert second["RELAUNCH_RESUME_URI"] == story.checkpoints.complete[failed.job_id]
    # No two tasks ever write below the same prefix.
    assert first["RELAUNCH_CHECKPOINT_URI"] == f"s3://acme-checkpoints/resnet/{failed.job_id}/attempt-1/"
    assert second["RELAUNCH_CHECKPOINT_URI"] == f"s3://acme-checkpoints/resnet/{retried.job_id}/attempt-1/"
    assert f"retry of {failed.job_id}, asked for by ada" in story.timeline(retried.job_id)
    assert f"resuming from {story.checkpoints.complete[failed.job_id]}" in story.timeline(retried.job_id)


@pytest.mark.parametrize("is_saved", [True, False])
def test_checkpoints_that_cannot_be_used_are_named_when_the_older_one_or_none_is_resumed_from(story, is_saved):
    failed = fail(story, at="attempt-1/step-0000300/")
    if not is_saved:
        story.checkpoints.complete.clear()
    story.checkpoints.unusable = ("attempt-9/step-6 cannot be used: its manifest is empty", "attempt-9/step-5 …", "…")

    retried = retry(story, failed)
    story.settle()

    assert ("RELAUNCH_RESUME_URI" in environments(story)[-1]) is is_saved
    expected = "; attempt-9/step-6 cannot be used: its manifest is empty, nor can 2 more"
    assert expected in story.timeline(retried.job_id)


def test_after_an_interruption_its_own_checkpoint_counts_and_before_that_the_other_ones(story):
    failed = fail(story, at="attempt-1/step-0000300/")
    retried = retry(story, failed)
    story.settle()
    for own in (None, f"s3://acme-checkpoints/resnet/{retried.job_id}/attempt-2/step-0000400/"):
        story.run(retried.job_id)
        if own:
            story.checkpoints.complete[retried.job_id] = own
        story.lose_host(retried.job_id)
        story.settle()

        expected = own or story.checkpoints.complete[failed.job_id]
        assert environments(story)[-1]["RELAUNCH_RESUME_URI"] == expected


def test_a_cancelled_job_is_retried_too_and_one_without_a_checkpoint_starts_over(story):
    job_id = story.launch()
    cancel_job(job_id, "a typo", story.deps)
    story.end(job_id, 143)
    assert story.job(job_id).state is JobState.CANCELLED

    retry(story, story.job(job_id))
    story.settle()

    assert "RELAUNCH_RESUME_URI" not in environments(story)[-1]


def test_a_job_that_still_runs_is_not_retried(story):
    job_id = story.launch()

    with pytest.raises(CannotRetryError, match="is RUNNING: wait until it has ended, or cancel it"):
        retry(story, story.job(job_id))

    assert len(story.jobs.list_jobs(10)[0]) == 1


def test_a_chosen_checkpoint_that_is_not_there_fails_the_job_and_says_so(story):
    failed = fail(story, at="attempt-1/step-0000300/")

    retried = retry(story, failed, step=200)
    story.settle()

    job = story.job(retried.job_id)
    assert job.state is JobState.FAILED
    assert f"no complete checkpoint of step 200 below s3://acme-checkpoints/resnet/{failed.job_id}/" in job.reason
    assert len(story.tasks.requests) == 1


def test_a_chosen_checkpoint_is_the_one_it_resumes_from(story):
    failed = fail(story, at="attempt-1/step-0000300/")

    retry(story, failed, step=300, attempt=1)
    story.settle()

    assert environments(story)[-1]["RELAUNCH_RESUME_URI"] == story.checkpoints.complete[failed.job_id]


def test_checkpoints_of_the_other_job_that_cannot_be_read_are_waited_for(story):
    failed = fail(story, at="attempt-1/step-0000300/")
    retried = retry(story, failed)
    story.checkpoints.refusal = PermanentError("AccessDenied")
    story.deliver()

    waiting = story.job(retried.job_id).waiting
    assert waiting is not None
    assert waiting.reason is WaitReason.CHECKPOINT
    story.checkpoints.refusal = None
    story.reconcile(after=20 * MINUTE)
    story.settle()
    assert environments(story)[-1]["RELAUNCH_RESUME_URI"] == story.checkpoints.complete[failed.job_id]


def test_the_definition_and_the_revision_are_those_of_now_and_inputs_those_of_then():
    rules = {"n": InputRule("[0-9]+", "1")}
    story = Story(make_definition(**ONE_FAILURE, inputs=rules))
    job_id = story.launch(DirectRequest("direct:1", "resnet", {"n": "7"}, "ada"))
    story.end(job_id, 1)
    story.deps.definitions.save_definition(make_definition(**ONE_FAILURE, inputs=rules, command=("mended",)))
    story.revisions.active.append(make_revision(revision=12))

    retried = retry(story, story.job(job_id))

    assert retried.definition.command == ("mended",)
    assert retried.revision.revision == 12
    assert retried.inputs == {"n": "7"}


def test_what_the_trigger_gave_the_training_is_given_again():
    story = Story(make_definition(**ONE_FAILURE, triggers=(S3Trigger("acme-datasets"),)))
    job_id = story.launch(upload())
    story.end(job_id, 1)

    retry(story, story.job(job_id))
    story.settle()

    first, second = environments(story)
    assert first["RELAUNCH_OBJECT_URI"] == second["RELAUNCH_OBJECT_URI"] == "s3://acme-datasets/images/1.manifest"


def test_a_job_of_a_push_runs_its_image_again():
    story = Story(make_definition(**ONE_FAILURE, triggers=WAITS_FOR_IMAGE.triggers))
    story.images.present.add(("trainer", SHA))
    job_id = story.launch()
    story.end(job_id, 1)

    retried = retry(story, story.job(job_id))

    assert retried.image == ("trainer", SHA)
    assert retried.images == story.job(job_id).images != {}


def test_an_image_that_is_gone_fails_the_retry_and_says_so():
    story = Story(make_definition(**ONE_FAILURE, triggers=(ImageTrigger("trainer"),)))
    story.images.present.add(("trainer", "v1"))
    job_id = story.submit_and_deliver(image(tag="v1"))
    story.run(job_id)
    story.end(job_id, 1)
    story.images.present.discard(("trainer", "v1"))

    retried = retry(story, story.job(job_id))

    assert (retried.state, retried.reason) == (JobState.FAILED, "the image trainer:v1 is not in ECR: push it first")


def test_the_same_identity_is_the_same_job_and_another_checkpoint_of_it_is_refused(story):
    failed = fail(story, at="attempt-1/step-0000300/")

    first, again = retry(story, failed), retry(story, failed)
    other = retry(story, failed, key="k2")

    assert first.job_id == again.job_id != other.job_id
    with pytest.raises(IdempotentParameterMismatchError, match="with other values of the checkpoint"):
        retry(story, failed, step=300)


def test_a_key_of_one_job_is_another_one_for_another_job(story):
    failed = fail(story)
    second_id = story.launch(push("0" * 40))
    story.end(second_id, 1)

    assert retry(story, failed).job_id != retry(story, story.job(second_id)).job_id


def test_the_retry_of_a_retry_that_left_no_checkpoint_resumes_where_that_did(story):
    failed = fail(story, at="attempt-1/step-0000300/")
    second = retry(story, failed)
    story.settle()
    story.run(second.job_id)
    story.end(second.job_id, 1)

    retry(story, story.job(second.job_id), key="k2")
    story.settle()

    assert environments(story)[-1]["RELAUNCH_RESUME_URI"] == story.checkpoints.complete[failed.job_id]


def test_what_is_refused_of_a_submission_is_refused_of_a_retry(story):
    failed = fail(story)
    story.deps.definitions.save_definition(make_definition(**ONE_FAILURE, inputs={"needed": InputRule("x")}))
    with pytest.raises(InvalidInputsError, match="input needed has no default and was not given"):
        retry(story, failed)
    story.deps.definitions.save_definition(make_definition(**ONE_FAILURE, max_waiting_jobs=1))
    story.submit(push("1" * 40))
    with pytest.raises(WaitingLimitReachedError):
        retry(story, failed)
    story.deps.definitions.delete_definition("resnet")
    with pytest.raises(UnknownDefinitionError):
        retry(story, failed)
