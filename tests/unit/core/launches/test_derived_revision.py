from typing import Any

import pytest

from relaunch.core.launches.derived_revision import (
    DERIVED_FROM,
    MAX_FAMILY_LENGTH,
    RevisionChanges,
    TaskDefinition,
    derive,
    derives_nothing,
    is_derived_family,
)
from relaunch.core.revisions.revision import RevisionRow, rank_revisions
from relaunch.core.selection.neuron_devices import FIRST_PORT, NeuronClaim

ARN = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"
PINNED = {"main": "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07"}


def source(*containers: dict[str, Any], tags: dict[str, str] | None = None, **members: Any) -> TaskDefinition:
    listed = list(containers) or [{"name": "main", "image": "trainer:latest", "memory": 1024}]
    return TaskDefinition("trainer", {"containerDefinitions": listed, **members}, tags or {})


def device(number: int) -> dict[str, Any]:
    path = f"/dev/neuron{number}"
    return {"hostPath": path, "containerPath": path, "permissions": ["read", "write"]}


def neuron(*devices: int) -> RevisionChanges:
    return RevisionChanges(container="main", neuron=NeuronClaim(devices))


def containers_of(definition: TaskDefinition) -> dict[str, Any]:
    return {each["name"]: each for each in definition.content["containerDefinitions"]}


def test_images_are_replaced_and_everything_else_is_kept():
    side = {"name": "side", "image": "proxy:1", "environment": [{"name": "A", "value": "1"}]}
    original = source({"name": "main", "image": "x:1", "stopTimeout": 90}, side, cpu="1024", ipcMode="task")

    derived = derive(ARN, original, RevisionChanges(PINNED))

    assert derived.content == {
        "containerDefinitions": [{"name": "main", "image": PINNED["main"], "stopTimeout": 90}, side],
        "cpu": "1024",
        "ipcMode": "task",
    }


def test_the_source_itself_is_left_as_it_is():
    original = source({"name": "main", "image": "x:1", "linuxParameters": {"devices": [device(0)]}, "portMappings": []})
    before = repr(original)

    derive(ARN, original, RevisionChanges(PINNED, "main", NeuronClaim((3,))))

    assert repr(original) == before


def test_the_family_is_the_sources_with_a_hash_and_the_same_for_the_same():
    derived = derive(ARN, source(), RevisionChanges(PINNED))

    assert derived.family.startswith("trainer--")
    assert is_derived_family(derived.family)
    assert derive(ARN, source(), RevisionChanges(PINNED)) == derived


def test_the_family_does_not_depend_on_the_order_in_which_ecs_answers():
    one = TaskDefinition("trainer", {"cpu": "256", **source().content}, {"a": "1", "b": "2"})
    other = TaskDefinition("trainer", {**source().content, "cpu": "256"}, {"b": "2", "a": "1"})

    assert derive(ARN, one, RevisionChanges(PINNED)).family == derive(ARN, other, RevisionChanges(PINNED)).family


def test_the_family_is_that_of_earlier_releases_whose_derived_revisions_are_found_again():
    assert derive(ARN, source(), RevisionChanges(PINNED)).family == "trainer--928b12b3dcf6b3b1"


@pytest.mark.parametrize(
    ("arn", "original", "changes"),
    [
        ("arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:8", source(), RevisionChanges(PINNED)),
        (ARN, source(cpu="256"), RevisionChanges(PINNED)),
        (ARN, source(tags={"team": "vision"}), RevisionChanges(PINNED)),
        (ARN, source(), RevisionChanges({"main": "other@sha256:00"})),
        (ARN, source(), RevisionChanges(PINNED, "main", NeuronClaim((0,)))),
        (ARN, TaskDefinition("nightly", source().content), RevisionChanges(PINNED)),
    ],
    ids=["another source", "another size", "another tag", "another image", "a device", "another family"],
)
def test_the_hash_covers_everything_that_is_registered(arn, original, changes):
    assert derive(arn, original, changes).family != derive(ARN, source(), RevisionChanges(PINNED)).family


def test_a_family_of_the_greatest_length_still_has_room_for_the_hash():
    long = TaskDefinition("t" * MAX_FAMILY_LENGTH, source().content)

    assert len(derive(ARN, long, RevisionChanges(PINNED)).family) == MAX_FAMILY_LENGTH


def test_tags_are_copied_beside_our_own():
    derived = derive(ARN, source(tags={"team": "vision", DERIVED_FROM: "something older"}), RevisionChanges(PINNED))

    assert derived.tags == {"team": "vision", DERIVED_FROM: ARN}


def test_of_fifty_tags_the_last_one_is_left_out_for_ours():
    tags = {f"t{number:02}": "x" for number in range(50)}

    derived = derive(ARN, source(tags=tags), RevisionChanges(PINNED))

    assert len(derived.tags) == 50
    assert derived.tags[DERIVED_FROM] == ARN


def test_where_ours_is_among_fifty_tags_none_is_left_out():
    tags = {DERIVED_FROM: "something older", **{f"t{number:02}": "x" for number in range(49)}}

    assert derive(ARN, source(tags=tags), RevisionChanges(PINNED)).tags == {**tags, DERIVED_FROM: ARN}


def test_one_device_brings_its_port():
    derived = containers_of(derive(ARN, source(), neuron(3)))["main"]

    assert derived["linuxParameters"] == {"devices": [device(3)]}
    port = FIRST_PORT + 3
    assert derived["portMappings"] == [{"containerPort": port, "hostPort": port, "protocol": "tcp"}]


def test_the_whole_machine_brings_all_its_ports():
    derived = containers_of(derive(ARN, source(), neuron(0, 1, 2)))["main"]

    assert derived["linuxParameters"]["devices"] == [device(0), device(1), device(2)]
    assert [each["hostPort"] for each in derived["portMappings"]] == [FIRST_PORT, FIRST_PORT + 1, FIRST_PORT + 2]


def test_listed_neuron_devices_are_replaced_and_other_devices_and_settings_stay():
    infiniband = {"hostPath": "/dev/infiniband/uverbs0"}
    linux = {"initProcessEnabled": True, "devices": [infiniband, device(0), device(1)]}
    original = source(
        {"name": "main", "image": "x", "linuxParameters": linux, "portMappings": [{"containerPort": 8080}]}
    )

    derived = containers_of(derive(ARN, original, neuron(4)))["main"]

    assert derived["linuxParameters"] == {"initProcessEnabled": True, "devices": [infiniband, device(4)]}
    assert [each["containerPort"] for each in derived["portMappings"]] == [8080, FIRST_PORT + 4]


def test_a_second_container_that_lists_neuron_devices_sees_the_jobs_own_and_others_see_none():
    monitor = {"name": "monitor", "image": "m", "linuxParameters": {"devices": [device(0)]}}
    proxy = {"name": "proxy", "image": "p"}
    derived = containers_of(derive(ARN, source({"name": "main", "image": "x"}, monitor, proxy), neuron(5)))

    assert derived["monitor"]["linuxParameters"]["devices"] == [device(5)]
    assert "portMappings" not in derived["monitor"]
    assert derived["proxy"] == proxy


def test_a_request_that_only_managed_instances_know_is_dropped_for_devices_by_path():
    asked = [{"type": "NeuronDevice", "value": "ALL"}, {"type": "GPU", "value": "1"}]
    derived = containers_of(
        derive(ARN, source({"name": "main", "image": "x", "resourceRequirements": asked}), neuron(0))
    )

    assert derived["main"]["resourceRequirements"] == [{"type": "GPU", "value": "1"}]


def test_where_ecs_gives_devices_out_itself_listed_ones_are_removed_and_no_port_is_taken():
    original = source({"name": "main", "image": "x", "linuxParameters": {"devices": [device(0)]}})

    derived = containers_of(derive(ARN, original, neuron()))["main"]

    assert derived == {"name": "main", "image": "x", "linuxParameters": {"devices": []}}


def test_changes_that_change_nothing_derive_nothing():
    assert derives_nothing(source(), RevisionChanges())
    assert derives_nothing(source(), neuron())
    assert derives_nothing(source({"name": "main", "image": PINNED["main"]}), RevisionChanges(PINNED))
    assert not derives_nothing(source(), RevisionChanges(PINNED))
    assert not derives_nothing(source(), neuron(0))


@pytest.mark.parametrize("family", ["trainer", "trainer--v2", "trainer--5e07", "trainer-0123456789abcdef", "--"])
def test_other_families_are_not_taken_for_derived_ones(family):
    assert not is_derived_family(family)


def test_a_derived_revision_is_never_the_newest_of_its_source():
    derived = derive(ARN, source(), RevisionChanges(PINNED)).family
    rows = [RevisionRow(f"arn:aws:ecs:us-east-1:111122223333:task-definition/{name}") for name in (f"{derived}:9",)]

    assert rank_revisions([*rows, RevisionRow(ARN)], "trainer") == (ARN,)
