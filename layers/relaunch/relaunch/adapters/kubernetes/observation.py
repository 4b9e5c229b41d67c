"""What a Job and its pod say of a task.

What orders two observations of a task is how far it has come: a task of Relaunch has one pod, and goes through the
phases in their order. Where an old server replaces a pod that was deleted (Kubernetes 1.20 does, 1.36 does not), the
phases begin anew and are ignored until they have come as far as before. Within a phase the greater resource version is
the newer, which is a number of etcd that all objects of a cluster share; where it is none, what is said later of the
same phase is not recognized.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.adapters.kubernetes.api.models import Condition, ContainerStatus, Job, Metadata, Node, Pod
from relaunch.adapters.kubernetes.image_ids import pullable_image
from relaunch.adapters.kubernetes.init_containers import explain_init_wait, with_init_containers
from relaunch.adapters.kubernetes.labels import STOP_REASON, TASK, owner_of
from relaunch.adapters.kubernetes.queues import is_held_back, is_withdrawn, queue_words
from relaunch.adapters.kubernetes.stop_reports import (
    DISRUPTION_TARGET,
    containers_without_pod,
    find_condition,
    is_lost,
    is_rejected,
    observe_container,
    report_of_task,
)
from relaunch.core.launches.launch import (
    ContainerObservation,
    NodeObservation,
    ReportedCause,
    StopReport,
    TaskObservation,
    TaskPhase,
)
from relaunch.core.launches.launch import Node as TargetNode
from relaunch.core.records import dataclass

_FINISHED = ("Complete", "Failed")
# "Custom conditions of ACS pods": whether the virtual node that a pod was placed on has an instance for it.
_INSTANCE_CREATED = "ContainerInstanceCreated"
_OUT_OF_STOCK = frozenset({"NoStock", "StockExhaust", "StockClose"})
TO_BE_RELEASED = ("BestEffortToBeReleased", "SpotToBeReleased")
"""The reasons of events and conditions of pods on preemptible capacity, minutes before it is released: of ACS
("Overview of BestEffort computing", five minutes) and of ECI ("Run Jobs using spot ECI instances", three)."""
_TERMINAL = frozenset({"Succeeded", "Failed"})
_PHASES = tuple(TaskPhase)
_EPOCH_YEAR = 1970
_VERSIONS_PER_PHASE = 10**18
_INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def observe_task(
    job: Job | None,
    pods: Sequence[Pod],
    warned_at: datetime | None = None,
    refusal: StopReport | None = None,
    *,
    has_finished: bool = False,
    queue: str = "",
) -> TaskObservation:
    """Return the state of a task by its Job, None if it is deleted, and its pods; one of them is there.

    `warned_at` is when an event announced that its capacity is taken away; a condition of the pod may say so too.
    `refusal` is why the Job could not make a pod, by an event; it counts as long as there is none. `has_finished`: its
    program had ended by itself before its pod was removed, by events too. `queue` are the words of the queue for a Job
    that is suspended.

    The pods must have been read after the Job: a Job that has finished makes no pod any more, so that without a live
    one then the task has stopped.
    """
    # A pod is replaced by an old server only; the newest one counts.
    pod = max(pods, key=age_of, default=None)
    return observe_with_pod(job, pods, pod, TaskSigns(warned_at, refusal, has_finished, queue))


@dataclass(frozen=True, slots=True)
class TaskSigns:
    """What events say about a task; see `observe_task`."""

    warned_at: datetime | None = None
    refusal: StopReport | None = None
    has_finished: bool = False
    queue: str = ""


def observe_with_pod(job: Job | None, pods: Sequence[Pod], pod: Pod | None, signs: TaskSigns) -> TaskObservation:
    """Return the state of a task as `observe_task` does, by the one of its pods that counts, None if it has none."""
    warned_at = signs.warned_at
    refusal = signs.refusal
    has_finished = signs.has_finished
    phase = phase_of(job, pods, pod)
    metadata = _metadata(job, pod)
    statuses = pod.status.container_statuses if pod else ()
    init_statuses = pod.status.init_container_statuses if pod else ()
    started_at = min(filter(None, map(_started_at, statuses)), default=None)
    without_instance = _without_instance(pod)
    is_suspended = job is not None and is_held_back(job)
    refused = refusal if refusal is not None and phase is TaskPhase.PENDING and pod is None else StopReport()
    if without_instance is not None and without_instance.reason in _OUT_OF_STOCK:
        said = _join(without_instance.reason, without_instance.message)
        refused = StopReport(said, frozenset({ReportedCause.NO_CAPACITY}))
    report = report_of_task(job, pod, has_finished=has_finished) if phase.is_ending else refused
    containers = _containers(job, pod, has_finished=has_finished)
    if pod is not None:
        is_by_itself = ReportedCause.ENDED in report.causes and not (warned_at or _taken_away_at(job, pod))
        containers = with_init_containers(containers, pod, ended_by_itself=is_by_itself)
    return TaskObservation(
        task_id=job.metadata.name if job else metadata.labels.get(TASK, ""),
        owner=owner_of(metadata.annotations),
        phase=phase,
        version=(_PHASES.index(phase) + 1) * _VERSIONS_PER_PHASE + _resource_version(job, *pods),
        status=_status(job, pod, phase),
        stop_code=_stop_code(job) if phase.is_ending else "",
        report=report,
        containers=containers,
        node=(pod.spec.node_name or None) if pod and without_instance is None else None,
        created_at=metadata.creation_timestamp,
        started_at=started_at,
        stopped_at=_stopped_at(job, (*init_statuses, *statuses)) if phase is TaskPhase.STOPPED else None,
        waiting_for=explain_wait(pod) or (queue_words(job, signs.queue) if job and is_suspended else refused.text),
        warned_at=warned_at or _taken_away_at(job, pod),
        may_have_run=phase is TaskPhase.STOPPED and started_at is None and not is_suspended and _may_have_run(pod),
        is_suspended=is_suspended and pod is None,
    )


def age_of(pod: Pod) -> tuple[bool, str, str]:
    """Return what orders the pods of a task: times are in whole seconds, and what is deleted was replaced."""
    metadata = pod.metadata
    return metadata.deletion_timestamp is None, str(metadata.creation_timestamp or ""), metadata.name


def phase_of(job: Job | None, pods: Iterable[Pod], pod: Pod | None) -> TaskPhase:
    """Return the phase of a task; `pod` is the newest of its pods."""
    live = any(each.status.phase not in _TERMINAL for each in pods)
    if job is None or find_condition(job.status.conditions, *_FINISHED):
        return TaskPhase.STOPPING if live else TaskPhase.STOPPED
    if is_held_back(job) and (pod is not None or is_withdrawn(job)):
        # What a queue holds back may go on, unless it is withdrawn.
        return TaskPhase.STOPPING if live or not is_withdrawn(job) else TaskPhase.STOPPED
    # Its containers have ended, and a Job with a `backoffLimit` of 0 makes no other pod.
    if pod is not None and not live:
        return TaskPhase.STOPPED
    if _is_stopping(job, pod):
        return TaskPhase.STOPPING
    if pod is None or not pod.spec.node_name:
        return TaskPhase.PENDING
    return TaskPhase.RUNNING if pod.status.phase == "Running" else TaskPhase.STARTING


def is_ending(job: Job) -> bool:
    """Return whether the task is ending or has ended, so that no stop has an effect on it."""
    conditions = find_condition(job.status.conditions, *_FINISHED, "FailureTarget", "SuccessCriteriaMet")
    return conditions is not None or job.metadata.deletion_timestamp is not None


def is_stop_called(job: Job) -> bool:
    """Return whether the task is to stop, or has stopped already."""
    return is_ending(job) or STOP_REASON in job.metadata.annotations


def observe_node(node: Node, task_count: int = 0) -> NodeObservation:
    """Return the state of a node; `task_count` are its running and starting tasks of Relaunch."""
    labels = node.metadata.labels
    named = TargetNode(
        name=node.metadata.name,
        instance_id="",
        instance_type=next((labels[each] for each in _INSTANCE_TYPE if each in labels), ""),
        zone=next((labels[each] for each in _ZONE if each in labels), None),
    )
    return NodeObservation(
        named,
        is_active=node.is_ready and not node.spec.unschedulable,
        task_count=task_count,
        registered_at=node.metadata.creation_timestamp,
    )


def explain_wait(pod: Pod | None) -> str:
    """Return why a pod does not run yet, in the words of the scheduler or of the kubelet; empty if nothing is known."""
    if pod is None or pod.status.phase != "Pending":
        return ""
    scheduled = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    if scheduled is not None and scheduled.status == "False" and not pod.spec.node_name:
        return _join(scheduled.reason, scheduled.message)
    if (lacking := _without_instance(pod)) is not None and lacking.reason != "Creating":
        return _join(lacking.reason, lacking.message)
    if initializing := explain_init_wait(pod):
        return initializing
    waiting = [each.state.waiting for each in pod.status.container_statuses if each.state.waiting is not None]
    return "; ".join(_join(each.reason, each.message) for each in waiting)


def _without_instance(pod: Pod | None) -> Condition | None:
    """Return the condition of a pod whose virtual node has no instance for it; None for any other pod."""
    if pod is None or pod.status.phase != "Pending":
        return None
    conditions = (each for each in pod.status.conditions if each.type == _INSTANCE_CREATED)
    return next((each for each in conditions if each.status == "False"), None)


def _taken_away_at(job: Job | None, pod: Pod | None) -> datetime | None:
    """Return when others began to take the pod away, or announced it; None if they do not.

    Who deletes a pod leaves no condition of it, and the pod itself is gone when the end of its program is seen.
    """
    if pod is None:
        return None
    if (condition := find_announcement(pod)) is not None:
        return condition.last_transition_time
    return None if job is None or is_stop_called(job) else deleted_at(pod)


def find_announcement(pod: Pod) -> Condition | None:
    """Return the condition that says that the pod is going to be taken away, None if it has none."""
    announced = (each for each in pod.status.conditions if each.reason in TO_BE_RELEASED)
    return find_condition(pod.status.conditions, DISRUPTION_TARGET) or next(announced, None)


def deleted_at(pod: Pod) -> datetime | None:
    """Return when the deletion of a pod began, None if it did not: the API has the end of its grace period."""
    gone_by = pod.metadata.deletion_timestamp
    return None if gone_by is None else gone_by - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)


def _resource_version(*objects: Job | Pod | None) -> int:
    versions = (each.metadata.resource_version for each in objects if each is not None)
    known = max((int(each) for each in versions if each.isdecimal()), default=0)
    return min(known, _VERSIONS_PER_PHASE - 1)


def _containers(job: Job | None, pod: Pod | None, *, has_finished: bool) -> Mapping[str, ContainerObservation]:
    if job is not None and has_finished:
        return {each.name: ContainerObservation(0) for each in job.spec.template.spec.containers}
    if job is not None and pod is not None and is_rejected(pod) and find_condition(job.status.conditions, "Complete"):
        # All of them had ended with 0, whatever the kubelet makes of them after its restart.
        return {each.name: ContainerObservation(0) for each in pod.spec.containers}
    if pod is not None:
        return {
            each.name: replace(observe_container(each), image=pullable_image(each.image_id))
            for each in pod.status.container_statuses
        }
    return containers_without_pod(job) if job is not None else {}


def _metadata(job: Job | None, pod: Pod | None) -> Metadata:
    if job is not None:
        return job.metadata
    if pod is None:
        raise ValueError("neither a Job nor a pod")
    return pod.metadata


def _is_stopping(job: Job, pod: Pod | None) -> bool:
    return is_stop_called(job) or (pod is not None and pod.metadata.deletion_timestamp is not None)


def _status(job: Job | None, pod: Pod | None, phase: TaskPhase) -> str:
    """Return the words of `kubectl get`: those of the pod while there is one, else those of the Job."""
    if pod is None:
        finished = find_condition(job.status.conditions, *_FINISHED) if job else None
        unfinished = "Suspended" if job and job.spec.suspend else "Pending"
        return finished.type if finished else unfinished
    return "Terminating" if phase is TaskPhase.STOPPING else pod.status.reason or pod.status.phase


def _stop_code(job: Job | None) -> str:
    failed = find_condition(job.status.conditions, "Failed", "FailureTarget") if job else None
    return failed.reason if failed else ""


def _started_at(status: ContainerStatus) -> datetime | None:
    state = status.state
    if state.running is not None:
        return state.running.started_at
    # The start of a container that never ran is that of 1970.
    started = state.terminated.started_at if state.terminated is not None else None
    return started if started is not None and started.year > _EPOCH_YEAR else None


def _may_have_run(pod: Pod | None) -> bool:
    """Return whether a pod that tells no start of a container may have run one.

    The pod may be gone, evicted between two looks; the kubelet may have evicted it, by a status without containers as
    before Kubernetes 1.26, or have found its containers no more.
    """
    if pod is None:
        return True
    statuses = pod.status.container_statuses
    if _without_instance(pod) is not None:
        return False
    return bool(pod.spec.node_name) and (not (statuses or is_rejected(pod)) or any(map(is_lost, statuses)))


def _stopped_at(job: Job | None, statuses: Iterable[ContainerStatus]) -> datetime | None:
    ended = (each.state.terminated.finished_at for each in statuses if each.state.terminated is not None)
    last = max((at for at in ended if at is not None and at.year > _EPOCH_YEAR), default=None)
    if last is not None or job is None:
        return last
    finished = find_condition(job.status.conditions, *_FINISHED)
    return finished.last_transition_time if finished else None


def _join(reason: str, message: str) -> str:
    return ": ".join(part for part in (reason, message.strip()) if part)
