import queue
from pathlib import Path
from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.stopping import MainProcess, check_sigterm
from relaunch_cli.repository_setup.task_definition import DATA_FOLDER, is_registered, task_definition
from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_local.ecs import LocalProcesses, ProcessSpec
from unit.cli.repository_setup.trainings import STACK


def container_of(training: Training) -> Any:
    return task_definition(training, "relaunch-vision", STACK)["containerDefinitions"][0]


def test_whole_gpus_are_resources_of_the_container():
    container = container_of(Training("vision", count=4, vcpus=8, memory_gib=32, stop_timeout_seconds=60))

    assert container["resourceRequirements"] == [{"type": "GPU", "value": "4"}]
    assert (container["cpu"], container["memory"], container["stopTimeout"]) == (8192, 32768, 60)
    assert container["linuxParameters"] == {"sharedMemorySize": 16384}
    assert container["image"].endswith(":vision-latest")


@pytest.mark.parametrize("kind", AcceleratorKind)
def test_shares_neuron_devices_and_driver_capabilities_are_added_by_the_launch(kind):
    container = container_of(Training("vision", kind))

    assert ("resourceRequirements" in container) is (kind is AcceleratorKind.GPU)
    # Only both together: an attempt that was interrupted while it compiled would end those after it.
    neuron = {
        "NEURON_COMPILE_CACHE_URL": "s3://acme-checkpoints/vision/neuron-cache/",
        "NEURON_CC_FLAGS": "--retry_failed_compilation",
    }
    assert {each["name"]: each["value"] for each in container["environment"]} == {
        "AWS_DEFAULT_REGION": "eu-central-1",
        **(neuron if kind is AcceleratorKind.NEURON else {}),
    }
    assert "entryPoint" not in container


def test_mountpoint_has_its_device_and_capability():
    container = container_of(Training("vision", is_mounting=True))
    parameters = container["linuxParameters"]

    assert [device["hostPath"] for device in parameters["devices"]] == ["/dev/fuse"]
    assert parameters["capabilities"] == {"add": ["SYS_ADMIN"]}
    process = MainProcess(tuple(container["entryPoint"]), ("python", "train.py"))
    assert check_sigterm("vision", process).verdict is Verdict.OK


# Stands for Mountpoint, as neither it nor a container of its own is here: it copies the objects, and mounts nothing.
STAND_IN = '[ "$1 $2 $3" = "--read-only --region eu-central-1" ] && cp "$(dirname "$0")/$4"/* "$5"\n'
READING = 'echo "read $(cat {folder}/labels.csv)"; trap "echo saved; exit 0" TERM; echo; while :; do sleep 0.02; done'


@pytest.mark.parametrize(("bucket", "output"), [("acme-data", ["read cat", "saved"]), ("another", [])])
def test_a_training_reads_a_file_of_the_bucket_and_gets_sigterm_and_does_not_start_without_it(
    tmp_path: Path, bucket: str, output: list[str]
):
    (tmp_path / bucket).mkdir()
    (tmp_path / bucket / "labels.csv").write_text("cat")
    (tmp_path / "mount-s3").write_text(f"#!/bin/sh\n{STAND_IN}")
    (tmp_path / "mount-s3").chmod(0o755)
    lines: queue.Queue[str] = queue.Queue()
    codes: queue.Queue[int] = queue.Queue()
    processes = LocalProcesses(
        lambda _target, _time, line: lines.put(line), base_environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    training = ("sh", "-c", READING.format(folder=DATA_FOLDER))
    command = (*container_of(Training("vision", is_mounting=True))["entryPoint"], *training)
    command = tuple(each.replace(DATA_FOLDER, f"{tmp_path}{DATA_FOLDER}") for each in command)

    process = processes.start(
        ProcessSpec("arn", "vision", "main", "i", command, {}, lambda code, _reason: codes.put(code))
    )
    try:
        if output:
            assert [lines.get(timeout=60) for _ in range(2)] == [output[0], ""]
            process.terminate()
            assert lines.get(timeout=60) == output[1]
        assert (codes.get(timeout=60) == 0) is bool(output)
    finally:
        processes.close()


@pytest.mark.parametrize("kind", AcceleratorKind)
def test_what_was_registered_is_known_again_and_a_change_is_seen(kind):
    wanted = task_definition(Training("vision", kind, is_mounting=True), "relaunch-vision", STACK)
    changed = task_definition(Training("vision", kind, memory_gib=9, is_mounting=True), "relaunch-vision", STACK)
    with aws_in_process():
        ecs = make_client("ecs")
        registered = ecs.register_task_definition(**wanted)["taskDefinition"]

        assert is_registered(wanted, registered)
        assert not is_registered(changed, registered)


def test_lists_are_compared_by_name_because_ecs_may_order_them_otherwise():
    first, second = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}

    assert is_registered({"environment": [first, second]}, {"environment": [second, first]})
    assert not is_registered({"environment": [first]}, {"environment": [first, second]})
    assert not is_registered({"command": ["a", "b"]}, {"command": ["b", "a"]})
    assert not is_registered({"environment": [first]}, {})
    assert not is_registered({"environment": [first]}, {"environment": {}})
    assert not is_registered({"a": {}}, {"a": []})


def test_what_was_removed_is_seen_and_what_ecs_adds_is_not():
    container = {"name": "main", "essential": True, "mountPoints": [], "cpu": 0}
    found = {
        "family": "a",
        "containerDefinitions": [container],
        "revision": 3,
        "status": "ACTIVE",
        "networkMode": "bridge",
    }

    assert is_registered({"family": "a", "containerDefinitions": [{"name": "main"}], "tags": [{"key": "a"}]}, found)
    container["stopTimeout"] = 90
    assert not is_registered({"family": "a", "containerDefinitions": [{"name": "main"}]}, found)
