"""Registration of derived revisions: the whole source is kept, and each error of ECS is classified."""

from dataclasses import replace
from datetime import timedelta

import boto3
import pytest

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.simulated_region import SimulatedRegion, container
from relaunch.adapters.aws.ecs.derived_revisions import RESPONSE_ONLY_MEMBERS, EcsRegistry
from relaunch.core.launches.derived_revision import DERIVED_FROM, RevisionChanges, TaskDefinition, derive
from relaunch.core.selection.neuron_devices import FIRST_PORT, NeuronClaim
from relaunch.ports import PermanentError, TransientError
from relaunch_local.ecs import Fault, FaultMoment, Timing

EVERYTHING = {
    "taskRoleArn": "arn:aws:iam::111122223333:role/relaunch/trainer-task",
    "executionRoleArn": "arn:aws:iam::111122223333:role/relaunch/trainer-execution",
    "networkMode": "host",
    "volumes": [{"name": "scratch", "host": {"sourcePath": "/mnt"}}],
    "placementConstraints": [{"type": "memberOf", "expression": "attribute:ecs.os-type == linux"}],
    "requiresCompatibilities": ["EC2"],
    "cpu": "2048",
    "memory": "8192",
    "pidMode": "task",
    "ipcMode": "host",
    "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
    "enableFaultInjection": False,
}
DERIVED = TaskDefinition("trainer--0123456789abcdef", {"containerDefinitions": [container()]}, {DERIVED_FROM: "x"})
CHANGES = RevisionChanges({"main": "trainer@sha256:5e07"})


@pytest.fixture
def registry(region: SimulatedRegion) -> EcsRegistry:
    return EcsRegistry(region.ecs)


def test_all_that_ecs_describes_can_be_registered_but_what_we_leave_out():
    model = boto3.client("ecs", region_name="us-east-1").meta.service_model
    described = set(model.shape_for("TaskDefinition").members)
    registered = set(model.operation_model("RegisterTaskDefinition").input_shape.members)

    assert described - registered == RESPONSE_ONLY_MEMBERS


def test_a_derived_revision_keeps_every_member_of_its_source(region, registry):
    main = container(
        image="trainer:latest", stopTimeout=90, ulimits=[{"name": "memlock", "softLimit": -1, "hardLimit": -1}]
    )
    source = region.register("trainer", main, tags=[{"key": "team", "value": "vision"}], **EVERYTHING)

    arn = registry.register(
        derive(source["taskDefinitionArn"], registry.load_definition(source["taskDefinitionArn"]), CHANGES)
    )

    answer = region.ecs.describe_task_definition(taskDefinition=arn, include=["TAGS"])
    described = answer["taskDefinition"]
    assert {name: described[name] for name in EVERYTHING} == EVERYTHING
    changed = [{**source["containerDefinitions"][0], "image": "trainer@sha256:5e07"}]
    assert described["containerDefinitions"] == changed
    assert set(described) == set(source)
    assert {each["key"]: each["value"] for each in answer["tags"]} == {
        "team": "vision",
        DERIVED_FROM: source["taskDefinitionArn"],
    }


def test_a_source_that_was_deregistered_meanwhile_is_still_read(region, registry):
    arn = region.register("trainer")["taskDefinitionArn"]
    region.ecs.deregister_task_definition(taskDefinition=arn)

    assert registry.load_definition(arn).family == "trainer"


def test_a_source_is_read_from_ecs_once(region, registry):
    arn = region.register("trainer")["taskDefinitionArn"]

    assert registry.load_definition(arn) is registry.load_definition(arn)
    assert [each.action for each in region.simulator.requests].count("DescribeTaskDefinition") == 1


def test_tags_that_aws_gave_are_not_given_again(region, registry):
    arn = region.register("trainer")["taskDefinitionArn"]
    region.simulator.definitions.tags[arn] = [{"key": "aws:cloudformation:stack-name", "value": "x"}]

    assert registry.load_definition(arn).tags == {}


def test_a_throttled_registration_is_transient_and_goes_through_later(region, registry):
    region.simulator.faults.fail_next("RegisterTaskDefinition", 1, Fault(FaultMoment.THROTTLE))

    with pytest.raises(TransientError, match="registering task definition trainer--0123456789abcdef"):
        registry.register(DERIVED)
    assert registry.find_active(DERIVED) is None
    assert registry.find_active(DERIVED) is None
    assert registry.register(DERIVED) == registry.find_active(DERIVED)


def test_of_two_registrations_of_a_family_at_once_one_is_transient_and_the_family_is_there() -> None:
    region = SimulatedRegion(timing=Timing(revision_creation=2.0))
    registry = EcsRegistry(region.ecs)
    arn = registry.register(DERIVED)

    with pytest.raises(TransientError, match="Too many concurrent attempts to create a new revision"):
        registry.register(DERIVED)
    assert registry.find_active(DERIVED) == arn


def test_registrations_beyond_the_burst_are_transient(registry):
    outcomes = []
    for number in range(25):
        try:
            outcomes.append(registry.register(replace(DERIVED, family=f"trainer--{number:016x}")))
        except TransientError:
            outcomes.append("")

    assert [bool(arn) for arn in outcomes] == [True] * 20 + [False] * 5


def test_a_refused_registration_is_permanent_and_says_why(region, registry):
    taken = container(portMappings=[{"containerPort": FIRST_PORT, "hostPort": FIRST_PORT}])
    arn = region.register("trainer", taken)["taskDefinitionArn"]
    derived = derive(arn, registry.load_definition(arn), RevisionChanges({}, "main", NeuronClaim((0,))))

    with pytest.raises(PermanentError, match="host port is mapped twice"):
        registry.register(derived)


def test_content_that_botocore_does_not_know_is_permanent():
    definition = TaskDefinition("trainer--0123456789abcdef", {"containerDefinitions": [container()], "colour": "red"})

    with pytest.raises(PermanentError, match="colour"):
        EcsRegistry(boto3.client("ecs", region_name="us-east-1")).register(definition)


def test_a_revision_that_somebody_else_deregisters_first_is_not_counted(region, registry):
    for _ in range(2):
        registry.register(DERIVED)
    inactive = Fault(FaultMoment.BEFORE, "InvalidParameterException", "The specified task definition is inactive.")
    region.simulator.faults.fail_next("DeregisterTaskDefinition", 1, inactive)

    assert registry.deregister_family(DERIVED.family) == 1


def test_a_definition_that_may_not_be_read_is_permanent_and_not_taken_for_gone(region, registry):
    denied = Fault(FaultMoment.BEFORE, "AccessDeniedException", "no identity-based policy allows it")
    region.simulator.faults.fail_next("DescribeTaskDefinition", 1, denied)

    with pytest.raises(PermanentError, match="AccessDenied"):
        registry.find_active(DERIVED)


class TestLaunchesOfOneDefinition:
    """Each of them needs the same derived revision, and ECS tells 20 times a second what is ACTIVE."""

    MINUTE = timedelta(minutes=1)

    def test_one_question_serves_all_of_a_minute(self, region):
        clock = FakeClock(NOW)
        registry = EcsRegistry(region.ecs, clock)
        arn = registry.register(DERIVED)
        asked = len(region.simulator.requests)

        assert {registry.find_active(DERIVED, self.MINUTE) for _ in range(200)} == {arn}
        assert len(region.simulator.requests) == asked + 1
        clock.advance(timedelta(seconds=61))
        registry.find_active(DERIVED, self.MINUTE)
        assert len(region.simulator.requests) == asked + 2

    def test_that_there_is_none_is_never_an_old_answer(self, region):
        registry = EcsRegistry(region.ecs, FakeClock(NOW))
        assert registry.find_active(DERIVED, self.MINUTE) is None

        arn = registry.register(DERIVED)

        assert registry.find_active(DERIVED, self.MINUTE) == arn

    def test_who_asks_for_the_present_state_gets_it_and_so_does_everybody_after(self, region):
        registry = EcsRegistry(region.ecs, FakeClock(NOW))
        arn = registry.register(DERIVED)
        assert registry.find_active(DERIVED, self.MINUTE) == arn

        region.ecs.deregister_task_definition(taskDefinition=arn)

        assert registry.find_active(DERIVED, self.MINUTE) == arn
        assert registry.find_active(DERIVED) is None
        assert registry.find_active(DERIVED, self.MINUTE) is None
