"""The GPUs of machines as ECS accounts for them, and whether a share finds room on one now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from relaunch.core.selection.gpu_share import ShareRequirement

# A timeline entry is for people; a cluster has more cards than they read.
_SHOWN_DEVICES = 4


class GpuSharingMode(StrEnum):
    """How a GPU is shared between containers ("GpuDevice", Amazon ECS API Reference)."""

    IDLE = "IDLE"
    NVIDIA_MPS = "NVIDIA_MPS"
    DEDICATED = "DEDICATED"


_USES: Mapping[str, str] = {GpuSharingMode.IDLE: "idle", GpuSharingMode.DEDICATED: "one container's own"}


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One GPU of a machine; `total_mib` is what the agent registered, `remaining_mib` what new shares can get of it.

    ECS reckons with what it allocated to containers, not with what they use. `instance_id` is the machine's.
    """

    gpu_id: str
    instance_id: str
    sharing_mode: str
    total_mib: int
    remaining_mib: int
    container_count: int = 0

    def __str__(self) -> str:
        """Write `GPU-1f2e of i-…: 1,024 of 15,360 MiB left, shared by 3 containers`."""
        users = f"{self.container_count} container{'' if self.container_count == 1 else 's'}"
        use = _USES.get(self.sharing_mode, f"shared by {users}")
        return f"{self.gpu_id} of {self.instance_id}: {self.remaining_mib:,} of {self.total_mib:,} MiB left, {use}"


def predict_share_fit(share: ShareRequirement, devices: Sequence[GpuDevice]) -> str | None:
    """Say why a share finds no room on these GPUs now, naming what each has left; None when one has room.

    Compute does not count: ECS places by memory alone, and `compute_percent` is a limit.
    """
    asked = share.memory_mib + share.beside_mib
    if any(_has_room(device, asked) for device in devices):
        return None
    wanted = f"{asked:,} MiB of one GPU are asked for"
    if not devices:
        return f"{wanted}; no machine there says that its GPUs can be shared (none is up, or its ECS agent is too old)"
    roomiest = sorted(devices, key=lambda device: (-_room(device), device.gpu_id))
    shown = "; ".join(str(device) for device in roomiest[:_SHOWN_DEVICES])
    others = len(devices) - _SHOWN_DEVICES
    return f"{wanted}; {shown}" + (f"; and {others} more with no more room" if others > 0 else "")


def _has_room(device: GpuDevice, asked_mib: int) -> bool:
    return device.sharing_mode != GpuSharingMode.DEDICATED and device.remaining_mib >= asked_mib


def _room(device: GpuDevice) -> int:
    return 0 if device.sharing_mode == GpuSharingMode.DEDICATED else device.remaining_mib
