"""Jobs that are asked for directly, and the inputs, images and keys of these requests."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from fakes.sources import image_digest
from fakes.story import SHA, WAITS_FOR_IMAGE, Story, push
from relaunch.core.definitions.definition import GithubTrigger, InputRule
from relaunch.core.jobs.state import JobState
from relaunch.core.triggers.events import DirectRequest, RepositoryDispatch, WorkflowDispatch
from relaunch.ports import UnsupportedPatternError
from relaunch.usecases.submit_job import (
    IdempotentParameterMismatchError,
    InvalidInputsError,
    UnknownDefinitionError,
    submit_direct,
    submit_event,
    submit_request,
)


def request(definition: str = "resnet", key: str = "k1", **inputs: str) -> DirectRequest:
    return DirectRequest(f"direct:{key}", definition, inputs, "ada")


def test_a_direct_request_starts_a_job_with_its_inputs():
    story = Story(make_definition(inputs={"epochs": InputRule("[0-9]+", "3")}))

    job = submit_direct(request(epochs="9"), story.deps)

    assert job.inputs == {"epochs": "9"}
    assert job.trigger.source == "direct"
    assert story.launches.requested == [(job.job_id, 0)]


def test_the_same_idempotency_key_finds_the_same_job(story):
    first, second = submit_request(request(), story.deps), submit_request(request(), story.deps)
    third = submit_event(request(key="k2"), story.deps)

    assert first.job.job_id == second.job.job_id
    assert (first.is_new, second.is_new, third[0].is_new) == (True, False, True)


def test_an_idempotency_key_with_other_inputs_is_refused_and_the_job_stays_as_it_is():
    story = Story(make_definition(inputs={"epochs": InputRule("[0-9]+", "3"), "seed": InputRule("[0-9]+", "0")}))
    job = submit_direct(request(epochs="9"), story.deps)

    with pytest.raises(IdempotentParameterMismatchError) as error:
        submit_direct(request(epochs="8", seed="0"), story.deps)

    mismatch = f"this idempotency key started job {job.job_id} with other values of epochs; use another key"
    assert str(error.value) == mismatch
    assert story.job(job.job_id).inputs == {"epochs": "9", "seed": "0"}


def test_a_request_runs_the_image_that_it_names():
    story = Story(WAITS_FOR_IMAGE)
    story.images.present.add(("trainer", SHA))

    job = submit_direct(replace(request(), image_tag=SHA), story.deps)

    assert [image.partition("@")[2] for image in job.images.values()] == [image_digest("trainer", SHA)]
    assert story.launches.requested == [(job.job_id, 0)]


def test_a_request_for_an_image_that_is_not_there_fails_at_once_and_is_told_how_to_mend_it():
    story = Story(WAITS_FOR_IMAGE)

    job = submit_direct(replace(request(), image_tag=SHA), story.deps)

    assert (job.state, job.reason) == (JobState.FAILED, f"the image trainer:{SHA} is not in ECR: push it first")
    assert story.launches.requested == []


def test_an_idempotency_key_with_another_image_is_refused():
    story = Story(WAITS_FOR_IMAGE)
    job = submit_direct(replace(request(), image_tag=SHA), story.deps)

    with pytest.raises(IdempotentParameterMismatchError) as error:
        submit_direct(request(), story.deps)

    assert f"started job {job.job_id} with other values of the image's tag" in str(error.value)


def test_a_request_that_is_repeated_after_a_default_has_changed_finds_its_job():
    story = Story(make_definition(inputs={"epochs": InputRule("[0-9]+", "3"), "seed": InputRule("[0-9]+", "0")}))
    job = submit_direct(request(epochs="9"), story.deps)
    changed = make_definition(inputs={"epochs": InputRule("[0-9]+", "5"), "seed": InputRule("[0-9]+", "1")})
    story.deps.definitions.save_definition(changed)

    assert submit_direct(request(epochs="9"), story.deps).job_id == job.job_id


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnett", "there is no job definition 'resnett'; did you mean resnet?"),
        ("zzz", "there is no job definition 'zzz'; register it with `relaunch apply`"),
    ],
)
def test_an_unknown_definition_is_told_with_the_nearest_name(name, message):
    with pytest.raises(UnknownDefinitionError) as error:
        submit_direct(request(name), Story().deps)

    assert str(error.value) == message


def test_inputs_that_are_not_allowed_are_all_told():
    story = Story(make_definition(inputs={"epochs": InputRule("[0-9]+"), "seed": InputRule("[0-9]+")}))

    with pytest.raises(InvalidInputsError) as error:
        submit_direct(request(epochs="many"), story.deps)

    assert "epochs" in str(error.value)
    assert "seed" in str(error.value)
    assert story.jobs.list_jobs(9) == ([], None)


def test_a_stored_pattern_that_is_not_supported_keeps_its_own_job_alone_from_starting():
    inputs = {"run": InputRule(r"(a)\1", "aa")}
    story = Story(make_definition(inputs=inputs), make_definition(name="bert"))

    with pytest.raises(UnsupportedPatternError, match=r"inputs of resnet .*back references.*relaunch apply"):
        submit_event(push(), story.deps)

    ((started, _),) = story.launches.requested
    assert story.job(started).definition.name == "bert"
    (event,) = story.deps.events.list_events(story.now, 10)
    assert "resnet: cannot be started: inputs of resnet cannot be checked" in event.outcome

    story.deps.definitions.save_definition(make_definition(inputs={"run": InputRule("aa", "aa")}))
    assert [each.is_new for each in submit_event(push(), story.deps)] == [False, True]


def test_a_direct_request_with_an_unsupported_pattern_is_refused():
    story = Story(make_definition(inputs={"run": InputRule("(?=a)a")}))

    with pytest.raises(UnsupportedPatternError, match="look-around"):
        submit_direct(request(run="a"), story.deps)


def test_a_pattern_that_could_match_in_countless_ways_takes_no_time():
    story = Story(make_definition(inputs={"run": InputRule("(a+)+")}))

    with pytest.raises(InvalidInputsError, match="does not match"):
        submit_direct(request(run="a" * 1000 + "b"), story.deps)


@pytest.mark.parametrize("kind", [WorkflowDispatch, RepositoryDispatch])
def test_a_dispatch_with_an_undeclared_input_starts_nothing_and_the_event_log_says_why(kind):
    event = "workflow_dispatch" if kind is WorkflowDispatch else "repository_dispatch"
    names = {"workflow": ".github/workflows/train.yml"} if kind is WorkflowDispatch else {"event_type": "train"}
    rules = {"epochs": InputRule("[0-9]+", "90")}
    story = Story(make_definition(triggers=(GithubTrigger("acme/vision", event),), inputs=rules))
    dispatch = kind(identity="github:1", repository="acme/vision", inputs={"epoch": "9"}, body_sha256="ab", **names)

    (submission,) = submit_event(dispatch, story.deps)

    assert submission.job is None
    (record,) = story.deps.events.list_events(story.now, 10)
    assert (record.job_ids, record.outcome) == (
        (),
        "resnet: input 'epoch' is not declared in the job definition, which declares epochs",
    )


def test_a_request_with_an_undeclared_input_is_refused(story):
    with pytest.raises(InvalidInputsError, match="input 'epoch' is not declared"):
        submit_request(request(epoch="9"), story.deps)

    assert story.jobs.list_jobs(10)[0] == []
