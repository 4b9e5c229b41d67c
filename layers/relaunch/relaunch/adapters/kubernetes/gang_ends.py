"""How the pods of a job of several nodes ended that are gone, by events of the cluster.

A Job that fails deletes the pods that live, and they take their exit codes with them. What tells one that was taken
away, or whose node was lost, from those that were deleted for it, is when a kubelet began to end them: it records an
event before it sends SIGTERM, and none if it does not live. Servers keep events for an hour: as long as that of the
Job's end is there, so is the kubelet's (own_ends). What is recorded of pods on virtual nodes is not documented.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from relaunch.adapters.kubernetes.api.models import Event, Job, Pod
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.own_ends import (
    COMPLETED,
    ends_program,
    is_on_virtual_node,
    owner_of_pod,
    stops_program,
)
from relaunch.adapters.kubernetes.stop_reports import find_condition
from relaunch.core.records import dataclass

# All pods of a Job are made in one pass of its controller.
_MADE_WITHIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class RankEnds:
    """What events say about the ends of ranks.

    `is_told`: none is forgotten, so that one that is not there was not recorded. `killed_at` is when a kubelet began to
    end the pod of a rank. `running` are the ranks whose program ran then: torchrun's ends with 1 for that, as it does
    for a failure. `replaced_at` is the same of pods in whose place servers before 1.25 have made others.
    """

    is_told: bool = False
    killed_at: Mapping[int, datetime] = field(default_factory=dict)
    running: frozenset[int] = frozenset()
    replaced_at: Mapping[int, datetime] = field(default_factory=dict)


def reason_of_end(job: Job) -> str:
    """Return the reason of the event with which a Job finished by itself; empty if it did not, or it tells nothing."""
    is_known = STOP_REASON in job.metadata.annotations or job.metadata.deletion_timestamp is not None
    if is_known or is_on_virtual_node(job):
        return ""
    failed = find_condition(job.status.conditions, "Failed")
    is_complete = find_condition(job.status.conditions, "Complete") is not None
    return failed.reason if failed is not None else COMPLETED * is_complete


def read_ends(job: Job, nodes: int, ended: Iterable[Event], killed: Iterable[Event]) -> RankEnds:
    """Return what events say about the ranks of a Job; `ended` are those of ends of Jobs, `killed` of kubelets."""
    killed_at: dict[int, datetime] = {}
    running: set[int] = set()
    for rank, at, each in _by_rank(job, nodes, killed):
        killed_at[rank] = min(killed_at.get(rank, at), at)
        running |= {rank} if stops_program(job, each) else set()
    is_told = any(each.involved_object.uid == job.metadata.uid for each in ended)
    return RankEnds(is_told, killed_at, frozenset(running))


def has_late_pod(pods: Iterable[Pod]) -> bool:
    """Return whether a pod of a Job was made after the others, as one in the place of another is."""
    made = [at for each in pods if (at := each.metadata.creation_timestamp) is not None]
    return bool(made) and max(made) - min(made) > _MADE_WITHIN


def read_replaced(job: Job, nodes: int, pods: Iterable[Pod], killed: Iterable[Event]) -> Mapping[int, datetime]:
    """Return when kubelets began to end pods of a Job that goes on, by rank, which are gone: others are in their place.

    `killed` are the events of kubelets.
    """
    there = {each.metadata.name for each in pods}
    found: dict[int, datetime] = {}
    for rank, at, each in _by_rank(job, nodes, killed):
        if each.involved_object.name not in there:
            found[rank] = min(found.get(rank, at), at)
    return found


def _by_rank(job: Job, nodes: int, killed: Iterable[Event]) -> Iterator[tuple[int, datetime, Event]]:
    """Yield the events of kubelets that end programs of the Job, each with its rank and when that began."""
    names = {f"{job.metadata.name}-{rank}": rank for rank in range(nodes)}
    for each in killed:
        rank = names.get(owner_of_pod(each.involved_object.name))
        # One that is recorded again, as the Job deletes what was deleted, is counted.
        at = each.first_timestamp or each.at
        if rank is not None and at is not None and ends_program(job, each):
            yield rank, at, each
