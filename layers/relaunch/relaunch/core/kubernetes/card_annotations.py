"""Which GPUs of its node a pod has a share of, by the annotations of ACK's schedulers.

ACK Pro's writes for each container what it has of each card, as JSON: memory in GiB, and compute in percent. The open
one, and older ones of ACK, write the numbers of the cards, of several separated by commas, and give each an equal part.
Sources: kubeflow/arena (pkg/apis/types/const.go) and koordinator (pkg/scheduler/plugins/ack, its tests of "ACK v2"
pods), which read both; AliyunContainerService/gpushare-scheduler-extender (pkg/utils/const.go).
"""

import json
from collections import Counter
from collections.abc import Mapping

from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_MEMORY
from relaunch.core.kubernetes.node_fit import CardUse

CARD_INDEX = "ALIYUN_COM_GPU_MEM_IDX"
ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"


def read_cards(annotations: Mapping[str, str], resources: Mapping[str, int]) -> dict[int, CardUse]:
    """Return what a pod with these resources has of each card; empty if its annotations do not say it."""
    memory = _read_allocation(annotations.get(ALLOCATION, ""))
    if memory:
        compute = _read_allocation(annotations.get(CORE_ALLOCATION, "")) or Counter(
            dict.fromkeys(memory, resources.get(GPU_COMPUTE, 0))
        )
        return {card: CardUse(count, compute[card]) for card, count in memory.items()}
    indices = [int(each) for each in annotations.get(CARD_INDEX, "").split(",") if each.strip().isdecimal()]
    part = resources.get(GPU_MEMORY, 0) // max(len(indices), 1)
    return {card: CardUse(part, resources.get(GPU_COMPUTE, 0)) for card in indices}


def _read_allocation(text: str) -> Counter[int]:
    """Return the sums of all containers by card; none of a text of another form."""
    found = Counter[int]()
    try:
        for cards in json.loads(text).values():
            found.update({int(card): int(count) for card, count in cards.items()})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Counter()
    return found
