"""Groups of pods by labels, which ACK's scheduler places all together or not at all ("Use Gang scheduling", ACK).

A group is `name` and `min-available`, labels of its pods in one namespace.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy

from relaunch_local.kubernetes.scheduler import Placement, is_over
from relaunch_local.kubernetes.state import Document

NAME = "pod-group.scheduling.sigs.k8s.io/name"
SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"

Place = Callable[[Document, Sequence[Document]], Placement | str]
"""Returns where a pod goes beside these pods, or why it goes nowhere."""


def group_of(pod: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the namespace and the name of the group of a pod, None if it is of none."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {} if isinstance(metadata, Mapping) else {}
    return (metadata["namespace"], labels[NAME]) if isinstance(metadata, Mapping) and NAME in labels else None


def find_held_back(waiting: Iterable[Document], pods: Sequence[Document], place: Place) -> dict[str, str]:
    """Return the pods that wait for the rest of their group, by UID, each with the words of the scheduler."""
    groups: dict[tuple[str, str], list[Document]] = {}
    for pod in waiting:
        if (group := group_of(pod)) is not None:
            groups.setdefault(group, []).append(pod)
    held: dict[str, str] = {}
    for group, members in groups.items():
        needed = int(members[0]["metadata"]["labels"].get(SIZE, "1"))
        bound = [each for each in pods if each["spec"].get("nodeName") and not is_over(each)]
        there = sum(group_of(each) == group for each in bound)
        fitting, why = _fit(members, pods, place)
        if there + fitting < needed:
            words = why or "pods of the group are missing"
            said = f"{words} (pod group {group[1]}: {there + fitting} of {needed})"
            held |= {each["metadata"]["uid"]: said for each in members}
    return held


def _fit(members: Sequence[Document], pods: Sequence[Document], place: Place) -> tuple[int, str]:
    """Return how many pods of a group have room beside each other, and why the first one does not that has none."""
    taken = list(pods)
    fitting = 0
    why = ""
    for pod in members:
        found = place(pod, taken)
        if isinstance(found, str):
            why = why or found
            continue
        placed = deepcopy(pod)
        placed["spec"]["nodeName"] = found.node
        placed["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **found.annotations}
        taken.append(placed)
        fitting += 1
    return fitting, why
