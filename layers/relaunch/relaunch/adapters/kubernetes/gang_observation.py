"""The task of a job of several nodes, by its Job and its pods: the ranks, seen as one.

Each rank is observed as the pod of any task is. What differs is why a pod is deleted: mostly because the Job failed
with another one. So a pod that ended by itself says how; one that was deleted, or is gone, was taken away if that began
before the first error, and followed it otherwise (core.lifecycle.gangs judges them by that).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.adapters.kubernetes.api.models import Job, Pod
from relaunch.adapters.kubernetes.gang_ends import RankEnds
from relaunch.adapters.kubernetes.gang_manifest import INDEX
from relaunch.adapters.kubernetes.labels import NODES, STOP_REASON, TASK
from relaunch.adapters.kubernetes.observation import TaskSigns, age_of, deleted_at, find_announcement, observe_with_pod
from relaunch.adapters.kubernetes.stop_reports import (
    POD_DELETED,
    containers_without_pod,
    find_condition,
    report_of_pod,
    report_of_task,
)
from relaunch.core.launches.launch import ContainerObservation, ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.core.lifecycle.gangs import see_as_one
from relaunch.core.records import dataclass

JOB_FAILED = "its Job had failed by then"
OUT_OF_REACH = "does not end, as on a node that is out of reach"

_TERMINAL = frozenset({"Succeeded", "Failed"})
_PHASES = tuple(TaskPhase)
# A kubelet that lives has reported the end of a pod by then, whatever ignores SIGTERM.
_REPORTED_WITHIN = timedelta(seconds=30)
# "Container main for pod training/a-1-1-2-x7k2p failed with…", "Pod training/a-1-1-2-x7k2p has condition…"
_NAMED = re.compile(r"\b[Pp]od [^\s/]+/(?P<pod>\S+)")


@dataclass(frozen=True, slots=True)
class GangSigns:
    """What there is about a task beside its Job and its pods; see `observe_task`."""

    warned_at: datetime | None = None
    refusal: StopReport | None = None
    queue: str = ""
    ends: RankEnds = field(default_factory=RankEnds)


def nodes_of(job: Job | None, pods: Sequence[Pod]) -> int:
    """Return how many pods the task has: 1 but for a job of several nodes."""
    labels = job.metadata.labels if job is not None else pods[0].metadata.labels
    text = labels.get(NODES, "")
    return int(text) if text.isdecimal() and text.isascii() else 1


def rank_of(pod: Pod) -> int:
    """Return the rank of a pod; one without an index counts as the first."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() and text.isascii() else 0


def lacks_ranks(job: Job, pods: Sequence[Pod]) -> bool:
    """Return whether a Job of several nodes has no pod for some of them."""
    return len({rank_of(each) for each in pods}) < nodes_of(job, pods)


def observe_ranks(job: Job | None, pods: Sequence[Pod], signs: GangSigns, read_at: datetime) -> TaskObservation:
    """Return the state of a task of several pods by its Job, None if it is deleted, and its pods; one of them is there.

    The pods must have been read after the Job, from `read_at` on: one that ended since then may still be in `pods`.
    """
    nodes = nodes_of(job, pods)
    own = {rank: [each for each in pods if rank_of(each) == rank] for rank in range(nodes)}
    counting = {rank: max(found, key=_counts, default=None) for rank, found in own.items()}
    first_error = _first_error(counting)
    known = {
        rank: _observe_rank(job, own[rank], counting[rank], rank, signs, first_error)
        for rank in own
        if job is not None or own[rank]
    }
    known = dict(_with_starts(known, signs.ends))
    template = job.spec.template.spec if job is not None else pods[0].spec
    seen = see_as_one(known, nodes, template.containers[0].name if template.containers else None, read_at)
    warned_at, warning = _warned(job, counting, known, signs, read_at)
    seen = _with_lost(seen, job, counting, signs.ends)
    name = job.metadata.name if job is not None else pods[0].metadata.labels.get(TASK, "")
    made = [at for each in pods if (at := each.metadata.creation_timestamp) is not None]
    seen = replace(seen, task_id=name, rank_count=1, live_ranks=(), newest_pod_at=max(made, default=None))
    seen = replace(seen, warned_at=warned_at, warning=warning)
    return seen if seen.phase.is_ending or seen.phase is TaskPhase.RUNNING else _waiting(seen, known)


def _with_starts(known: Mapping[int, TaskObservation], ends: RankEnds) -> Mapping[int, TaskObservation]:
    """Return the ranks, of which those whose pods are gone, and ran, started as the last that tells it.

    They have not waited for others, and no other has waited for them.
    """
    latest = max((each.started_at for each in known.values() if each.started_at is not None), default=None)
    untold = {rank: each for rank, each in known.items() if each.started_at is None and rank in ends.running}
    return {**known, **{rank: replace(each, started_at=latest) for rank, each in untold.items()}}


def _counts(pod: Pod) -> tuple[bool, bool, str, str]:
    """Return what orders the pods of a rank: one that ends counts before one that an old server made in its place."""
    return (pod.metadata.deletion_timestamp is not None, *age_of(pod))


def _first_error(counting: Mapping[int, Pod | None]) -> datetime | None:
    return min((at for each in counting.values() if (at := _failed_at(each)) is not None), default=None)


def _failed_at(pod: Pod | None) -> datetime | None:
    """Return when a pod failed by itself; None if it did not."""
    if pod is None or pod.status.phase != "Failed" or pod.metadata.deletion_timestamp is not None:
        return None
    ended = (each.state.terminated for each in (*pod.status.init_container_statuses, *pod.status.container_statuses))
    return max((each.finished_at for each in ended if each is not None and each.finished_at is not None), default=None)


def _observe_rank(
    job: Job | None, pods: Sequence[Pod], pod: Pod | None, rank: int, signs: GangSigns, first_error: datetime | None
) -> TaskObservation:
    is_done = job is not None and pod is None and _has_finished(job, rank, signs.ends)
    seen = observe_with_pod(job, pods, pod, TaskSigns(None, signs.refusal, is_done, signs.queue))
    if job is not None and pod is None and is_done:
        seen = replace(seen, phase=TaskPhase.STOPPED)
    if not seen.phase.is_ending:
        return seen
    report = _report_of_rank(job, pod, rank, signs.ends, first_error, has_finished=is_done)
    follows = ReportedCause.PEER_ENDED in report.causes
    containers: Mapping[str, ContainerObservation] = seen.containers
    if job is not None and pod is None and not is_done:
        containers = containers_without_pod(job) if _is_named(job, rank) else {}
    return replace(seen, report=report, containers=containers, warned_at=None if follows else seen.warned_at)


def _has_finished(job: Job, rank: int, ends: RankEnds) -> bool:
    """Return whether the program of a rank whose pod is gone had ended by itself with 0."""
    if find_condition(job.status.conditions, "Complete") is not None:
        return ends.is_told and rank not in ends.killed_at
    # While the others run a pod that is removed had no reason to be but its end.
    return find_condition(job.status.conditions, "Failed") is None and _is_completed(job, rank)


def _is_completed(job: Job, rank: int) -> bool:
    """Return whether `completedIndexes`, such as `0,2-4`, has a rank."""
    for part in filter(None, job.status.completed_indexes.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal() and int(first) <= rank <= int(last or first):
            return True
    return False


def _report_of_rank(
    job: Job | None,
    pod: Pod | None,
    rank: int,
    ends: RankEnds,
    first_error: datetime | None,
    *,
    has_finished: bool,
) -> StopReport:
    if pod is not None and _tells_itself(pod):
        return report_of_pod(pod)
    report = report_of_task(job, pod, has_finished=has_finished)
    if job is None or ReportedCause.STOP_CALLED in report.causes or has_finished:
        return report
    if pod is None and rank in ends.running and _is_named(job, rank):
        # Its program ended for the deletion of its pod, with the code for which the Job failed.
        return StopReport(report.text, frozenset({ReportedCause.INTERRUPTED}))
    # That of a pod which was replaced before.
    killed_at = ends.killed_at.get(rank)
    began_at = min(filter(None, (deleted_at(pod) if pod is not None else None, killed_at)), default=None)
    if began_at is not None and first_error is not None and began_at < first_error:
        return StopReport(POD_DELETED, frozenset({ReportedCause.INTERRUPTED}))
    failed = find_condition(job.status.conditions, "Failed", "FailureTarget")
    if _is_named(job, rank) or (first_error is None and (failed is None or not _names_any(failed.message))):
        return report
    return StopReport(JOB_FAILED, frozenset({ReportedCause.INTERRUPTED, ReportedCause.PEER_ENDED}))


def _tells_itself(pod: Pod) -> bool:
    """Return whether a pod says how it ended: by itself, or as one that is taken away."""
    ended = pod.status.phase in _TERMINAL and pod.metadata.deletion_timestamp is None
    return ended or find_announcement(pod) is not None


def _is_named(job: Job, rank: int) -> bool:
    """Return whether a Job failed by the pod of this rank, as its failure policy says."""
    failed = find_condition(job.status.conditions, "Failed", "FailureTarget")
    found = _NAMED.search(failed.message) if failed is not None else None
    return found is not None and found["pod"].startswith(f"{job.metadata.name}-{rank}-")


def _names_any(message: str) -> bool:
    return _NAMED.search(message) is not None


def _warned(
    job: Job | None,
    counting: Mapping[int, Pod | None],
    known: Mapping[int, TaskObservation],
    signs: GangSigns,
    read_at: datetime,
) -> tuple[datetime | None, str]:
    """Return when it was known first that a pod is taken away, and how; one that does not end tells that too."""
    at = min((each.warned_at for each in known.values() if each.warned_at is not None), default=None)
    at = min(filter(None, (at, signs.warned_at, *signs.ends.replaced_at.values())), default=None)
    if at is not None or job is None or STOP_REASON in job.metadata.annotations:
        return at, ""
    for rank, pod in counting.items():
        if pod is not None and _is_stuck(pod, read_at):
            # What made the others fail, if they did, was before that.
            began_at = min(filter(None, (deleted_at(pod), _first_error(counting))))
            return began_at, f"rank {rank}, {pod.metadata.name} on {pod.spec.node_name}, {OUT_OF_REACH},"
    return None, ""


def _is_stuck(pod: Pod, read_at: datetime) -> bool:
    gone_by = pod.metadata.deletion_timestamp
    is_live = bool(pod.spec.node_name) and pod.status.phase not in _TERMINAL
    return is_live and gone_by is not None and read_at - gone_by > _REPORTED_WITHIN


def _with_lost(
    seen: TaskObservation, job: Job | None, counting: Mapping[int, Pod | None], ends: RankEnds
) -> TaskObservation:
    """Return the task, whose report says so if a pod of a Job that failed is gone, and no kubelet ended it."""
    if job is None or not ends.is_told or find_condition(job.status.conditions, "Failed") is None:
        return seen
    gone = (rank for rank, pod in counting.items() if pod is None and rank not in ends.killed_at)
    # Somebody may delete the pod of one that has exited with 0, which its node reported.
    lost = [str(rank) for rank in gone if not _is_named(job, rank) and not _is_completed(job, rank)]
    if not lost:
        return seen
    text = f"rank {', '.join(lost)} is gone, and its node said nothing of its end"
    report = StopReport(
        "; ".join(filter(None, (seen.report.text, text))), seen.report.causes | {ReportedCause.PEER_LOST}
    )
    return replace(seen, report=report)


def _waiting(seen: TaskObservation, known: Mapping[int, TaskObservation]) -> TaskObservation:
    """Return a task some of whose ranks do not run yet, with why the one does not that is furthest behind."""

    def order(rank: int) -> tuple[bool, int, bool, int]:
        each = known[rank]
        return not each.report.causes, _PHASES.index(each.phase), not each.waiting_for, rank

    rank = min(known, key=order)
    behind = known[rank]
    nodes = [each.node for each in known.values() if each.node is not None]
    has_all = len(nodes) == len(known)
    is_named = bool(behind.waiting_for) and not behind.is_suspended
    return replace(
        seen,
        report=behind.report,
        waiting_for=f"rank {rank}: {behind.waiting_for}" if is_named else behind.waiting_for,
        node=seen.node if has_all else None,
        held_nodes=() if has_all else tuple(dict.fromkeys(nodes)),
        # By then none has a pod.
        is_suspended=all(each.is_suspended for each in known.values()),
    )
