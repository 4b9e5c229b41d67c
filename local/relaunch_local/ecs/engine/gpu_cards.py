"""Which cards of an instance a task gets. Shares are counted by memory alone: compute is a limit, nothing is reserved.

Sources: SharingStrategy, NvidiaMpsAllocation and GpuDevice (Amazon ECS API Reference).
"""

from collections.abc import Mapping

from relaunch_local.ecs.engine.model import Host, JsonObject
from relaunch_local.ecs.rules.gpu_requests import ALL_GPUS
from relaunch_local.ecs.rules.requirements import Requirement


def has_cards(host: Host, requirement: Requirement) -> bool:
    """Whether the instance has the cards free, or a card with enough memory left, that the task asks for."""
    if not requirement.gpu_requests:
        return True
    if requirement.share_mib:
        return _card_for_share(host, requirement.share_mib) is not None
    is_fractional = host.shape.gpu_partition < 1
    if requirement.gpu_part or is_fractional:
        return bool(host.free_gpu_ids) and host.shape.gpu_partition == requirement.gpu_part
    if requirement.wants_all_gpus:
        return bool(host.gpu_ids) and len(host.free_gpu_ids) == len(host.gpu_ids) and not requirement.gpus
    return requirement.gpus <= len(host.free_gpu_ids)


def take_cards(host: Host, task_id: str, requirement: Requirement) -> Mapping[str, tuple[str, ...]]:
    """Take what `has_cards` promised; answers the cards of each container."""
    if requirement.share_mib:
        return _share_card(host, task_id, requirement)
    taken: dict[str, tuple[str, ...]] = {}
    for name, request in requirement.gpu_requests:
        count = len(host.free_gpu_ids) if request.count == ALL_GPUS else request.count or 1
        taken[name] = tuple(host.free_gpu_ids[:count])
        del host.free_gpu_ids[:count]
    return taken


def free_cards(host: Host, task_id: str, pinned: set[str]) -> None:
    """Give back the cards and shares of a task."""
    for gpu_id in [gpu_id for gpu_id, shares in host.gpu_shares.items() if task_id in shares]:
        del host.gpu_shares[gpu_id][task_id]
        if host.gpu_shares[gpu_id]:
            pinned = pinned - {gpu_id}
        else:
            del host.gpu_shares[gpu_id]
    free = pinned | set(host.free_gpu_ids)
    host.free_gpu_ids = [gpu_id for gpu_id in host.gpu_ids if gpu_id in free]


def gpu_devices(host: Host) -> list[JsonObject] | None:
    """The cards as DescribeContainerInstances answers them; None where they cannot be shared."""
    if not host.gpu_ids or not host.shape.can_share_gpus:
        return None
    return [_device(host, gpu_id) for gpu_id in host.gpu_ids]


def _device(host: Host, gpu_id: str) -> JsonObject:
    shares = [mib for task in host.gpu_shares.get(gpu_id, {}).values() for mib in task]
    mode = "IDLE" if gpu_id in host.free_gpu_ids else "NVIDIA_MPS" if shares else "DEDICATED"
    return {
        "gpuId": gpu_id,
        "sharingMode": mode,
        "totalMemoryInMiB": host.shape.registered_gpu_memory_mib,
        "remainingMemoryInMiB": 0 if mode == "DEDICATED" else _remaining_mib(host, gpu_id),
        "containerCount": 1 if mode == "DEDICATED" else len(shares),
    }


def _card_for_share(host: Host, share_mib: int) -> str | None:
    """The card that is shared already and has the least left of those with enough; an idle one only if none has."""
    if not host.shape.can_share_gpus:
        return None
    shared = [gpu_id for gpu_id in host.gpu_shares if _remaining_mib(host, gpu_id) >= share_mib]
    if shared:
        return min(shared, key=lambda gpu_id: _remaining_mib(host, gpu_id))
    has_room = host.free_gpu_ids and host.shape.registered_gpu_memory_mib >= share_mib
    return host.free_gpu_ids[0] if has_room else None


def _share_card(host: Host, task_id: str, requirement: Requirement) -> Mapping[str, tuple[str, ...]]:
    gpu_id = _card_for_share(host, requirement.share_mib)
    if gpu_id is None:
        return {}
    if gpu_id in host.free_gpu_ids:
        host.free_gpu_ids.remove(gpu_id)
    shares = tuple(request.share_mib for _, request in requirement.gpu_requests)
    host.gpu_shares.setdefault(gpu_id, {})[task_id] = shares
    return {name: (gpu_id,) for name, _ in requirement.gpu_requests}


def _remaining_mib(host: Host, gpu_id: str) -> int:
    taken = sum(mib for task in host.gpu_shares.get(gpu_id, {}).values() for mib in task)
    return host.shape.registered_gpu_memory_mib - taken
