"""What `apply` and `plan` say of task definitions as ECS describes them, with machines of the stack's own."""

from typing import Any

import pytest

from fakes.builders import make_instance_type, make_offering
from fakes.cli_session import CliSession, flat
from fakes.simulated_region import SimulatedRegion, gpu, member_of
from relaunch.adapters.aws.ecs.revisions import read_revision

T4 = make_instance_type("g4dn.xlarge", accelerator_model="T4", gpu_memory_mib=15_360)
P3 = make_instance_type("p3.2xlarge", accelerator_model="V100", gpu_memory_mib=16_384)
FOUR_T4 = make_instance_type("g4dn.12xlarge", accelerator_model="T4", gpu_count=4, logical_gpu_count=4)
OWN = {"capacity_provider": None, "is_own_machine": True, "disk_gib": 100}
DEFINITION = """\
jobs:
  g1: {task_definition: trainer, accelerator: {gpu: {count: 1}}, max_runtime: 1h, checkpoint: "s3://acme-checkpoints/g1/"}
"""


def describe(**members: Any) -> dict[str, Any]:
    """Return a registered task definition as DescribeTaskDefinition returns it."""
    container = {
        "name": "main", "image": "acme/train:1", "cpu": 2_048, "memory": 8_192, "resourceRequirements": gpu(1),
        **members.pop("container", {}),
    }  # fmt: skip
    request = {"family": "trainer", "containerDefinitions": [container], **members}
    region = SimulatedRegion()
    region.ecs.register_task_definition(**request)
    answer: dict[str, Any] = region.ecs.describe_task_definition(taskDefinition="trainer")["taskDefinition"]
    return answer


@pytest.fixture
def apply(relaunch, session: CliSession, tmp_path):
    session.offerings.available = (
        make_offering(T4, zone="us-east-1a", price_usd_per_hour=0.16, **OWN),
        make_offering(P3, zone="us-east-1b", price_usd_per_hour=0.5, **OWN),
    )
    file = tmp_path / "relaunch.yaml"
    file.write_text(DEFINITION)

    def run(*arguments: str, **members: Any) -> Any:
        session.deps.revisions.active[:] = [read_revision(describe(**members))]
        return relaunch(*(arguments or ("apply",)), str(file), columns=400)

    return run


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("attribute:ecs.instance-type =~ p3.*", "p3.2xlarge"),
        ("attribute:ecs.availability-zone == us-east-1b", "p3.2xlarge"),
        ("attribute:ecs.os-type == linux", "g4dn.xlarge"),
    ],
)
def test_a_job_runs_where_its_task_definition_allows_it(apply, expression, chosen):
    assert apply(placementConstraints=member_of(expression)).exit_code == 0
    planned = apply("plan", placementConstraints=member_of(expression))

    assert f"would run on {chosen}" in flat(planned.stdout)


def test_several_gpus_without_shared_memory_are_noted_and_refuse_nothing(apply, tmp_path, session):
    session.offerings.available = (make_offering(FOUR_T4, price_usd_per_hour=0.16, **OWN),)
    file = tmp_path / "relaunch.yaml"
    file.write_text(DEFINITION.replace("count: 1", "count: 4"))
    note = "set `linuxParameters.sharedMemorySize` of the container main"
    for command in ("plan", "apply"):
        result = apply(command)
        assert result.exit_code == 0
        assert note in flat(result.stdout + result.stderr)
        enough = apply(command, container={"linuxParameters": {"sharedMemorySize": 1024}})
        assert note not in flat(enough.stdout + enough.stderr)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("attribute:ecs.availability-zone == eu-central-1c", "the task definition's placement constraint is"),
        ("attribute:rack == 7", "is not known before it is bought"),
        ("agentVersion >= 1.50.0", "is not known before it is bought"),
        ("task:group == web", "is not known before it is bought"),
    ],
)
def test_a_constraint_that_no_machine_is_known_to_satisfy_is_refused(apply, expression, reason):
    result = apply(placementConstraints=member_of(expression))

    assert result.exit_code != 0
    assert "placement-constraints removed the last 2 of 2 offerings" in result.stderr
    assert expression in result.stderr
    assert reason in result.stderr


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"networkMode": "host"},
            "trainer:1: networkMode host: this gives a container its machine, which the stack allows only with "
            "`relaunch deploy HostAccess=on`",
        ),
        (
            {"requiresCompatibilities": ["FARGATE"]},
            "trainer:1: requiresCompatibilities FARGATE: Relaunch runs",
        ),
        (
            {"runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}},
            "operatingSystemFamily WINDOWS_SERVER_2022_CORE: Relaunch runs Linux tasks only",
        ),
        ({"volumes": [{"name": "data", "configuredAtLaunch": True}]}, "configuredAtLaunch True of data"),
        ({"container": {"restartPolicy": {"enabled": True}}}, "restartPolicy.enabled True of main"),
        ({"container": {"logConfiguration": {"logDriver": "splunk"}}}, "logging-driver.splunk exists is not known"),
        (
            {"container": {"memory": 65_536, "memoryReservation": 32_768}},
            "the task reserves 32,768 MiB",
        ),
    ],
)
def test_a_task_definition_that_relaunch_cannot_run_is_refused(apply, session, members, reason):
    result = apply(**members)

    assert result.exit_code != 0
    assert reason in result.stderr
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet"]


def test_memory_above_what_ecs_reserves_needs_no_larger_machine(apply):
    planned = apply("plan", container={"memory": 65_536, "memoryReservation": 8_192})

    assert "would run on g4dn.xlarge" in flat(planned.stdout)


def test_what_a_job_has_to_expect_is_noted(apply):
    result = apply(ephemeralStorage={"sizeInGiB": 100})

    assert result.exit_code == 0
    assert "ephemeralStorage.sizeInGiB 100: it is for Fargate" in result.stderr
