"""How the pods of a job of several nodes ended that are gone, by events of the cluster.

A Job that fails deletes the pods that live, and they take their exit codes with them. What tells one that was taken
away, or whose node was lost, from those that were deleted for it, is when a kubelet began to end them: it records an
event before it sends SIGTERM, and none if it does not live. Servers keep events for an hour: as long as that of the
Job's end is there, so is the kubelet's (own_ends). What is recorded of pods on virtual nodes is not documented.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime

from relaunch.adapters.kubernetes.api.models import Event, Job
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.own_ends import COMPLETED, is_on_virtual_node, owner_of_pod
from relaunch.adapters.kubernetes.stop_reports import find_condition
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class RankEnds:
    """What events say about the ends of ranks.

    `is_told`: none is forgotten, so that one that is not there was not recorded. `killed_at` is when a kubelet began to
    end the pod of a rank.
    """

    is_told: bool = False
    killed_at: Mapping[int, datetime] = field(default_factory=dict)


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
    names = {f"{job.metadata.name}-{rank}": rank for rank in range(nodes)}
    killed_at: dict[int, datetime] = {}
    for each in killed:
        rank = names.get(owner_of_pod(each.involved_object.name))
        # One that is recorded again, as the Job deletes what was deleted, is counted.
        at = each.first_timestamp or each.at
        if rank is not None and at is not None:
            killed_at[rank] = min(killed_at.get(rank, at), at)
    return RankEnds(any(each.involved_object.uid == job.metadata.uid for each in ended), killed_at)
