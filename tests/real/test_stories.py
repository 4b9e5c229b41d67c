"""Jobs end to end, with the real template, handlers and training in the local world."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import boto3
import pytest

from fakes.webhook import load_event, make_request, post
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.bootstrap import make_dependencies
from relaunch.core.definitions.ownership import Owner
from relaunch.core.jobs.job import JobState
from relaunch.core.launches.derived_revision import DERIVED_FROM
from relaunch.ports import Dependencies, JobHistory
from relaunch.settings import Settings
from relaunch.usecases.arrange_upload_rules import settle_upload_rules, widen_upload_rules
from relaunch.usecases.register_definitions import compare_definitions, register_definitions
from relaunch_cli.aws.connection import AwsConnection
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import CHECKPOINTS, DATASETS, LOG_GROUP
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.training_cluster import CLUSTER

TIMEOUT_SECONDS = 300.0
PAUSE_SECONDS = 0.1


Answer = TypeVar("Answer")


def eventually(ask: Callable[[], Answer | None]) -> Answer:
    """Poll until there is a value, and return it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (answer := ask()) is None:
        assert time.monotonic() < deadline, f"nothing came of {ask.__qualname__}"
        time.sleep(PAUSE_SECONDS)
    return answer


@pytest.fixture
def relaunch(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> Dependencies:
    """Register the examples; return the dependencies with the operator's credentials, as the command has them."""
    for name, value in world.environment().items():
        monkeypatch.setenv(name, value)
    opened = make_dependencies(Settings.from_stack_outputs(world.deployment.outputs), boto3.Session())
    rules = AwsConnection(STACK).upload_rules
    text = (REPOSITORY / "examples" / "relaunch.yaml").read_text()
    definitions = parse_definitions(text, "relaunch.yaml", load_catalogue())
    owner = Owner("", "relaunch.yaml", AwsConnection(STACK).caller)
    changes = compare_definitions(definitions, opened.definitions.list_registered(), owner)
    widen_upload_rules(definitions, rules, time.sleep)
    register_definitions(changes, owner, opened)
    settle_upload_rules(opened.definitions, rules, time.sleep)
    return opened


@pytest.fixture(autouse=True)
def nothing_is_refused_or_given_up(world: LocalWorld) -> Iterator[None]:
    """Check that no call is denied and no message becomes a dead letter."""
    before = len(world.simulator.requests)
    yield
    requests = list(world.simulator.requests)[before:]
    assert [(each.action, each.outcome) for each in requests if "Denied" in each.outcome[0]] == []
    sqs = world.client("sqs")
    for name, url in world.deployment.outputs.items():
        if name.endswith("DeadLetterQueueUrl"):
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
            assert attributes["Attributes"]["ApproximateNumberOfMessages"] == "0", name


def push(world: LocalWorld, commit: str) -> int:
    """Deliver a push of this commit as GitHub does; return the HTTP status."""
    body = json.dumps(load_event("github.push") | {"after": commit}).encode()
    delivery = {"x-github-delivery": f"delivery-of-{commit}"}
    return post(world.deployment.webhook_url, make_request(body, delivery, secret=world.deployment.webhook_secret))


def new_job(relaunch: Dependencies, known: set[str]) -> str:
    """Return the id of the new job."""
    return eventually(lambda: next(iter(job_ids(relaunch) - known), None))


def job_ids(relaunch: Dependencies) -> set[str]:
    return {summary.job_id for summary in relaunch.jobs.list_jobs(limit=100)[0]}


def history_of(relaunch: Dependencies, job_id: str) -> JobHistory:
    history = relaunch.jobs.load_history(job_id)
    assert history is not None
    return history


def running_on(relaunch: Dependencies, job_id: str) -> str:
    """Return the instance of the job's task, once there is a checkpoint."""

    def instance() -> str | None:
        attempts = history_of(relaunch, job_id).attempts
        uri = f"s3://{CHECKPOINTS}/demo/"
        saved = relaunch.checkpoints.newest_complete(uri, job_id)
        return attempts[-1].instance_id if attempts and saved else None

    return eventually(instance)


def start_observing(world: LocalWorld) -> None:
    """Bring up the function that answers warnings with a warning of somebody else's machine: trainings are short."""
    event = load_event("aws.ec2.spot-interruption-warning")
    instance_id = event["detail"]["instance-id"]
    world.publish(event)
    eventually(lambda: any(instance_id in str(each.parameters) for each in list(world.simulator.requests)) or None)


def outcome(relaunch: Dependencies, job_id: str) -> JobHistory:
    """Return the job's history, once the job has ended."""

    def over() -> JobHistory | None:
        history = history_of(relaunch, job_id)
        return history if history.job.state.is_final else None

    return eventually(over)


def output_of(world: LocalWorld, job_id: str) -> list[dict[str, Any]]:
    """Return the log entries of the job's containers, in order."""

    def written() -> list[dict[str, Any]] | None:
        pages = world.client("logs").get_paginator("filter_log_events").paginate(logGroupName=LOG_GROUP)
        lines = [json.loads(event["message"]) for page in pages for event in page["events"]]
        own, current = [], False
        for line in lines:
            current = line.get("job_id") == job_id if line["event"] == "started" else current
            if current:
                own.append(line)
        return own if own and own[-1]["event"] == "finished" else None

    return eventually(written)


def run_task_of(world: LocalWorld, job_id: str) -> dict[str, Any]:
    """Return the parameters of the one RunTask request of a job."""
    (request,) = [
        each.parameters
        for each in world.simulator.requests
        if each.action == "RunTask" and each.parameters.get("startedBy", "").startswith(job_id)
    ]
    return request


def uninterrupted_result(steps: int) -> tuple[float, str]:
    """Return the loss and the weights of the same training without interruption."""
    command = [sys.executable, "-m", "train", "--steps", str(steps)]
    result = subprocess.run(command, cwd=REPOSITORY / "examples", capture_output=True, text=True, check=True, env={})
    last = json.loads(result.stdout.splitlines()[-1])
    return last["loss"], last["weights_sha256"]


def test_a_pushed_training_that_loses_its_machine_resumes_on_another_and_ends_as_if_nothing_had_happened(
    world: LocalWorld, relaunch: Dependencies
) -> None:
    start_observing(world)
    known = job_ids(relaunch)

    assert push(world, "a" * 40) == 202
    job_id = new_job(relaunch, known)
    instance_id = running_on(relaunch, job_id)
    with world.simulator.clock.lock:
        world.simulator.interrupt(instance_id)
    history = outcome(relaunch, job_id)

    assert history.job.state is JobState.SUCCEEDED
    first, second = history.attempts
    assert first.instance_id == instance_id
    assert second.instance_id not in {None, instance_id}
    lines = output_of(world, job_id)
    told = [line["event"] for line in lines if line["event"] in {"started", "stopped", "resumed", "finished"}]
    assert told == ["started", "stopped", "started", "resumed", "finished"]
    assert (lines[-1]["loss"], lines[-1]["weights_sha256"]) == uninterrupted_result(lines[-1]["step"])


def test_the_newest_active_revision_is_pinned_and_the_task_lands_where_it_was_meant_to(
    world: LocalWorld, relaunch: Dependencies
) -> None:
    known = job_ids(relaunch)

    push(world, "b" * 40)
    job_id = new_job(relaunch, known)
    history = outcome(relaunch, job_id)

    request = run_task_of(world, job_id)
    (attempt,) = history.attempts
    instance_type = attempt.placement.offering.instance_type
    assert request["cluster"] == CLUSTER
    derived = relaunch.registry.load_definition(request["taskDefinition"])
    assert derived.tags[DERIVED_FROM].endswith(":task-definition/relaunch-trainer:11")
    (container,) = derived.content["containerDefinitions"]
    assert re.fullmatch(r"\S+/trainer@sha256:[0-9a-f]{64}", container["image"])
    expression = f"attribute:ecs.instance-type == {instance_type}"
    assert request["placementConstraints"] == [{"type": "memberOf", "expression": expression}]


def test_a_delivery_that_github_repeats_starts_nothing_new(world: LocalWorld, relaunch: Dependencies) -> None:
    known = job_ids(relaunch)

    assert push(world, "c" * 40) == 202
    job_id = new_job(relaunch, known)
    assert push(world, "c" * 40) == 202
    assert outcome(relaunch, job_id).job.state is JobState.SUCCEEDED

    assert job_ids(relaunch) - known == {job_id}


def test_an_upload_starts_a_training_that_knows_what_was_uploaded(world: LocalWorld, relaunch: Dependencies) -> None:
    known = job_ids(relaunch)
    key = "images/überblick a+b.manifest"

    world.client("s3").put_object(Bucket=DATASETS, Key=key, Body=b"{}")
    job_id = new_job(relaunch, known)
    history = outcome(relaunch, job_id)

    assert history.job.state is JobState.SUCCEEDED
    request = run_task_of(world, job_id)
    environment = {each["name"]: each["value"] for each in request["overrides"]["containerOverrides"][0]["environment"]}
    assert environment["RELAUNCH_OBJECT_URI"] == f"s3://{DATASETS}/{key}"
