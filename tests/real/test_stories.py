"""Jobs end to end, with the real template, handlers and training in the local world."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest

from fakes.world_jobs import (
    apply,
    ended_machines,
    eventually,
    fleets_of,
    history_of,
    job_ids,
    machines_of,
    new_job,
    outcome,
    output_of,
    push,
    release_when_stopping,
    run_task_of,
    running_on,
    submit,
    uninterrupted_result,
)
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.bootstrap import make_dependencies
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.ownership import Owner
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.derived_revision import DERIVED_FROM
from relaunch.core.machines.machine import Machine
from relaunch.ports import Dependencies
from relaunch.settings import Settings
from relaunch.usecases.arrange_upload_rules import settle_upload_rules, widen_upload_rules
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.register_definitions import compare_definitions, register_definitions
from relaunch_cli.aws.connection import AwsConnection
from relaunch_local.ecs import HostPlan, Purchase
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import DATASETS
from relaunch_local.stack.deployment import STACK
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.training_cluster import CLUSTER, LAUNCH_TEMPLATES, launch_templates

ANOTHER_ROLE = "arn:aws:iam::111122223333:role/relaunch/another"


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


@pytest.mark.usefixtures("held")
def test_a_pushed_training_that_loses_its_machine_resumes_on_another_and_ends_as_if_nothing_had_happened(
    world: LocalWorld, relaunch: Dependencies
) -> None:
    known = job_ids(relaunch)

    assert push(world, "a" * 40) == 202
    job_id = new_job(relaunch, known)
    instance_id = running_on(relaunch, job_id)
    with world.simulator.clock.lock:
        world.simulator.interrupt(instance_id)
    eventually(lambda: len(machines_of(world, relaunch, job_id)) == 2 or None)
    release_when_stopping(world, relaunch, job_id)
    history = outcome(relaunch, job_id)
    old, new = ended_machines(world, relaunch, job_id)

    assert history.job.state is JobState.SUCCEEDED
    first, second = history.attempts
    assert first.instance_id == old.instance_id == instance_id
    assert second.instance_id == new.instance_id
    # The next machine was asked for while the training saved on the old one.
    assert first.stop is not None
    assert new.created_at < first.stop.at
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
    expression = f"ec2InstanceId == {attempt.instance_id} and attribute:ecs.instance-type == {instance_type}"
    assert request["launchType"] == "EC2"
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


def test_refused_spot_is_launched_on_demand_at_once(world: LocalWorld, relaunch: Dependencies) -> None:
    apply(relaunch, "refused", accelerator={"instance_types": ["g5.xlarge"]})
    refusals = world.simulator.fleets.pools.refusals
    refusals["g5.xlarge", Purchase.SPOT, None] = "InsufficientInstanceCapacity"
    try:
        job_id = submit(world, "refused")
        history = outcome(relaunch, job_id)
    finally:
        refusals.clear()

    assert history.job.state is JobState.SUCCEEDED
    *refused, launched = ended_machines(world, relaunch, job_id)
    assert refused
    assert {each.request.purchase for each in refused} == {PurchaseOption.SPOT}
    assert all("(InsufficientInstanceCapacity)" in each.reason and each.instance_id is None for each in refused)
    assert launched.request.purchase is PurchaseOption.ON_DEMAND
    # Nothing is tried twice, and nothing waited for.
    zones = [each.offering.zone for machine in refused for each in machine.request.overrides]
    assert sorted(zones) == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    assert len(history.attempts) == 1
    assert [entry.event for entry in history.timeline if "back" in entry.event] == []


def test_a_job_whose_machine_may_not_be_launched_waits_and_says_which_permission_is_missing(
    world: LocalWorld, relaunch: Dependencies
) -> None:
    apply(relaunch, "forbidden", accelerator={"instance_types": ["g6.xlarge"]})
    # A role in the instance profile that the deployed policy of request_machine does not let it pass.
    gpu = next(each for each in launch_templates() if each.template_id == LAUNCH_TEMPLATES["gpu"])
    foreign = replace(gpu, versions=tuple(replace(each, instance_role_arn=ANOTHER_ROLE) for each in gpu.versions))
    templates = world.simulator.fleets.templates
    templates.put(foreign)
    try:
        job_id = submit(world, "forbidden")

        def sentence() -> str | None:
            waiting = history_of(relaunch, job_id).job.waiting
            return waiting.detail if waiting is not None and "permission" in waiting.detail else None

        said = eventually(sentence)
        cancel_job(job_id, "enough", relaunch)
    finally:
        templates.put(gpu)

    assert "a permission is missing: grant it to the role of the function request_machine" in said
    assert "(UnauthorizedOperation" in said
    assert outcome(relaunch, job_id).job.state is JobState.CANCELLED
    (machine,) = ended_machines(world, relaunch, job_id)
    assert (machine.instance_id, machine.is_alert) == (None, True)


def test_a_machine_without_its_gpu_is_ended_and_replaced(world: LocalWorld, relaunch: Dependencies) -> None:
    apply(relaunch, "lame", accelerator={"instance_types": ["g4dn.xlarge"]})
    with world.simulator.clock.lock:
        world.simulator.fleets.plans.append(HostPlan(gpus=0))

    job_id = submit(world, "lame")
    history = outcome(relaunch, job_id)
    lame, sound = ended_machines(world, relaunch, job_id)

    assert history.job.state is JobState.SUCCEEDED
    assert [attempt.instance_id for attempt in history.attempts] == [sound.instance_id]
    assert "registered with 0 of its 1 GPUs" in [entry.detail for entry in lame.timeline]
    assert lame.registered_at is None


@pytest.mark.usefixtures("held")
def test_a_cancelled_job_ends_its_machine(world: LocalWorld, relaunch: Dependencies) -> None:
    apply(relaunch, "cancelled")
    job_id = submit(world, "cancelled")

    def launched() -> Machine | None:
        return next((each for each in machines_of(world, relaunch, job_id) if each.instance_id), None)

    machine = eventually(launched)
    cancel_job(job_id, "a typing error", relaunch)
    release_when_stopping(world, relaunch, job_id)

    assert outcome(relaunch, job_id).job.state is JobState.CANCELLED
    (ended,) = ended_machines(world, relaunch, job_id)
    assert ended.instance_id == machine.instance_id


def test_a_job_that_needs_a_larger_disk_runs_on_a_capacity_provider(world: LocalWorld, relaunch: Dependencies) -> None:
    apply(relaunch, "large", disk="150GiB")

    job_id = submit(world, "large")
    history = outcome(relaunch, job_id)

    assert history.job.state is JobState.SUCCEEDED
    assert fleets_of(world, job_id) == []
    (strategy,) = run_task_of(world, job_id)["capacityProviderStrategy"]
    assert strategy["capacityProvider"] == "g6-xlarge-on-demand"
