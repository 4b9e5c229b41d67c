"""What in a task definition gives a container its machine: its network, its processes, its disk, or its kernel.

With that the container has the role of the machine too, which ECS lets speak for other machines of the cluster
(docs/security.md, "Machines of our own"). A stack runs such task definitions only if its parameter HostAccess is on.

Sources: ContainerDefinition, LinuxParameters and TaskDefinition (Amazon ECS API Reference); capabilities(7). In awsvpc
mode a route keeps a container from the metadata of the machine, which NET_ADMIN may remove (aws/amazon-ecs-cni-plugins,
`block-instance-metadata`).
"""

import re
from collections.abc import Callable, Iterator

from relaunch.core.task_definitions.member import Found, TaskDefinition, find_values

PARAMETER = "HostAccess"
CAPABILITIES = (
    "ALL",
    "BPF",
    "DAC_READ_SEARCH",
    "NET_ADMIN",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_MODULE",
    "SYS_RAWIO",
)
"""Those with which a program leaves its container, or its network."""
# Accelerators, network adapters for them, and file systems in user space.
_DEVICE = re.compile(r"/dev/(fuse|gdrdrv|neuron[0-9]+|nvidia[a-z0-9-]*|infiniband/[a-z0-9_]+)")
_CONTAINER = "containerDefinitions[]."
_HOST_VOLUME = "volumes[].dockerVolumeConfiguration.driverOpts"
# File systems of the network, and memory. Docker hands type, device and options to mount(2) as they are
# (moby/moby, volume/local/local_unix.go): `proc` and `sysfs` are those of the machine, `overlay` shows any directory.
_OWN_TYPES = ("lustre", "nfs", "nfs4", "tmpfs")
# With them the kernel does not look at the type; a device without a `/` is relative to where Docker runs, the root.
_BINDS = ("bind", "rbind")
# The agent's own, with which ECS mounts EFS: it runs mount(8) on the machine, which finds a disk by its label too, over
# any directory that the option `target` names (aws/amazon-ecs-agent, ecs-init/volumes).
_AGENT_DRIVER = "amazon-ecs-volume-plugin"


def _is_host(found: Found) -> bool:
    return bool(found.value == "host")


def _is_set(found: Found) -> bool:
    return bool(found.value)


def _is_powerful(found: Found) -> bool:
    return str(found.value).upper().removeprefix("CAP_") in CAPABILITIES


def _is_other_device(found: Found) -> bool:
    return _DEVICE.fullmatch(str(found.value)) is None


def _is_of_machine(found: Found) -> bool:
    """Return whether a volume is a directory, a disk or a file system of the machine."""
    if found.holder["dockerVolumeConfiguration"].get("driver") == _AGENT_DRIVER:
        return bool(found.value)
    kind, device, options = (str(found.value.get(name) or "") for name in ("type", "device", "o"))
    is_bind = any(each.strip() in _BINDS for each in options.split(","))
    return is_bind or device.startswith("/") or (bool(kind or device) and kind not in _OWN_TYPES)


MEMBERS: tuple[tuple[str, str, Callable[[Found], bool]], ...] = (
    ("networkMode", "`host`", _is_host),
    ("pidMode", "`host`", _is_host),
    ("ipcMode", "`host`", _is_host),
    (f"{_CONTAINER}privileged", "`true`", _is_set),
    (f"{_CONTAINER}linuxParameters.capabilities.add[]", ", ".join(f"`{each}`" for each in CAPABILITIES), _is_powerful),
    (
        f"{_CONTAINER}linuxParameters.devices[].hostPath",
        "all but accelerators, their network adapters and `/dev/fuse`",
        _is_other_device,
    ),
    ("volumes[].host.sourcePath", "any directory", _is_set),
    (
        _HOST_VOLUME,
        f"a `type` other than {', '.join(f'`{each}`' for each in _OWN_TYPES)}, `o` with `bind` or `rbind`, "
        f"a `device` that begins with `/`; with the driver `{_AGENT_DRIVER}` any: `efsVolumeConfiguration` mounts EFS",
        _is_of_machine,
    ),
)
"""The members, the values of them that give access to the machine, in words, and whether a value is one."""


def find_host_access(definition: TaskDefinition) -> tuple[str, ...]:
    """Return why a stack without HostAccess launches no task of a task definition, in words for the user."""
    found = tuple(dict.fromkeys(_find(definition)))
    if not found:
        return ()
    return (
        f"{', '.join(found)}: this gives a container its machine, which the stack allows only with "
        f"`relaunch deploy {PARAMETER}=on`",
    )


def _find(definition: TaskDefinition) -> Iterator[str]:
    for path, _, applies in MEMBERS:
        for found in find_values(path, definition):
            if applies(found):
                name = path.rpartition(".")[2].removesuffix("[]")
                yield name if isinstance(found.value, bool | dict) else f"{name} {found.value}"
