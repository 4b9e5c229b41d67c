"""Places pods on nodes: resources of nodes, and shares of single GPUs as ACK's scheduler gives them.

A share is of one card, the one with the least memory left that fits (binpack) or the most (spread). A node runs pods
with memory alone, or pods with memory and compute, never both.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from relaunch_local.kubernetes.ack_rules import COMPUTE, COUNT, MEMORY
from relaunch_local.kubernetes.quantities import parse_quantity

Document = dict[str, Any]
CARD = "ALIYUN_COM_GPU_MEM_IDX"
ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"
OTHER_KIND = "node already runs the other kind (memory-only / memory+compute)"


@dataclass(frozen=True)
class Placement:
    """Where a pod goes, and the annotations that it gets for it."""

    node: str
    annotations: Mapping[str, str]


def claims_of(pod: Document) -> list[str]:
    """Return the names of the persistent volume claims of a pod."""
    claims = [each.get("persistentVolumeClaim") for each in pod["spec"].get("volumes") or ()]
    return [each["claimName"] for each in claims if each]


def place(
    pod: Document, nodes: Sequence[Document], pods: Iterable[Document], claims: Iterable[str] = ()
) -> Placement | str:
    """Return where a pod goes, or the scheduler's message why it goes nowhere; `claims` are those of its namespace."""
    missing = [each for each in claims_of(pod) if each not in claims]
    if missing:
        return f'0/{len(nodes)} nodes are available: persistentvolumeclaim "{missing[0]}" not found.'
    bound = [each for each in pods if each["spec"].get("nodeName") and not is_over(each)]
    reasons: Counter[str] = Counter()
    for node in nodes:
        there = [each for each in bound if each["spec"]["nodeName"] == node["metadata"]["name"]]
        problems = _problems(pod, node, there)
        if not problems:
            annotations = choose_card(pod, node, there)
            if not isinstance(annotations, str):
                return Placement(node["metadata"]["name"], annotations)
            problems = [annotations]
        reasons.update(problems)
    said = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "no nodes available"
    return f"0/{len(nodes)} nodes are available: {said}." if nodes else "no nodes available to schedule pods"


def is_over(pod: Document) -> bool:
    """Return whether a pod has ended, and so uses nothing."""
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def requests_of(pod: Document) -> dict[str, Decimal]:
    """Return what the containers of a pod ask for together."""
    total: dict[str, Decimal] = {}
    for container in pod["spec"]["containers"]:
        for name, quantity in (container.get("resources", {}).get("requests") or {}).items():
            total[name] = total.get(name, Decimal(0)) + (parse_quantity(quantity) or Decimal(0))
    return total


def _problems(pod: Document, node: Document, there: Sequence[Document]) -> list[str]:
    labels = node["metadata"].get("labels", {})
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return ["node(s) didn't match Pod's node affinity/selector"]
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] != "PreferNoSchedule" and not _tolerates(pod, taint):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if any(each["type"] == "Ready" and each["status"] != "True" for each in node["status"].get("conditions", ())):
        return ["node(s) had untolerated taint {node.kubernetes.io/not-ready: }"]
    free = {name: parse_quantity(each) or Decimal(0) for name, each in node["status"].get("allocatable", {}).items()}
    for each in there:
        for name, used in requests_of(each).items():
            free[name] = free.get(name, Decimal(0)) - used
    wanted = requests_of(pod).items()
    return [f"Insufficient {name}" for name, asked in sorted(wanted) if asked > free.get(name, Decimal(0))]


def _tolerates(pod: Document, taint: Mapping[str, str]) -> bool:
    """Return whether a pod tolerates a taint ("Taints and Tolerations", Kubernetes documentation)."""
    return any(
        each.get("key", "") in {"", taint["key"]}
        and each.get("effect", "") in {"", taint["effect"]}
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in pod["spec"].get("tolerations") or ()
    )


def choose_card(pod: Document, node: Document, there: Sequence[Document]) -> dict[str, str] | str:
    """Return the annotations of a pod with a share: which cards it is on; none for other pods, or why it fits none."""
    asked = requests_of(pod)
    if MEMORY not in asked:
        return {}
    sharing = [each for each in there if MEMORY in requests_of(each)]
    if any((COMPUTE in requests_of(each)) != (COMPUTE in asked) for each in sharing):
        return OTHER_KIND
    count = int((pod["metadata"].get("labels") or {}).get(COUNT, 1))
    memory = asked[MEMORY] / count
    compute = asked.get(COMPUTE, Decimal(0))
    cards = _free_cards(node, sharing)
    fitting = [(card[0], number) for number, card in enumerate(cards) if card[0] >= memory and card[1] >= compute]
    spread = node["metadata"].get("labels", {}).get("ack.node.gpu.placement") == "spread"
    chosen = sorted(fitting, key=lambda each: (-each[0] if spread else each[0], each[1]))[:count]
    if len(chosen) < count:
        return f"Insufficient GPU memory or compute on {'one GPU' if count == 1 else f'{count} GPUs'}"
    capacity = node["status"]["capacity"]
    size = int(capacity[MEMORY]) // int(capacity[COUNT])
    index = ",".join(str(number) for _, number in chosen)
    return {
        CARD: index,
        "ALIYUN_COM_GPU_MEM_POD": str(int(asked[MEMORY])),
        "ALIYUN_COM_GPU_MEM_DEV": str(size),
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
    }


def as_framework(annotations: Mapping[str, str], pod: Document) -> dict[str, str]:
    """Return the annotations of a share as ACK Pro's scheduler writes them, for the first container."""
    cards = [each for each in annotations.get(CARD, "").split(",") if each]
    if not cards:
        return dict(annotations)
    asked = requests_of(pod)
    written = {ALLOCATION: json.dumps({"0": {card: int(asked[MEMORY] / len(cards)) for card in cards}})}
    if COMPUTE in asked:
        written[CORE_ALLOCATION] = json.dumps({"0": {card: int(asked[COMPUTE]) for card in cards}})
    return {**written, "scheduler.framework.gpushare.assigned": "true"}


def cards_of(pod: Document) -> list[str]:
    """Return the numbers of the cards that a pod has a share of."""
    annotations = pod["metadata"].get("annotations") or {}
    if ALLOCATION in annotations:
        return [card for cards in json.loads(annotations[ALLOCATION]).values() for card in cards]
    return [each for each in annotations.get(CARD, "").split(",") if each]


def _free_cards(node: Document, sharing: Sequence[Document]) -> list[list[Decimal]]:
    """Return the memory in GiB and the compute in percent that are left on each card."""
    capacity = node["status"]["capacity"]
    count = int(capacity.get(COUNT, "0"))
    cards = [[Decimal(capacity[MEMORY]) // count, Decimal(100)] for _ in range(count)]
    for pod in sharing:
        asked = requests_of(pod)
        indexes = cards_of(pod)
        for index in indexes:
            cards[int(index)][0] -= asked[MEMORY] / len(indexes)
            cards[int(index)][1] -= asked.get(COMPUTE, Decimal(0))
    return cards
