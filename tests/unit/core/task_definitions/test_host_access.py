"""What gives a container its machine is found, and what trainings usually ask for is not."""

from typing import Any

import botocore.session
import pytest

from relaunch.core.task_definitions.host_access import MEMBERS, find_host_access
from unit.core.task_definitions.test_verdicts import container, leaves, volume


def linux(**parameters: Any) -> dict[str, Any]:
    return container(linuxParameters=parameters)


def docker_volume(driver: str = "local", **options: str) -> dict[str, Any]:
    return volume(dockerVolumeConfiguration={"driver": driver, "driverOpts": options})


def device(path: str) -> dict[str, Any]:
    return linux(devices=[{"hostPath": path}])


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ({**container(), "networkMode": "host"}, "networkMode host"),
        ({**container(), "pidMode": "host"}, "pidMode host"),
        ({**container(), "ipcMode": "host"}, "ipcMode host"),
        (container(privileged=True), "privileged"),
        (linux(capabilities={"add": ["SYS_ADMIN"]}), "add SYS_ADMIN"),
        (linux(capabilities={"add": ["IPC_LOCK", "cap_sys_module", "ALL"]}), "add cap_sys_module, add ALL"),
        (linux(capabilities={"add": ["NET_ADMIN"]}), "add NET_ADMIN"),
        (device("/dev/nvme0n1"), "hostPath /dev/nvme0n1"),
        (device("/dev/mem"), "hostPath /dev/mem"),
        (device("/dev/neuron0/../mem"), "hostPath /dev/neuron0/../mem"),
        (volume(host={"sourcePath": "/var/run/docker.sock"}), "sourcePath /var/run/docker.sock"),
        (volume(host={"sourcePath": "/mnt"}), "sourcePath /mnt"),
        (docker_volume(type="none", o="bind", device="/"), "driverOpts"),
        (docker_volume(type="none", o="bind", device="."), "driverOpts"),
        (docker_volume(type="tmpfs", o="ro,rbind", device="etc"), "driverOpts"),
        (docker_volume(type="nfs", device="/dev/nvme0n1"), "driverOpts"),
        (docker_volume(type="proc", device="proc"), "driverOpts"),
        (docker_volume(device="LABEL=/"), "driverOpts"),
        (docker_volume("amazon-ecs-volume-plugin", device="LABEL=/"), "driverOpts"),
        (
            docker_volume("amazon-ecs-volume-plugin", type="efs", device="fs-1:/", target="/etc/systemd/system"),
            "driverOpts",
        ),
        (docker_volume(type="overlay", o="lowerdir=/etc:/var", device="overlay"), "driverOpts"),
        (
            {**container(privileged=True, linuxParameters={"capabilities": {"add": ["BPF"]}}), "networkMode": "host"},
            "networkMode host, privileged, add BPF",
        ),
    ],
)
def test_what_gives_a_container_its_machine_is_found(definition: dict[str, Any], found: str) -> None:
    (reason,) = find_host_access(definition)

    assert reason.startswith(f"{found}: this gives a container its machine, ")
    assert "`relaunch deploy HostAccess=on`" in reason


@pytest.mark.parametrize(
    "definition",
    [
        container(),
        {**container(privileged=False, readonlyRootFilesystem=False, user="root"), "networkMode": "awsvpc"},
        {**container(), "networkMode": "bridge", "pidMode": "task", "ipcMode": "task"},
        linux(capabilities={"add": ["IPC_LOCK", "SYS_NICE", "SYS_PTRACE"], "drop": ["ALL"]}),
        *(device(f"/dev/{name}") for name in ("fuse", "neuron0", "nvidia-uvm", "infiniband/uverbs0", "gdrdrv")),
        volume(host={}),
        docker_volume(type="tmpfs", device="tmpfs", o="size=100m,uid=1000"),
        docker_volume(type="nfs", device=":/data", o="addr=10.0.0.1,rw"),
        docker_volume(type="lustre", device="10.0.0.1@tcp:/scratch"),
        docker_volume(size="10G"),
        docker_volume("rexray/ebs", volumetype="gp3", size="100"),
        docker_volume("amazon-ecs-volume-plugin"),
        volume(dockerVolumeConfiguration={"scope": "task"}),
        volume(efsVolumeConfiguration={"fileSystemId": "fs-1"}),
    ],
    ids=str,
)
def test_what_trainings_ask_for_beside_it_is_left_to_them(definition: dict[str, Any]) -> None:
    assert find_host_access(definition) == ()


def test_the_members_are_those_of_register_task_definition() -> None:
    model = botocore.session.get_session().get_service_model("ecs")
    known = set(leaves(model.operation_model("RegisterTaskDefinition").input_shape))

    assert {path for path, _, _ in MEMBERS} <= known
