"""What people and outages do to the functions; every promise on bad input, and its test, is in docs/testing.md."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config

from fakes.builders import make_definition, make_instance_type, make_offering
from fakes.busy_stack import BusyStack
from fakes.dependencies import make_dependencies
from fakes.functions import QUEUE_FUNCTIONS, FakeContext, Functions, make_batch
from fakes.jobs import InMemoryJobs
from fakes.sources import FakeLaunchQueue, FakeOfferings
from fakes.webhook import load_event, make_delivery
from relaunch import bootstrap
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch.core.jobs.state import JobState
from relaunch.ports import TransientError

WATCHED = S3Trigger("acme-datasets", "images/", ".manifest")


class Stack:
    """The functions over fakes, with one definition."""

    def __init__(self, **fields: Any) -> None:
        self.jobs, self.launches = InMemoryJobs(), FakeLaunchQueue()
        small = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=15_360)
        self.offerings = FakeOfferings(make_offering(small), make_offering("g5.xlarge"))
        deps = make_dependencies(jobs=self.jobs, launches=self.launches, offerings=self.offerings)
        deps.definitions.save_definition(make_definition(**fields))
        self.functions = Functions(deps)

    def deliver(self, *messages: dict[str, Any]) -> None:
        """Deliver events to the intake queue and then every launch that they ask for."""
        assert self.functions.deliver("submit_job", *map(json.dumps, messages)) == []
        requested, self.launches.requested = self.launches.requested, []
        bodies = [json.dumps({"job_id": job_id}) for job_id, _ in requested]
        assert not bodies or self.functions.deliver("launch_attempt", *bodies) == []
        assert self.functions.dead_letters.letters == []

    def outcomes(self) -> list[str]:
        """Return what became of the events, as `relaunch events` tells it."""
        return [event.outcome for event in self.functions.deps.events.list_events(self.functions.deps.clock.now(), 100)]


def upload(key: str) -> dict[str, Any]:
    event: dict[str, Any] = load_event("aws.s3.object-created")
    event["detail"]["object"].update({"key": key, "sequencer": f"{sum(key.encode()):x}"})
    return event


def push(repository: str) -> dict[str, Any]:
    payload = {**load_event("github.push"), "repository": {"full_name": repository}}
    return make_delivery("push", payload)


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        pytest.param(upload("labels/1.manifest"), [], id="prefix"),
        pytest.param(upload("images/1.jpg"), [], id="suffix"),
        pytest.param(upload("images/"), [], id="folder"),
        pytest.param(push("acme/unknown"), ["no job definition watches github acme/unknown"], id="unknown-repository"),
    ],
)
def test_an_event_that_nothing_watches_starts_nothing_and_is_told_unless_it_is_an_upload(
    message: dict[str, Any], outcome: list[str]
) -> None:
    stack = Stack(triggers=(WATCHED, GithubTrigger("acme/vision", "push")))

    stack.deliver(message)

    assert stack.jobs.list_jobs(9)[0] == []
    assert stack.outcomes() == outcome


def test_a_definition_that_no_type_satisfies_fails_its_job_and_names_the_filter_that_removed_the_last() -> None:
    huge = AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=100 * 1024))
    stack = Stack(triggers=(WATCHED,), accelerator=huge)

    stack.deliver(upload("images/1.manifest"))

    (job,) = stack.jobs.list_jobs(9)[0]
    assert job.state is JobState.FAILED
    assert "memory" in job.reason
    assert "24 GiB" in job.reason


def test_uploads_beyond_the_cap_wait_and_say_so() -> None:
    stack = Stack(triggers=(WATCHED,), max_running_jobs=2)
    uploads = [upload(f"images/{'a' * number}.manifest") for number in range(1, 101)]

    for start in range(0, 100, 10):
        stack.deliver(*uploads[start : start + 10])

    jobs = stack.jobs.list_jobs(200)[0]
    assert [job.state for job in jobs].count(JobState.LAUNCHING) == 2
    waiting = [job for job in jobs if job.state is JobState.WAITING]
    assert len(waiting) == 98
    assert {job.reason for job in waiting} == {"definition resnet has no free slot of its 2 (max_running_jobs)"}


@pytest.fixture
def unreachable_aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions as they are deployed, with real clients, while no service of AWS can be reached."""
    with socket.socket() as nobody:
        # Bound and not listening: nobody else can have the port, and connections are refused.
        nobody.bind(("127.0.0.1", 0))
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "RELAUNCH_TABLE": "jobs",
            "RELAUNCH_ATTEMPTS_QUEUE_URL": "https://sqs/attempts",
            "RELAUNCH_DEAD_LETTER_QUEUE_URL": "https://sqs/dead-letters",
            "RELAUNCH_CLUSTER": "relaunch",
            "RELAUNCH_CAPACITY_PROVIDERS": "g5-spot=g5.xlarge/spot",
            "RELAUNCH_MAX_WAITING_JOBS": "5000",
            "RELAUNCH_MAX_RUNNING_JOBS": "20",
            "RELAUNCH_MAX_PRICE_USD_PER_HOUR": "40",
            "RELAUNCH_MAX_SPOT_RATIO": "0.9",
            "RELAUNCH_TASK_DEFINITION_FAMILIES": "relaunch-*",
            "RELAUNCH_TASK_ROLE_PATH": "relaunch/",
            "RELAUNCH_PROVISIONING_DEADLINE_SECONDS": "480",
            "RELAUNCH_MAX_RECEIVE_COUNT": "5",
            "RELAUNCH_NOTICES_PATH": "/relaunch/relaunch/notices",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"):
            monkeypatch.delenv(name, raising=False)
        once = Config(connect_timeout=1, retries={"mode": "standard", "total_max_attempts": 1})
        monkeypatch.setattr(bootstrap, "CLIENT_CONFIG", once)
        _forget_worlds()
        yield
        _forget_worlds()


def _forget_worlds() -> None:
    bootstrap.function.cache_clear()
    bootstrap.refresh_dependencies.cache_clear()


def call_deployed(function: str, event: Any) -> Any:
    handler = __import__(f"{function}.handler", fromlist=["handle"])
    return handler.handle(event, FakeContext())


@pytest.mark.parametrize("function", QUEUE_FUNCTIONS)
@pytest.mark.usefixtures("unreachable_aws")
def test_while_dynamodb_and_sqs_are_down_messages_are_left_to_their_queue(function: str) -> None:
    """Poison too: where it should go cannot be reached."""
    sample = {
        "submit_job": "sqs.intake.s3",
        "launch_attempt": "sqs.attempts.launch-request",
        "request_machine": "sqs.machines.machine-request",
        "observe_capacity": "sqs.warnings.spot-interruption-warning",
        "observe_task": "sqs.task-changes.running",
        "send_notices": "sqs.notices.job-state-change",
    }[function]
    batch = make_batch(load_event(sample)["Records"][0]["body"], "poison")

    answer = call_deployed(function, batch)

    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == ["message-1", "message-2"]


@pytest.mark.parametrize(
    ("function", "sample"),
    [
        ("job_api", "job_api.submit"),
        ("job_api", "job_api.show"),
        ("job_api", "job_api.cancel"),
        ("job_api", "job_api.retry"),
        ("job_api", "job_api.plan"),
        ("refresh_offerings", "schedule.refresh-offerings"),
    ],
)
@pytest.mark.usefixtures("unreachable_aws")
def test_while_dynamodb_is_down_calls_fail_as_worth_another_try(function: str, sample: str) -> None:
    with pytest.raises(TransientError):
        call_deployed(function, load_event(sample))


@pytest.mark.usefixtures("unreachable_aws")
def test_while_dynamodb_is_down_a_pass_of_reconcile_leaves_everything_to_the_next_one() -> None:
    done = call_deployed("reconcile", load_event("schedule.reconcile"))

    # In some minutes it sweeps, too.
    assert {"machines", "looked_at", "deregistered"} <= done.keys()
    assert not any(done.values())


def test_what_failed_in_an_outage_has_its_effect_when_it_comes_again() -> None:
    stack = BusyStack()
    body = load_event("sqs.intake.s3")["Records"][0]["body"]
    stack.jobs.fail_next(TransientError("DynamoDB does not answer"))

    left = stack.functions.deliver("submit_job", body, "poison")

    assert left == [body]
    assert stack.functions.deliver("submit_job", *left) == []
    assert len(stack.started) == 1
