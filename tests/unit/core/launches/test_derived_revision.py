from typing import Any

import pytest

from relaunch.core.launches.derived_revision import (
    DERIVED_FROM,
    MAX_FAMILY_LENGTH,
    RevisionChanges,
    TaskDefinition,
    derivation_id,
    derive,
    derives_nothing,
    is_derived_family,
    is_run_by_torchrun,
    source_family,
)
from relaunch.core.revisions.revision import RevisionRow, rank_revisions
from relaunch.core.selection.neuron_devices import FIRST_PORT, NeuronClaim

ARN = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"
PINNED = {"main": "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07"}


def source(*containers: dict[str, Any], tags: dict[str, str] | None = None, **members: Any) -> TaskDefinition:
    listed = list(containers) or [{"name": "main", "image": "trainer:latest", "memory": 1024}]
    return TaskDefinition("trainer", {"containerDefinitions": listed, **members}, tags or {})


def device(number: int, inside: int = 0) -> dict[str, Any]:
    """Return a device of the instance by its number there and in the container, which is 0 for one alone."""
    paths = {"hostPath": f"/dev/neuron{number}", "containerPath": f"/dev/neuron{inside}"}
    return {**paths, "permissions": ["read", "write"]}


def neuron(*devices: int) -> RevisionChanges:
    return RevisionChanges(container="main", neuron=NeuronClaim(devices))


def pinned(original: TaskDefinition) -> TaskDefinition:
    return derive(ARN, original, RevisionChanges(PINNED))


def containers_with(devices: list[int], original: TaskDefinition) -> dict[str, Any]:
    """Return the containers by name of what is derived for a job with these Neuron devices."""
    return {each["name"]: each for each in derive(ARN, original, neuron(*devices)).content["containerDefinitions"]}


def test_images_are_replaced_and_everything_else_is_kept():
    side = {"name": "side", "image": "proxy:1", "environment": [{"name": "A", "value": "1"}]}
    original = source({"name": "main", "image": "x:1", "stopTimeout": 90}, side, cpu="1024", ipcMode="task")

    derived = pinned(original)

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
    derived = pinned(source())

    assert derived.family.startswith("trainer--")
    assert is_derived_family(derived.family)
    assert pinned(source()) == derived


def test_the_family_does_not_depend_on_the_order_in_which_ecs_answers():
    one = TaskDefinition("trainer", {"cpu": "256", **source().content}, {"a": "1", "b": "2"})
    other = TaskDefinition("trainer", {**source().content, "cpu": "256"}, {"b": "2", "a": "1"})

    assert pinned(one).family == pinned(other).family


def test_the_family_is_that_of_earlier_releases_whose_derived_revisions_are_found_again():
    assert pinned(source()).family == "trainer--928b12b3dcf6b3b1"


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
    assert derive(arn, original, changes).family != pinned(source()).family


def test_a_family_of_the_greatest_length_still_has_room_for_the_hash():
    long = TaskDefinition("t" * MAX_FAMILY_LENGTH, source().content)

    assert len(pinned(long).family) == MAX_FAMILY_LENGTH


def test_tags_are_copied_beside_our_own():
    derived = pinned(source(tags={"team": "vision", DERIVED_FROM: "something older"}))

    assert derived.tags == {"team": "vision", DERIVED_FROM: ARN}


def test_of_fifty_tags_the_last_one_is_left_out_for_ours():
    tags = {f"t{number:02}": "x" for number in range(50)}

    derived = pinned(source(tags=tags))

    assert len(derived.tags) == 50
    assert derived.tags[DERIVED_FROM] == ARN


def test_where_ours_is_among_fifty_tags_none_is_left_out():
    tags = {DERIVED_FROM: "something older", **{f"t{number:02}": "x" for number in range(49)}}

    assert pinned(source(tags=tags)).tags == {**tags, DERIVED_FROM: ARN}


def test_one_device_brings_its_port():
    derived = containers_with([3], source())["main"]

    assert derived["linuxParameters"] == {"devices": [device(3)]}
    port = FIRST_PORT + 3
    assert derived["portMappings"] == [{"containerPort": port, "hostPort": port, "protocol": "tcp"}]


def test_the_whole_machine_brings_all_its_ports():
    derived = containers_with([0, 1, 2], source())["main"]

    assert derived["linuxParameters"]["devices"] == [device(0), device(1, 1), device(2, 2)]
    assert [each["hostPort"] for each in derived["portMappings"]] == [FIRST_PORT, FIRST_PORT + 1, FIRST_PORT + 2]


def test_listed_neuron_devices_are_replaced_and_other_devices_and_settings_stay():
    infiniband = {"hostPath": "/dev/infiniband/uverbs0"}
    linux = {"initProcessEnabled": True, "devices": [infiniband, device(0), device(1)]}
    original = source(
        {"name": "main", "image": "x", "linuxParameters": linux, "portMappings": [{"containerPort": 8080}]}
    )

    derived = containers_with([4], original)["main"]

    assert derived["linuxParameters"] == {"initProcessEnabled": True, "devices": [infiniband, device(4)]}
    assert [each["containerPort"] for each in derived["portMappings"]] == [8080, FIRST_PORT + 4]


def test_a_second_container_that_lists_neuron_devices_sees_the_jobs_own_and_others_see_none():
    monitor = {"name": "monitor", "image": "m", "linuxParameters": {"devices": [device(0)]}}
    proxy = {"name": "proxy", "image": "p"}
    derived = containers_with([5], source({"name": "main", "image": "x"}, monitor, proxy))

    assert derived["monitor"]["linuxParameters"]["devices"] == [device(5)]
    assert "portMappings" not in derived["monitor"]
    assert derived["proxy"] == proxy


def test_a_request_that_only_managed_instances_know_is_dropped_for_devices_by_path():
    asked = [{"type": "NeuronDevice", "value": "ALL"}, {"type": "GPU", "value": "1"}]
    derived = containers_with([0], source({"name": "main", "image": "x", "resourceRequirements": asked}))

    assert derived["main"]["resourceRequirements"] == [{"type": "GPU", "value": "1"}]


def test_where_ecs_gives_devices_out_itself_listed_ones_are_removed_and_no_port_is_taken():
    original = source({"name": "main", "image": "x", "linuxParameters": {"devices": [device(0)]}, "stopTimeout": 60})

    derived = containers_with([], original)["main"]

    assert derived == {"name": "main", "image": "x", "linuxParameters": {"devices": []}, "stopTimeout": 60}


def test_changes_that_change_nothing_derive_nothing():
    assert derives_nothing(source(), RevisionChanges())
    with_stop_timeout = source({"name": "main", "image": "x", "stopTimeout": 60})
    assert derives_nothing(with_stop_timeout, neuron())
    assert not derives_nothing(source(), neuron())
    assert derives_nothing(source({"name": "main", "image": PINNED["main"]}), RevisionChanges(PINNED))
    assert not derives_nothing(source(), RevisionChanges(PINNED))
    assert not derives_nothing(source(), neuron(0))


def test_only_the_main_container_without_a_stop_timeout_gets_one():
    main, sidecar = {"name": "main", "image": "x"}, {"name": "proxy", "image": "p"}

    def derived_from(own: dict[str, int]) -> list[dict[str, Any]]:
        changes = RevisionChanges(PINNED, "main")
        return list(derive(ARN, source({**main, **own}, sidecar), changes).content["containerDefinitions"])

    assert derived_from({}) == [{"name": "main", "image": PINNED["main"], "stopTimeout": 90}, sidecar]
    assert derived_from({"stopTimeout": 0}) == [{"name": "main", "image": PINNED["main"], "stopTimeout": 0}, sidecar]


GPU = [{"type": "GPU", "value": "1"}]
ALL = {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}


@pytest.mark.parametrize(
    ("has_gpu", "container", "environment"),
    [
        (False, {"resourceRequirements": GPU}, [ALL]),
        (True, {}, [ALL]),
        (True, {"environment": [{"name": "A", "value": "1"}]}, [{"name": "A", "value": "1"}, ALL]),
        (True, {"environment": [{**ALL, "value": "compute"}]}, [{**ALL, "value": "compute"}]),
        (True, {"secrets": [{"name": ALL["name"], "valueFrom": "arn:x"}]}, None),
        (False, {}, None),
        (False, {"resourceRequirements": [{"type": "NeuronDevice", "value": "ALL"}]}, None),
    ],
    ids=["own GPU", "GPU by RunTask", "beside others", "own value", "own secret", "no GPU", "Neuron"],
)
def test_containers_with_gpus_get_every_driver_capability_unless_they_name_some(has_gpu, container, environment):
    changes = RevisionChanges(PINNED, "main", has_gpu=has_gpu)

    (derived,) = derive(ARN, source({"name": "main", "image": "x", **container}), changes).content[
        "containerDefinitions"
    ]

    assert derived.get("environment") == environment


def test_a_sidecar_gets_driver_capabilities_for_its_own_gpus_alone():
    main, monitor, proxy = ({"name": name, "image": "x"} for name in ("main", "monitor", "proxy"))
    original = source(main, {**monitor, "resourceRequirements": GPU}, proxy)

    derived = derive(ARN, original, RevisionChanges({}, "main", has_gpu=True)).content["containerDefinitions"]

    assert [each.get("environment") for each in derived] == [[ALL], [ALL], None]


@pytest.mark.parametrize("family", ["trainer", "trainer--v2", "trainer--5e07", "trainer-0123456789abcdef", "--"])
def test_other_families_are_not_taken_for_derived_ones(family):
    assert not is_derived_family(family)


def test_a_derived_revision_is_never_the_newest_of_its_source():
    derived = pinned(source()).family
    newer = RevisionRow(f"arn:aws:ecs:us-east-1:111122223333:task-definition/{derived}:9")

    assert rank_revisions([newer, RevisionRow(ARN)], "trainer") == (ARN,)


def test_an_id_of_a_derivation_tells_every_source_and_change_apart() -> None:
    every = [
        (arn, RevisionChanges(images, container, claim))
        for arn in (ARN, f"{ARN}1")
        for images in (PINNED, {})
        for container in ("main", "side")
        for claim in (None, NeuronClaim(()), NeuronClaim((1,)))
    ]

    assert len({derivation_id(*each) for each in every}) == len(every)
    assert derivation_id(ARN, RevisionChanges({"a": "1", "b": "2"})) == derivation_id(
        ARN, RevisionChanges({"b": "2", "a": "1"})
    )


@pytest.mark.parametrize(
    ("family", "source"),
    [
        ("trainer--0123456789abcdef", "trainer"),
        ("trainer--v2--0123456789abcdef", "trainer--v2"),
        ("trainer", "trainer"),
        ("trainer--v2", "trainer--v2"),
    ],
)
def test_a_derived_family_names_its_source(family, source):
    assert source_family(family) == source


TORCHRUN = ("torchrun", "train.py")
TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"


def derived_main(given: tuple[str, ...] = TORCHRUN, **fields: object) -> dict[str, Any]:
    original = source({"name": "main", "image": "x:1", "command": ["python", "train.py"], **fields}, {"name": "side"})
    main, side = derive(ARN, original, RevisionChanges(container="main", command=given)).content["containerDefinitions"]
    assert side == {"name": "side"}
    return main


def test_torchrun_waits_for_its_workers_almost_until_sigkill_and_gets_sigterm_from_an_init_process():
    main = derived_main()

    assert (main["stopTimeout"], main["environment"]) == (90, [{"name": TIMEOUT, "value": "85"}])
    assert main["linuxParameters"] == {"initProcessEnabled": True}
    assert derived_main(stopTimeout=120)["environment"] == [{"name": TIMEOUT, "value": "115"}]
    assert derived_main((), command=["sh", "-c", "exec torchrun train.py"])["linuxParameters"]["initProcessEnabled"]
    assert derived_main((), entryPoint=["torchrun"], command=["train.py"])["environment"]


def test_what_the_definition_says_itself_of_torchrun_is_kept():
    own = [{"name": TIMEOUT, "value": "20"}]
    main = derived_main(environment=own, linuxParameters={"initProcessEnabled": False, "sharedMemorySize": 1024})

    assert main["environment"] == own
    assert main["linuxParameters"] == {"initProcessEnabled": False, "sharedMemorySize": 1024}
    assert "environment" not in derived_main(secrets=[{"name": TIMEOUT, "valueFrom": "arn"}])
    assert "environment" not in derived_main(stopTimeout=5)


def test_a_shell_before_torchrun_gets_no_init_process_and_another_program_nothing():
    assert "linuxParameters" not in derived_main(("sh", "-c", "torchrun train.py"))
    other = derived_main(("python", "train.py"))
    assert "linuxParameters" not in other
    assert "environment" not in other


def test_whether_a_definition_is_run_by_torchrun_is_told_by_what_runs():
    original = source({"name": "main", "image": "x:1", "command": [*TORCHRUN]}, {"name": "side", "command": ["sh"]})

    assert is_run_by_torchrun(original, RevisionChanges(container="main"))
    assert not is_run_by_torchrun(original, RevisionChanges(container="main", command=("python",)))
    assert not is_run_by_torchrun(original, RevisionChanges(container="side"))


def test_what_is_derived_for_torchrun_is_kept_apart():
    commands = ((), ("python", "a.py"), TORCHRUN, ("sh", "-c", "torchrun train.py"))

    assert len({derivation_id(ARN, RevisionChanges(command=each)) for each in commands}) == len(commands)
    assert derivation_id(ARN, RevisionChanges(command=("python", "b.py"))) == derivation_id(
        ARN, RevisionChanges(command=("python", "a.py"))
    )
