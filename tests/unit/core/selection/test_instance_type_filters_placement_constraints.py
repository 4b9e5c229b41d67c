from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_offering, make_revision
from relaunch.core.definitions.accelerator import AcceleratorRequirement
from relaunch.core.offerings.managed_instances import managed_rejection
from relaunch.core.selection.instance_type_filters import find_unjudged, find_unsatisfied
from relaunch.core.selection.notices import find_notices
from unit.core.selection.offered import A10G, ARM, INFERENTIA2, T4, selected

ZONES = {"zone": None, "offered_zones": ("us-east-1a", "us-east-1b")}
OWN = {"capacity_provider": None, "zone": "us-east-1a", "is_own_machine": True}
KNOWN = [
    "attribute:ecs.instance-type == g5.xlarge",
    "attribute:ecs.instance-type =~ g5.*",
    "attribute:ecs.instance-type in [g4dn.xlarge, g5.xlarge]",
    "attribute:ecs.instance-type !~ p3.* and attribute:ecs.os-type == linux",
    "attribute:ecs.availability-zone == us-east-1a",
    "attribute:ecs.os-family == LINUX",
    "attribute:ecs.cpu-architecture == x86_64",
    "agentConnected == true",
    "attribute:ecs.instance-type == g5.xlarge or attribute:rack == 7",
]
UNKNOWN = [
    "attribute:rack == 7",
    "attribute:rack !exists",
    "attribute:ecs.ami-id == ami-0123456789abcdef0",
    "attribute:ecs.subnet-id == subnet-1",
    "agentVersion >= 1.50.0",
    "ec2InstanceId != i-0123456789abcdef0",
    "runningTasksCount == 0",
    "task:group == web",
    "registeredAt > 2026-01-01",
    "attribute:ecs.instance-type =~ (g5|g6)+.*",
    "attribute:ecs.instance-type =~ \\p{Lower}5.*",
    "attribute:com.amazonaws.ecs.capability.logging-driver.splunk exists",
]


@pytest.mark.parametrize("text", KNOWN)
def test_an_offering_that_satisfies_a_constraint_is_kept(text):
    assert find_unsatisfied([text], make_offering(A10G, **OWN)) is None
    assert find_unjudged([text], make_offering(A10G, **OWN)) == ()


@pytest.mark.parametrize(
    ("text", "offering"),
    [
        ("attribute:ecs.instance-type =~ p3.*", make_offering(A10G, **OWN)),
        ("attribute:ecs.instance-type == g5.xlarge", make_offering(T4)),
        ("attribute:ecs.availability-zone == us-east-1c", make_offering(A10G, **OWN)),
        ("attribute:ecs.availability-zone == us-east-1c", make_offering(A10G, **ZONES)),
        ("attribute:ecs.cpu-architecture == x86_64", make_offering(ARM)),
        ("attribute:ecs.os-type == windows", make_offering(A10G)),
        ("agentConnected == false", make_offering(A10G)),
        ("attribute:ecs.instance-type == p3.2xlarge and attribute:rack == 7", make_offering(A10G)),
    ],
)
def test_an_offering_that_cannot_satisfy_a_constraint_is_rejected_with_it(text, offering):
    rejection = find_unsatisfied(["agentConnected == true", text], offering)

    assert rejection is not None
    assert (rejection.reason, rejection.is_permanent) == (f"the task definition's placement constraint is {text}", True)


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_only_an_instance_tells_rejects_what_would_have_to_be_bought(text):
    rejection = find_unsatisfied([text], make_offering(A10G, **OWN))

    assert rejection is not None
    assert rejection.is_permanent
    assert text in rejection.reason
    assert "name a capacity provider" in rejection.reason


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_only_an_instance_tells_is_left_to_the_instances_of_a_capacity_provider(text):
    provided = make_offering(A10G)

    assert find_unsatisfied([text], provided) is None
    assert find_unjudged([text], provided) == (text,)


@pytest.mark.parametrize("zones", [ZONES, {"zone": None}])
def test_a_group_may_start_an_instance_in_another_of_its_zones(zones):
    text = "attribute:ecs.availability-zone == us-east-1b"

    assert find_unjudged([text], make_offering(A10G, **zones)) == (text,)


def test_a_constraint_on_the_type_leaves_that_type_alone():
    revision = make_revision(placement_constraints=("attribute:ecs.instance-type =~ g4dn.*",))
    offerings = [make_offering(A10G, price_usd_per_hour=0.1, **OWN), make_offering(T4, price_usd_per_hour=0.4, **OWN)]

    selection = selected(make_definition(), *offerings, revision=revision)

    assert [each.instance_type.name for each in selection.kept] == ["g4dn.xlarge"]
    assert [each.filter_name for each in selection.rejected] == ["placement-constraints"]


def test_a_task_definition_for_managed_instances_leaves_those_alone():
    managed, other = make_offering(A10G, is_managed=True), make_offering(T4)
    revision = make_revision(is_managed_only=True, network_mode="host")

    selection = selected(make_definition(), managed, other, revision=revision)

    assert selection.kept == (managed,)
    assert [each.filter_name for each in selection.rejected] == ["managed-instances"]


def test_managed_instances_do_not_run_inf1():
    definition = make_definition(accelerator=AcceleratorRequirement(instance_types=("inf1.xlarge", "inf2.xlarge")))
    inf1, inf2 = (replace(INFERENTIA2, name=name) for name in definition.accelerator.instance_types)
    managed = make_offering(inf2, is_managed=True)
    revision = make_revision(network_mode="host", containers=(make_container(gpu_count=0),))

    selection = selected(definition, make_offering(inf1, is_managed=True), managed, revision=revision)
    on_ec2 = selected(definition, make_offering(inf1), revision=revision)

    assert selection.kept == (managed,)
    assert [(each.filter_name, str(each.rejection.reason)) for each in selection.rejected] == [
        ("managed-instances", managed_rejection("inf1.xlarge"))
    ]
    assert on_ec2.kept


def test_a_constraint_that_nobody_can_tell_of_is_noticed():
    revision = make_revision(placement_constraints=("attribute:rack == 7", "agentConnected == true"))
    definition = make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/")

    (notice,) = find_notices(definition, revision, selected(definition, make_offering(A10G), revision=revision))

    assert notice == (
        "whether an instance of g5-xlarge-spot satisfies attribute:rack == 7, as the task definition requires, is not "
        "known before there is one: ECS places no task on one that does not"
    )


def test_warnings_of_a_revision_are_noticed():
    revision = replace(make_revision(), warnings=("it mounts a file system",))
    definition = make_definition(checkpoint_uri="s3://acme-checkpoints/resnet/")

    assert find_notices(definition, revision, None) == ("it mounts a file system",)
