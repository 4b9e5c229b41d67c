"""The GPUs of container instances as ECS accounts for them, and whether a share fits on one now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from relaunch.core.selection.gpu_share import ShareRequirement

# The most devices named in a timeline entry.
_SHOWN_DEVICES = 4


class GpuSharingMode(StrEnum):
    """How a GPU is shared between containers ("GpuDevice", Amazon ECS API Reference)."""

    IDLE = "IDLE"
    NVIDIA_MPS = "NVIDIA_MPS"
    DEDICATED = "DEDICATED"


_USE_OF_MODE: Mapping[str, str] = {GpuSharingMode.IDLE: "idle", GpuSharingMode.DEDICATED: "one container's own"}


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A GPU; `total_mib` is the memory registered by the ECS agent, `remaining_mib` what is left for new shares.

    ECS subtracts the memory allocated to containers, whether or not they use it. `instance_id` is the EC2 instance's.
    """

    gpu_id: str
    instance_id: str
    sharing_mode: str
    total_mib: int
    remaining_mib: int
    container_count: int = 0

    def __str__(self) -> str:
        """Return `GPU-1f2e of i-…: 1,024 of 15,360 MiB left, shared by 3 containers`."""
        users = f"{self.container_count} container{'' if self.container_count == 1 else 's'}"
        use = _USE_OF_MODE.get(self.sharing_mode, f"shared by {users}")
        return f"{self.gpu_id} of {self.instance_id}: {self.remaining_mib:,} of {self.total_mib:,} MiB left, {use}"


def explain_missing_share(share: ShareRequirement, devices: Sequence[GpuDevice]) -> str | None:
    """Return why a share does not fit on any of these GPUs now, with what each has left; None if it fits.

    Only memory is compared: ECS does not reserve compute, `compute_percent` is a limit.
    """
    required = share.memory_mib + share.other_containers_mib
    if any(_fits(device, required) for device in devices):
        return None
    wanted = f"{required:,} MiB of one GPU are asked for"
    if not devices:
        return f"{wanted}; no machine there says that its GPUs can be shared (none is up, or its ECS agent is too old)"
    ordered = sorted(devices, key=lambda device: (-_remaining_mib(device), device.gpu_id))
    shown = "; ".join(str(device) for device in ordered[:_SHOWN_DEVICES])
    others = len(devices) - _SHOWN_DEVICES
    return f"{wanted}; {shown}" + (f"; and {others} more with no more room" if others > 0 else "")


def _fits(device: GpuDevice, required_mib: int) -> bool:
    return device.sharing_mode != GpuSharingMode.DEDICATED and device.remaining_mib >= required_mib


def _remaining_mib(device: GpuDevice) -> int:
    return 0 if device.sharing_mode == GpuSharingMode.DEDICATED else device.remaining_mib
