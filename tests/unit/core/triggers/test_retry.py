"""What a job takes over from the one that it retries."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition, make_job, make_running_job
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import FINAL_STATES, JobState
from relaunch.core.jobs.trigger_facts import ResumePoint, TriggerFacts
from relaunch.core.triggers.events import DirectRequest, RetriedJob
from relaunch.core.triggers.matching import InvalidInputs
from relaunch.core.triggers.retry import CannotRetry, retry
from unit.core.triggers.matched import match_event, matched

URI = "s3://acme-checkpoints/resnet/"
ELSEWHERE = ResumePoint("resnet-0", "s3://elsewhere/")


def ended(state: JobState = JobState.FAILED, **fields) -> Job:
    job = make_running_job(definition=make_definition(checkpoint_uri=URI), **fields)
    return replace(job, state=state)


def points(decided: RetriedJob | CannotRetry) -> tuple[ResumePoint, ...]:
    assert isinstance(decided, RetriedJob)
    return decided.resume_from


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_a_job_that_has_ended_is_resumed_from_its_newest_checkpoint_however_it_ended(state):
    job = ended(state)

    assert points(retry(job)) == (ResumePoint(job.job_id, URI),)


@pytest.mark.parametrize("state", sorted(set(JobState) - FINAL_STATES))
def test_a_job_that_has_not_ended_cannot_be_retried_for_both_would_train_the_same(state):
    decided = retry(ended(state))

    assert isinstance(decided, CannotRetry)
    assert decided.reason.endswith(f" is {state}: wait until it has ended, or cancel it")


def test_a_checkpoint_can_be_chosen_and_then_no_other_will_do():
    job = ended(resume_from=(ELSEWHERE,))

    assert points(retry(job, 300)) == (ResumePoint(job.job_id, URI, 300),)
    assert points(retry(job, 300, 2)) == (ResumePoint(job.job_id, URI, 300, 2),)
    assert points(retry(job, None, 2)) == (ResumePoint(job.job_id, URI, None, 2),)
    assert points(retry(job, 0)) == (ResumePoint(job.job_id, URI, 0),)


def test_the_retry_of_a_retry_falls_back_on_what_that_resumed_from():
    job = ended(resume_from=(ELSEWHERE,))

    assert points(retry(job)) == (ResumePoint(job.job_id, URI), ELSEWHERE)


def test_a_job_that_was_never_launched_has_no_checkpoints_of_its_own():
    job = replace(make_job(definition=make_definition(checkpoint_uri=URI)), state=JobState.CANCELLED)

    assert points(retry(job)) == ()
    assert points(retry(replace(job, resume_from=(ELSEWHERE,)))) == (ELSEWHERE,)


def test_without_checkpoints_it_starts_over_and_none_can_be_chosen():
    job = replace(ended(), definition=make_definition(checkpoint_uri=None))

    assert points(retry(job)) == ()
    chosen = retry(job, 300)
    assert isinstance(chosen, CannotRetry)
    assert chosen.reason.endswith("has no checkpoints: its definition names no `checkpoint`")


def test_the_training_gets_what_the_trigger_gave_but_not_the_digest_of_an_image_that_is_looked_up_again():
    pushed = {"RELAUNCH_IMAGE_REPOSITORY": "trainer", "RELAUNCH_IMAGE_TAG": "v1"}
    facts = TriggerFacts("image", "ecr:1", "image pushed", {**pushed, "RELAUNCH_IMAGE_DIGEST": "sha256:9"})

    decided = retry(ended(trigger=facts))

    assert isinstance(decided, RetriedJob)
    assert decided.environment == pushed
    assert decided.image == ("trainer", "v1")


@pytest.mark.parametrize(
    ("environment", "image", "expected"),
    [
        ({"RELAUNCH_GIT_SHA": "5e07"}, ("trainer", "5e07"), ("trainer", "5e07")),
        ({"RELAUNCH_OBJECT_URI": "s3://b/k"}, None, None),
        ({"RELAUNCH_IMAGE_REPOSITORY": "trainer"}, None, None),
    ],
    ids=["waited-for", "none", "without-a-tag"],
)
def test_the_image_is_the_one_that_its_trigger_named(environment, image, expected):
    decided = retry(ended(trigger=TriggerFacts("x", "x:1", "x", environment), image=image))

    assert isinstance(decided, RetriedJob)
    assert decided.image == expected


@pytest.mark.parametrize(
    ("caller", "summary"), [("ada", "retry of resnet-1, asked for by ada"), ("", "retry of resnet-1")]
)
def test_the_request_runs_the_image_and_says_which_job_it_retries(caller, summary):
    retried = RetriedJob("resnet-1", {"RELAUNCH_GIT_SHA": "5e07"}, ("trainer", "v1"), (ELSEWHERE,))

    decision = matched(DirectRequest("api:1", "resnet", caller=caller, retried=retried))

    assert decision.image == ("trainer", "v1")
    assert decision.image_timeout is None
    assert decision.facts == TriggerFacts(
        "direct", "api:1", summary, {"RELAUNCH_GIT_SHA": "5e07"}, caller, "retry of resnet-1"
    )


def test_inputs_that_the_definition_does_not_take_any_more_are_refused():
    retried = RetriedJob("resnet-1")
    request = DirectRequest("api:1", "resnet", {"n": "1"}, retried=retried)
    definition = make_definition(inputs={})

    decision = match_event(definition, request)

    assert isinstance(decision, InvalidInputs)
    assert "input 'n' is not declared" in decision.reason
