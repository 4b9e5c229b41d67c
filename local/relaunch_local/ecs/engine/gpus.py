"""Assigns the GPUs of an instance to tasks. Shares are counted by memory only: compute is a limit, not a reservation.

Sources: SharingStrategy, NvidiaMpsAllocation and GpuDevice (Amazon ECS API Reference).
"""

from collections.abc import Mapping

from relaunch_local.ecs.engine.model import Instance, JsonObject
from relaunch_local.ecs.rules.gpu_requests import ALL_GPUS
from relaunch_local.ecs.rules.requirements import Requirement


def has_free_gpus(instance: Instance, requirement: Requirement) -> bool:
    """Return whether the instance has the free GPUs, or a GPU with enough free memory, that the task requires."""
    if not requirement.gpu_requests:
        return True
    if requirement.share_mib:
        return _gpu_for_share(instance, requirement.share_mib) is not None
    is_fractional = instance.shape.gpu_partition < 1
    if requirement.gpu_part or is_fractional:
        return bool(instance.free_gpu_ids) and instance.shape.gpu_partition == requirement.gpu_part
    if requirement.wants_all_gpus:
        return bool(instance.gpu_ids) and len(instance.free_gpu_ids) == len(instance.gpu_ids) and not requirement.gpus
    return requirement.gpus <= len(instance.free_gpu_ids)


def assign_gpus(instance: Instance, task_id: str, requirement: Requirement) -> Mapping[str, tuple[str, ...]]:
    """Assign GPUs to a task for which `has_free_gpus` is true; return the GPU ids of each container."""
    if requirement.share_mib:
        return _assign_share(instance, task_id, requirement)
    taken: dict[str, tuple[str, ...]] = {}
    for name, request in requirement.gpu_requests:
        count = len(instance.free_gpu_ids) if request.count == ALL_GPUS else request.count or 1
        taken[name] = tuple(instance.free_gpu_ids[:count])
        del instance.free_gpu_ids[:count]
    return taken


def release_gpus(instance: Instance, task_id: str, pinned: set[str]) -> None:
    """Release the GPUs and shares of a task."""
    for gpu_id in [gpu_id for gpu_id, shares in instance.gpu_shares.items() if task_id in shares]:
        del instance.gpu_shares[gpu_id][task_id]
        if instance.gpu_shares[gpu_id]:
            pinned = pinned - {gpu_id}
        else:
            del instance.gpu_shares[gpu_id]
    free = pinned | set(instance.free_gpu_ids)
    instance.free_gpu_ids = [gpu_id for gpu_id in instance.gpu_ids if gpu_id in free]


def gpu_devices(instance: Instance) -> list[JsonObject] | None:
    """Return `gpuDevices` of DescribeContainerInstances; None if the GPUs cannot be shared."""
    if not instance.gpu_ids or not instance.shape.can_share_gpus:
        return None
    return [_device(instance, gpu_id) for gpu_id in instance.gpu_ids]


def _device(instance: Instance, gpu_id: str) -> JsonObject:
    shares = [mib for task in instance.gpu_shares.get(gpu_id, {}).values() for mib in task]
    mode = "NVIDIA_MPS" if shares else "DEDICATED"
    if gpu_id in instance.free_gpu_ids:
        mode = "IDLE"
    return {
        "gpuId": gpu_id,
        "sharingMode": mode,
        "totalMemoryInMiB": instance.shape.registered_gpu_memory_mib,
        "remainingMemoryInMiB": 0 if mode == "DEDICATED" else _remaining_mib(instance, gpu_id),
        "containerCount": 1 if mode == "DEDICATED" else len(shares),
    }


def _gpu_for_share(instance: Instance, share_mib: int) -> str | None:
    """Return the shared GPU with the least free memory that is enough, else an idle one, else None."""
    if not instance.shape.can_share_gpus:
        return None
    shared = [gpu_id for gpu_id in instance.gpu_shares if _remaining_mib(instance, gpu_id) >= share_mib]
    if shared:
        return min(shared, key=lambda gpu_id: _remaining_mib(instance, gpu_id))
    has_room = instance.free_gpu_ids and instance.shape.registered_gpu_memory_mib >= share_mib
    return instance.free_gpu_ids[0] if has_room else None


def _assign_share(instance: Instance, task_id: str, requirement: Requirement) -> Mapping[str, tuple[str, ...]]:
    gpu_id = _gpu_for_share(instance, requirement.share_mib)
    if gpu_id is None:
        return {}
    if gpu_id in instance.free_gpu_ids:
        instance.free_gpu_ids.remove(gpu_id)
    shares = tuple(request.share_mib for _, request in requirement.gpu_requests)
    instance.gpu_shares.setdefault(gpu_id, {})[task_id] = shares
    return {name: (gpu_id,) for name, _ in requirement.gpu_requests}


def _remaining_mib(instance: Instance, gpu_id: str) -> int:
    taken = sum(mib for task in instance.gpu_shares.get(gpu_id, {}).values() for mib in task)
    return instance.shape.registered_gpu_memory_mib - taken
