from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.scripted_aws import ScriptedAws
from fakes.simulated_region import SimulatedRegion
from relaunch.adapters.aws.ecs.revisions import EcsRevisions, read_revision
from relaunch.core.revisions.revision import ContainerRequirement
from relaunch.ports import NoActiveRevisionError, PermanentError, TransientError


def arn(revision: int, family: str = "trainer") -> str:
    return f"arn:aws:ecs:us-east-1:111122223333:task-definition/{family}:{revision}"


def definition(
    revision: int = 7,
    family: str = "trainer",
    status: str = "ACTIVE",
    container: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    main = {"name": "main", "image": "trainer:latest", "essential": True, **(container or {})}
    return {
        "taskDefinitionArn": arn(revision, family),
        "family": family,
        "revision": revision,
        "status": status,
        "containerDefinitions": [main],
        **more,
    }


@pytest.fixture
def revisions(ecs: ScriptedAws) -> EcsRevisions:
    return EcsRevisions(ecs.client)


def test_newest_revision_costs_one_call(ecs, revisions):
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(12))

    assert revisions.newest_active("trainer").arn == arn(12)
    assert ecs.requests == [("DescribeTaskDefinition", {"taskDefinition": "trainer"})]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(definition(13, status="INACTIVE"), id="inactive"),
        pytest.param(definition(13, status="DELETE_IN_PROGRESS"), id="being-deleted"),
        pytest.param(definition(40, family="trainer-large"), id="sibling-family"),
    ],
)
def test_where_the_head_is_wrong_all_pages_are_read_and_compared_as_numbers(ecs, revisions, head):
    ecs.answer("DescribeTaskDefinition", taskDefinition=head)
    pages = [[arn(1), arn(10), arn(11)], [arn(12), arn(2), arn(9)], [arn(40, "trainer-large"), arn(3)]]
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=pages[0], nextToken="2")
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=pages[1], nextToken="3")
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=pages[2])
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(12))

    assert revisions.newest_active("trainer").revision == 12
    assert ecs.sent("ListTaskDefinitions") == [
        {"familyPrefix": "trainer", "status": "ACTIVE"},
        {"familyPrefix": "trainer", "status": "ACTIVE", "nextToken": "2"},
        {"familyPrefix": "trainer", "status": "ACTIVE", "nextToken": "3"},
    ]
    assert ecs.sent("DescribeTaskDefinition")[1] == {"taskDefinition": arn(12)}


def test_revision_that_is_deregistered_while_we_look_gives_way_to_the_next(ecs, revisions):
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(12, status="INACTIVE"))
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=[arn(10), arn(11)])
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(11, status="INACTIVE"))
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(10))

    assert revisions.newest_active("trainer").revision == 10


def test_revisions_that_keep_vanishing_are_left_to_a_later_look(ecs, revisions):
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(5, status="INACTIVE"))
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=[arn(number) for number in range(1, 5)])
    for number in (4, 3, 2):
        ecs.answer("DescribeTaskDefinition", taskDefinition=definition(number, status="INACTIVE"))

    with pytest.raises(TransientError, match="family trainer"):
        revisions.newest_active("trainer")


def test_family_that_ecs_does_not_know_has_no_active_revision(ecs, revisions):
    ecs.refuse("DescribeTaskDefinition", "ClientException", "Unable to describe task definition.")
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=[])

    with pytest.raises(NoActiveRevisionError, match="the family trainer has no ACTIVE revision"):
        revisions.newest_active("trainer")


def test_family_with_inactive_revisions_only_has_no_active_revision(ecs, revisions):
    ecs.answer("DescribeTaskDefinition", taskDefinition=definition(3, status="INACTIVE"))
    ecs.answer("ListTaskDefinitions", taskDefinitionArns=[])

    with pytest.raises(NoActiveRevisionError):
        revisions.newest_active("trainer")


@pytest.mark.parametrize("operation", ["DescribeTaskDefinition", "ListTaskDefinitions"])
def test_throttled_look_is_transient(ecs, revisions, operation):
    if operation == "ListTaskDefinitions":
        ecs.answer("DescribeTaskDefinition", taskDefinition=definition(status="INACTIVE"))
    ecs.refuse(operation, "ThrottlingException", "Rate exceeded")

    with pytest.raises(TransientError, match="trainer"):
        revisions.newest_active("trainer")


def test_look_without_an_answer_is_transient(ecs, revisions):
    ecs.fail("DescribeTaskDefinition", ReadTimeoutError(endpoint_url="http://127.0.0.1:9"))

    with pytest.raises(TransientError, match="describing task definition trainer"):
        revisions.newest_active("trainer")


def test_missing_permission_is_permanent_and_not_a_missing_family(ecs, revisions):
    ecs.refuse("DescribeTaskDefinition", "AccessDeniedException", "not authorized")

    with pytest.raises(PermanentError, match="not authorized") as caught:
        revisions.newest_active("trainer")
    assert not isinstance(caught.value, NoActiveRevisionError)


def test_everything_that_placement_needs_is_parsed():
    revision = read_revision(
        definition(
            7,
            container={
                "cpu": 3072,
                "memory": 12288,
                "memoryReservation": 8192,
                "stopTimeout": 60,
                "resourceRequirements": [{"type": "GPU", "value": "2"}],
                "portMappings": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 0}],
                "linuxParameters": {
                    "devices": [{"hostPath": f"/dev/{name}"} for name in ("neuron0", "neuron11", "fuse")]
                },
            },
            networkMode="host",
            cpu="4096",
            memory="15360",
            taskRoleArn="arn:aws:iam::111122223333:role/relaunch/task",
            executionRoleArn="arn:aws:iam::111122223333:role/relaunch/execution",
            runtimePlatform={"cpuArchitecture": "ARM64", "operatingSystemFamily": "LINUX"},
            placementConstraints=[
                {"type": "distinctInstance"},
                {"type": "memberOf", "expression": "agentConnected == true"},
            ],
        )
    )

    assert (revision.arn, revision.family, revision.revision) == (arn(7), "trainer", 7)
    assert (revision.network_mode, revision.architecture) == ("host", "ARM64")
    assert (revision.vcpus, revision.memory_mib, revision.placement_constraint_count) == (4.0, 15360, 2)
    assert revision.task_role_arn == "arn:aws:iam::111122223333:role/relaunch/task"
    assert revision.execution_role_arn == "arn:aws:iam::111122223333:role/relaunch/execution"
    assert revision.containers == (
        ContainerRequirement(
            name="main",
            image="trainer:latest",
            gpu_count=2,
            memory_mib=8192,
            vcpus=3.0,
            host_ports=(8080, 81),
            neuron_devices=("/dev/neuron0", "/dev/neuron11"),
            stop_timeout_seconds=60,
            is_essential=True,
        ),
    )


def test_defaults_of_ecs_hold_for_what_is_not_said():
    revision = read_revision(definition())

    assert (revision.network_mode, revision.architecture) == ("bridge", "X86_64")
    assert (revision.vcpus, revision.memory_mib, revision.placement_constraint_count) == (0.0, 0, 0)
    assert (revision.task_role_arn, revision.execution_role_arn) == ("", "")
    assert revision.containers == (ContainerRequirement("main", "trainer:latest", is_essential=True),)


def test_what_a_task_definition_says_to_torchrun_is_known_by_name():
    said = {
        "environment": [{"name": "PET_NPROC_PER_NODE", "value": "4"}, {"name": "PET_NNODES", "value": "1"}],
        "secrets": [{"name": "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "valueFrom": "arn"}],
    }
    (main,) = read_revision(definition(container=said)).containers

    assert main.torchrun_variables == ("PET_NPROC_PER_NODE", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT")


@pytest.mark.parametrize(
    ("container", "members", "expected"),
    [
        ({}, {}, False),
        ({"linuxParameters": {"initProcessEnabled": True}}, {"ipcMode": "task"}, False),
        ({"linuxParameters": {"sharedMemorySize": 1024}}, {}, True),
        ({"linuxParameters": {"tmpfs": [{"containerPath": "/dev/shm", "size": 1024}]}}, {}, True),  # noqa: S108
        ({"mountPoints": [{"sourceVolume": "a", "containerPath": "/dev/shm"}]}, {}, True),  # noqa: S108
        ({}, {"ipcMode": "host"}, True),
    ],
)
def test_whether_a_container_has_shared_memory_of_its_own_is_known(container, members, expected):
    (main,) = read_revision(definition(container=container, **members)).containers

    assert main.has_shared_memory is expected


def test_task_without_a_size_asks_for_what_ecs_reserves_for_its_containers():
    described = definition(container={"cpu": 1024, "memory": 16384, "memoryReservation": 2048})
    log = {"name": "log", "image": "log", "essential": False, "cpu": 512, "memory": 256}
    described["containerDefinitions"].append(log)

    revision = read_revision(described)

    assert (revision.vcpus, revision.memory_mib) == (1.5, 2304)


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ("1024", "2048", (1.0, 2048)),
        ("1 vCPU", "2 GB", (1.0, 2048)),
        ("0.5 vcpu", "0.5GB", (0.5, 512)),
        ("", "", (0.0, 0)),
        ("many", "much", (0.0, 0)),
    ],
)
def test_size_of_a_task_is_read_in_both_its_forms(cpu, memory, expected):
    revision = read_revision(definition(cpu=cpu, memory=memory))

    assert (revision.vcpus, revision.memory_mib) == expected


@pytest.mark.parametrize(
    ("requirements", "whole", "share_mib", "part"),
    [
        pytest.param([{"type": "GPU", "value": "4"}], 4, 0, 0.0, id="whole cards"),
        pytest.param([{"type": "GPU", "value": "ALL"}], 1, 0, 0.0, id="all is at least one"),
        pytest.param([{"type": "GPU", "value": "9" * 5_000}], 1, 0, 0.0, id="a number that nobody reads"),
        pytest.param(
            [{"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 2048, "maxComputePercent": 30}}}],
            0,
            2048,
            0.0,
            id="a share of a card",
        ),
        pytest.param([{"type": "GPU", "value": "0.25"}], 0, 0, 0.25, id="a part of a card"),
        pytest.param([{"type": "InferenceAccelerator", "value": "eia"}], 0, 0, 0.0, id="another kind"),
        pytest.param([], 0, 0, 0.0, id="none"),
    ],
)
def test_gpus_are_counted(requirements, whole, share_mib, part):
    (container,) = read_revision(definition(container={"resourceRequirements": requirements})).containers

    assert (container.gpu_count, container.gpu_share_mib, container.gpu_partition) == (whole, share_mib, part)


@pytest.mark.parametrize(
    ("mode", "expected"), [("bridge", (8080,)), ("host", (8080, 9090)), ("awsvpc", ()), ("none", ())]
)
def test_ports_of_the_machine_depend_on_the_network_mode(mode, expected):
    mappings = [
        {"containerPort": 80, "hostPort": 8080},
        {"containerPort": 9090},
        {"containerPort": 53, "hostPort": 53, "protocol": "udp"},
        {"containerPortRange": "10000-10010"},
    ]

    revision = read_revision(definition(container={"portMappings": mappings}, networkMode=mode))

    assert revision.containers[0].host_ports == expected


def test_what_gives_a_container_its_machine_is_refused_unless_the_stack_allows_it(region):
    region.register("trainer", networkMode="host")

    (reason,) = EcsRevisions(region.ecs).newest_active("trainer").refusals

    assert reason == (
        "networkMode host: this gives a container its machine, which the stack allows only with "
        "`relaunch deploy HostAccess=on`"
    )
    assert EcsRevisions(region.ecs, has_host_access=True).newest_active("trainer").refusals == ()


# the same before the simulator, whose rules are those of ECS


def test_newest_of_more_than_ten_beside_a_sibling_with_more():
    region = SimulatedRegion(throttling=False)
    for family in ["trainer"] * 12 + ["trainer-large"] * 14:
        region.register(family)

    assert EcsRevisions(region.ecs).newest_active("trainer").arn == arn(12)


def test_inactive_head_is_passed_over(region):
    for _ in range(12):
        region.register("trainer")
    for name in ("trainer:12", "trainer:11"):
        region.ecs.deregister_task_definition(taskDefinition=name)

    assert EcsRevisions(region.ecs).newest_active("trainer").arn == arn(10)


@pytest.mark.parametrize("family", ["trainer", "train"])
def test_family_without_an_active_revision_is_a_clear_error(region, family):
    region.register("trainer")
    region.register("trainer-large")
    region.ecs.deregister_task_definition(taskDefinition="trainer:1")

    with pytest.raises(NoActiveRevisionError, match=f"the family {family} has no ACTIVE revision"):
        EcsRevisions(region.ecs).newest_active(family)


class TestThousandsOfEventsAtOnce:
    """DescribeTaskDefinition allows 20 requests per second: one answer serves every event that is older than it."""

    EVENT_AT = NOW
    ASKED_AT = NOW + timedelta(seconds=10)

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock(self.ASKED_AT)

    @pytest.fixture
    def revisions(self, ecs: ScriptedAws, clock: FakeClock) -> EcsRevisions:
        ecs.answer("DescribeTaskDefinition", taskDefinition=definition(12))
        ecs.answer("DescribeTaskDefinition", taskDefinition=definition(13))
        return EcsRevisions(ecs.client, clock)

    def test_older_events_are_answered_by_one_question(self, ecs, revisions):
        found = {revisions.newest_active("trainer", self.EVENT_AT).revision for _ in range(100)}

        assert found == {12}
        assert len(ecs.requests) == 1

    @pytest.mark.parametrize(
        "event_at",
        [
            pytest.param(ASKED_AT + timedelta(seconds=1), id="it came after the question"),
            pytest.param(ASKED_AT - timedelta(seconds=1), id="of the same second: timestamps of events are truncated"),
            pytest.param(None, id="of unknown time"),
        ],
    )
    def test_an_event_sees_what_was_registered_before_it(self, revisions, event_at):
        revisions.newest_active("trainer", self.EVENT_AT)

        assert revisions.newest_active("trainer", event_at).revision == 13

    def test_after_a_minute_it_is_asked_again(self, revisions, clock):
        revisions.newest_active("trainer", self.EVENT_AT)
        clock.advance(timedelta(seconds=61))

        assert revisions.newest_active("trainer", self.EVENT_AT).revision == 13


def test_a_container_may_be_not_essential():
    sidecar = {"name": "setup", "image": "setup:1", "essential": False}
    described = definition()
    described["containerDefinitions"] = [*described["containerDefinitions"], sidecar]

    assert read_revision(described).essential_names == frozenset({"main"})
