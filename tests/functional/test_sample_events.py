"""events/ has an event for every function, and each is handled over fakes as it would be by `sam local invoke`."""

from typing import Any

import pytest

from fakes.busy_stack import JOB_ID, BusyStack
from fakes.functions import QUEUE_FUNCTIONS
from fakes.repository import REPOSITORY
from fakes.webhook import EVENTS, load_event
from relaunch.core.jobs.state import JobState

# What the names of the files begin with, by function; github_webhook speaks HTTP, and has its own tests.
SAMPLES = {
    "github_webhook": "function-url.github-",
    "submit_job": "sqs.intake.",
    "launch_attempt": "sqs.attempts.",
    "request_machine": "sqs.machines.",
    "observe_capacity": "sqs.warnings.",
    "observe_task": "sqs.task-changes.",
    "send_notices": "sqs.notices.",
    "job_api": "job_api.",
    "plan_api": "plan_api.",
    "reconcile": "schedule.reconcile",
    "refresh_offerings": "schedule.refresh-offerings",
}

# job_api's URL has its own tests too.
BY_URL = "function-url.job-api"

# It is of the other queue of submit_job.
OF_A_TOPIC = "sqs.sns.topic-message"


def samples_of(function: str) -> list[str]:
    return sorted(path.stem for path in EVENTS.glob(f"{SAMPLES[function]}*"))


def invoke(function: str, sample: str) -> tuple[BusyStack, Any]:
    stack = BusyStack()
    answer = stack.functions.invoke(function, load_event(sample))
    assert (stack.functions.failures, stack.functions.dead_letters.letters) == ([], [])
    return stack, answer


def test_every_function_has_a_sample() -> None:
    packages = {path.parent.name for path in REPOSITORY.glob("functions/*/handler.py")}

    assert set(SAMPLES) == packages
    assert all(samples_of(function) for function in packages)


def test_every_sample_of_an_invocation_is_of_some_function() -> None:
    of_functions = {sample for function in SAMPLES for sample in samples_of(function)} | {BY_URL, OF_A_TOPIC}
    invocations = {
        path.stem
        for kind in ("function-url", "sqs", "job_api", "plan_api", "schedule")
        for path in EVENTS.glob(f"{kind}.*")
    }

    assert of_functions == invocations


@pytest.mark.parametrize(
    ("function", "sample"), [(function, sample) for function in QUEUE_FUNCTIONS for sample in samples_of(function)]
)
def test_a_batch_is_handled_without_a_failure(function: str, sample: str) -> None:
    stack, answer = invoke(function, sample)

    assert answer == {"batchItemFailures": []}
    assert len(stack.started) == (function == "submit_job")


@pytest.mark.parametrize(
    ("sample", "state"),
    [
        ("sqs.warnings.spot-interruption-warning", JobState.STOPPING),
        ("sqs.warnings.rebalance-recommendation", JobState.RUNNING),
        ("sqs.warnings.capacity-block-expiration-warning", JobState.RUNNING),  # the job is not in the block
        ("sqs.warnings.instance-retirement", JobState.STOPPING),
        ("sqs.task-changes.running", JobState.RUNNING),
        ("sqs.task-changes.stopped-exit-0", JobState.SUCCEEDED),
        ("sqs.task-changes.stopped-spot", JobState.WAITING),
    ],
)
def test_the_samples_tell_the_story_of_one_job(sample: str, state: JobState) -> None:
    stack, _ = invoke("observe_capacity" if ".warnings." in sample else "observe_task", sample)

    assert stack.jobs.job(JOB_ID).state is state


@pytest.mark.parametrize(("sample", "state"), [("job_api.show", "RUNNING"), ("job_api.cancel", "STOPPING")])
def test_the_samples_of_job_api_are_about_the_same_job(sample: str, state: str) -> None:
    _, answer = invoke("job_api", sample)

    assert (answer["job"]["job_id"], answer["job"]["state"]) == (JOB_ID, state)


def test_the_sample_of_a_submission_starts_a_job() -> None:
    stack, answer = invoke("job_api", "job_api.submit")

    assert (answer["is_new"], [answer["job"]["job_id"]]) == (True, stack.started)


def test_the_sample_of_a_retry_starts_one_job_once_that_job_has_ended() -> None:
    stack, refused = invoke("job_api", "job_api.retry")
    stack.functions.invoke("observe_task", load_event("sqs.task-changes.stopped-exit-0"))
    ended = stack.jobs.job(JOB_ID)

    answers = [stack.functions.invoke("job_api", load_event("job_api.retry")) for _ in range(2)]

    assert refused["error"]["code"] == "CannotRetry"
    assert [answer["is_new"] for answer in answers] == [True, False]
    assert [answer["job"]["job_id"] for answer in answers] == stack.started * 2
    assert stack.jobs.job(JOB_ID) == ended


def test_the_samples_of_schedules_are_answered_with_what_was_done() -> None:
    _, reconciled = invoke("reconcile", "schedule.reconcile")
    _, refreshed = invoke("refresh_offerings", "schedule.refresh-offerings")

    assert reconciled["looked_at"] == 1
    assert set(refreshed.values()) == {"refreshed"}
