"""GPU requests of containers: whole GPUs, the part of a GPU of a fractional instance type, or an NVIDIA MPS share.

Sources: ResourceRequirement, SharingStrategy and NvidiaMpsAllocation (Amazon ECS API Reference).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ALL_GPUS = -1
"""The count of a container that requests `ALL` GPUs of its instance."""

_PART = re.compile(r"0?\.[0-9]+")


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPU request of a container; exactly one of `count`, `part` and `share_mib` is set."""

    count: int = 0
    part: float = 0.0
    share_mib: int = 0
    max_compute_percent: int | None = None

    @property
    def sharing_strategy(self) -> dict[str, Any] | None:
        """The `sharingStrategy` that DescribeTasks returns."""
        if not self.share_mib:
            return None
        percent = {} if self.max_compute_percent is None else {"maxComputePercent": self.max_compute_percent}
        return {"nvidiaMps": {"memory": self.share_mib, **percent}}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that ECS sets in a container that shares a GPU; the container sees it as device 0."""
        if not self.share_mib:
            return {}
        limits = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={self.share_mib}M"}
        if self.max_compute_percent is not None:
            limits["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(self.max_compute_percent)
        return limits


def parse_gpu_request(resource_requirements: Iterable[Mapping[str, Any]]) -> GpuRequest | None:
    """Parse the GPU request of a container; return None if it requests no GPU.

    Raises:
        ValueError: ECS would reject the request.
    """
    others = [each for each in resource_requirements if each.get("type") != "GPU"]
    if any("sharingStrategy" in each for each in others):
        raise ValueError("a sharing strategy can be specified for the type GPU only")
    requests = [_parse(each) for each in resource_requirements if each.get("type") == "GPU"]
    if not requests:
        return None
    if len(requests) > 1:
        raise ValueError("a container has at most one resource requirement of the type GPU")
    return requests[0]


def check_one_kind(requests: Iterable[GpuRequest]) -> None:
    """Raise ValueError if some containers of a task request whole GPUs and others shares."""
    if len({bool(request.share_mib) for request in requests}) > 1:
        raise ValueError("the containers of a task that request GPUs must all use value, or all sharingStrategy")


def _parse(requirement: Mapping[str, Any]) -> GpuRequest:
    has_value = "value" in requirement
    has_strategy = "sharingStrategy" in requirement
    if has_value == has_strategy:
        raise ValueError("a GPU requirement has either value or sharingStrategy")
    return _parse_strategy(requirement["sharingStrategy"]) if has_strategy else _parse_value(str(requirement["value"]))


def _parse_value(value: str) -> GpuRequest:
    if value == "ALL":
        return GpuRequest(count=ALL_GPUS)
    if _PART.fullmatch(value) and float(value) > 0:
        return GpuRequest(part=float(value))
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"GPU value must be a positive integer, a part of a GPU or ALL, not {value!r}")
    return GpuRequest(count=int(value))


def _parse_strategy(strategy: Mapping[str, Any]) -> GpuRequest:
    if set(strategy) != {"nvidiaMps"}:
        raise ValueError("a sharing strategy has exactly one member: nvidiaMps")
    allocation = strategy["nvidiaMps"]
    memory_mib = allocation.get("memory")
    percent = allocation.get("maxComputePercent")
    if not isinstance(memory_mib, int) or memory_mib < 1:
        raise ValueError(f"the memory of nvidiaMps is at least 1 MiB, not {memory_mib!r}")
    if percent is not None and not (isinstance(percent, int) and 1 <= percent <= 100):
        raise ValueError(f"maxComputePercent is 1 to 100, not {percent!r}")
    return GpuRequest(share_mib=memory_mib, max_compute_percent=percent)
