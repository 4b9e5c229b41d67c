"""What Jobs, pods and containers report as the cause of a stop.

Sources: "Jobs" and "Pod failure policy", "Disruptions" (pod disruption conditions), "Node-pressure Eviction" and "Pod
Lifecycle" of the Kubernetes documentation, and for reasons that it does not list kubelet, container runtime and Job
controller of Kubernetes 1.20 to 1.36.
"""

import re

from relaunch.adapters.kubernetes.api.models import Condition, ContainerStatus, Job, Pod
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.start_errors import meaning_of, tells_gpu_fault
from relaunch.core.launches.launch import ContainerObservation, ReportedCause, StopReport
from relaunch.core.lifecycle.stop_reason import EXIT_SIGKILL, EXIT_SIGTERM

POD_DELETED = "its pod was deleted"
JOB_DELETED = "its Job was deleted"
SUSPENDED = "its Job was suspended"
_DEADLINE_EXCEEDED = "DeadlineExceeded"
_BY_POLICY = "PodFailurePolicy"
# The message of the Job controller for `onExitCodes`, since Kubernetes 1.26.
_FAILED_WITH = re.compile(r"Container (?P<container>\S+) for pod \S+ failed with exit code (?P<code>[0-9]{1,9})\b")
_ENDED_BY_SIGNAL = frozenset({EXIT_SIGKILL, EXIT_SIGTERM})
DISRUPTION_TARGET = "DisruptionTarget"
"""The pod condition of a pod that is about to be taken away."""

# Reasons of the pod condition DisruptionTarget; others, of programs beside Kubernetes, take the pod away too.
_DISRUPTIONS = {
    "PreemptionByScheduler": ReportedCause.INTERRUPTED,
    "EvictionByEvictionAPI": ReportedCause.INTERRUPTED,
    "DeletionByTaintManager": ReportedCause.NODE_LOST,
    "DeletionByPodGC": ReportedCause.NODE_LOST,
    "TerminationByKubelet": ReportedCause.NODE_LOST,
}
# `status.reason` of pods; those without the condition above, as before Kubernetes 1.26.
_POD_REASONS = {
    "Evicted": ReportedCause.NODE_LOST,
    "Preempting": ReportedCause.INTERRUPTED,
    "NodeLost": ReportedCause.NODE_LOST,
    "NodeShutdown": ReportedCause.NODE_LOST,
    "Shutdown": ReportedCause.NODE_LOST,
    "Terminated": ReportedCause.NODE_LOST,
    # Preemptible capacity of ECI ("Create a preemptible instance").
    "BidFailed": ReportedCause.INTERRUPTED,
}
# The kubelet rejects a pod that does not fit (OutOfcpu, OutOfmemory, OutOfnvidia.com/gpu), by what
# the scheduler asks too (lifecycle/predicate.go), or by the topology of the node (cm/topologymanager, cm/cpumanager).
# After a restart of the node or of the kubelet it decides again on those that ran there or had succeeded.
_REJECTED = re.compile(
    r"OutOf.+|UnexpectedAdmissionError|InvalidNodeInfo|TopologyAffinityError|SMTAlignmentError|"
    r"Node(?:Affinity|Name|Ports|Unschedulable)|TaintToleration"
)
# A pod that uses more than its own limits is evicted too, and would be anywhere.
_BEYOND_OWN_LIMIT = re.compile(r"(?i)\bexceed(s|ed)? (its|the)\b.*\b(limit|request)")

_CONTAINER_REASONS = {
    "OOMKilled": {ReportedCause.OUT_OF_MEMORY},
    "StartError": {ReportedCause.START_ERROR},
    "ContainerCannotRun": {ReportedCause.START_ERROR},
    "RunContainerError": {ReportedCause.START_ERROR},
    "CreateContainerError": {ReportedCause.START_ERROR},
    "CreateContainerConfigError": {ReportedCause.START_ERROR, ReportedCause.STARTS_NOWHERE},
    "ErrImagePull": {ReportedCause.IMAGE},
    "ImagePullBackOff": {ReportedCause.IMAGE},
    "ErrImageNeverPull": {ReportedCause.IMAGE},
    "InvalidImageName": {ReportedCause.IMAGE, ReportedCause.STARTS_NOWHERE},
}
# The kubelet could not find the container any more; the exit code 137 that it reports is made up.
_NOT_LOCATED = "ContainerStatusUnknown"
# Nor could containerd, whose processes did not outlive its restart or that of the node: reason and exit code that it
# makes up (loadContainer in internal/cri/server/restart.go).
_LOST_BY_RUNTIME = ("Unknown", 255)
_BY_RUNTIME = "its container runtime lost it, as when it or its node is restarted"
# No other node has the executable, the image or the permission to pull it either.
_NOWHERE = re.compile(
    r"(?i)manifest unknown|no matching manifest|pull access denied|not found|repository does not exist|unauthorized"
    r"|executable file not found|\bexec: "
)
_START_ERRORS = frozenset({ReportedCause.START_ERROR, ReportedCause.IMAGE})
_UNREMARKABLE = frozenset({"Completed", "Error"})
_ENDED = StopReport(causes=frozenset({ReportedCause.ENDED}))


def report_of_task(job: Job | None, pod: Pod | None, *, has_finished: bool = False) -> StopReport:
    """Return what a Job that ends or has ended, and its pod, report.

    `has_finished`: its program had ended by itself before its pod was removed.
    """
    if job is None:
        return _report_without_job(pod)
    called = job.metadata.annotations.get(STOP_REASON)
    failed = find_condition(job.status.conditions, "Failed", "FailureTarget")
    is_complete = find_condition(job.status.conditions, "Complete") is not None
    if not is_complete and called is not None and (failed is None or failed.reason == _DEADLINE_EXCEEDED):
        return StopReport(called, frozenset({ReportedCause.STOP_CALLED}))
    if failed is not None and (job.spec.suspend or failed.reason == _DEADLINE_EXCEEDED):
        # The pod that a queue takes away may fail before it is gone.
        cause = ReportedCause.INTERRUPTED if job.spec.suspend else ReportedCause.STOP_CALLED
        return StopReport(SUSPENDED if job.spec.suspend else failed.message, frozenset({cause}))
    if pod is None:
        return _ENDED if has_finished else _report_without_pod(job, failed)
    # A Job that is complete had succeeded before its node was restarted.
    report = _ENDED if is_complete and is_rejected(pod) else report_of_pod(pod)
    if job.metadata.deletion_timestamp is not None:
        return StopReport(JOB_DELETED, report.causes | {ReportedCause.STOP_CALLED})
    return report


def report_of_pod(pod: Pod) -> StopReport:
    """Return what a pod reports; its containers report for themselves."""
    status = pod.status
    disruption = find_condition(status.conditions, DISRUPTION_TARGET)
    if disruption is not None:
        cause = _DISRUPTIONS.get(disruption.reason, ReportedCause.INTERRUPTED)
        return _report(disruption.reason, disruption.message, cause)
    if status.reason == "Evicted" and _BEYOND_OWN_LIMIT.search(status.message):
        return _report(status.reason, status.message, ReportedCause.ENDED)
    if is_rejected(pod):
        return _report(status.reason, status.message, ReportedCause.NOT_STARTED, ReportedCause.REJECTED)
    if status.reason in _POD_REASONS:
        return _report(status.reason, status.message, _POD_REASONS[status.reason])
    if pod.metadata.deletion_timestamp is not None:
        return StopReport(POD_DELETED, frozenset({ReportedCause.INTERRUPTED}))
    return _report(status.reason, status.message, ReportedCause.ENDED)


def is_rejected(pod: Pod) -> bool:
    """Return whether the kubelet rejected the pod, which may have run before the node or the kubelet was restarted."""
    return _REJECTED.fullmatch(pod.status.reason) is not None


def is_lost(status: ContainerStatus) -> bool:
    """Return whether the kubelet or the container runtime found the container no more, which may have run."""
    ended = status.state.terminated
    if ended is None:
        return False
    return ended.reason == _NOT_LOCATED or (ended.reason, ended.exit_code) == _LOST_BY_RUNTIME


def observe_container(status: ContainerStatus) -> ContainerObservation:
    """Return what is known of a container."""
    ended = status.state.terminated
    waiting = status.state.waiting
    if ended is not None:
        reason = ended.reason
        message = ended.message
    elif waiting is not None:
        reason = waiting.reason
        message = waiting.message
    else:
        return ContainerObservation()
    if is_lost(status):
        said = message or ("" if reason == _NOT_LOCATED else _BY_RUNTIME)
        return ContainerObservation(report=_report(reason, said, ReportedCause.NODE_LOST))
    causes = set(_CONTAINER_REASONS.get(reason, ()))
    meaning = meaning_of(message) or (ReportedCause.STARTS_NOWHERE if _NOWHERE.search(message) else None)
    if causes & _START_ERRORS and meaning is not None:
        causes.add(meaning)
    if tells_gpu_fault(message):
        causes.add(ReportedCause.GPU_FAULT)
    # A container that cannot be started has an exit code all the same: 128, or what the runtime made of the error.
    has_run = ended is not None and ReportedCause.START_ERROR not in causes
    exit_code = ended.exit_code if ended is not None and has_run else None
    return ContainerObservation(exit_code, _report(reason, message, *causes))


def find_condition(conditions: tuple[Condition, ...], *types: str) -> Condition | None:
    """Return the first condition of these types that holds, in the order of the types; None if none does."""
    holding = {each.type: each for each in conditions if each.is_true}
    return next((holding[each] for each in types if each in holding), None)


def _report_without_job(pod: Pod | None) -> StopReport:
    if pod is None or pod.status.phase not in {"Succeeded", "Failed"}:
        return StopReport(JOB_DELETED, frozenset({ReportedCause.STOP_CALLED}))
    return report_of_pod(pod)


def containers_without_pod(job: Job) -> dict[str, ContainerObservation]:
    """Return the container and exit code that the failure policy of a Job tells, none if it tells nothing.

    255 may be that of a container which was lost (is_lost), since the Job gives no reason, and is that of a program
    which exits with -1. It counts as the program's: one that fails each time would be launched again without an end,
    and the pod of one that was lost is there unless somebody deletes it before the next look.
    """
    failed = find_condition(job.status.conditions, "Failed", "FailureTarget")
    found = _FAILED_WITH.search(failed.message) if failed and failed.reason == _BY_POLICY else None
    return {found["container"]: ContainerObservation(int(found["code"]))} if found else {}


def _report_without_pod(job: Job, failed: Condition | None) -> StopReport:
    """Return what a Job alone reports: the pods of Jobs that end by themselves are kept, so its pod was deleted.

    A training that saves on SIGTERM and exits with 0 makes the Job complete, whoever deleted the pod. One with another
    exit code than those of signals may have failed before it was deleted.
    """
    if job.metadata.deletion_timestamp is not None:
        return StopReport(JOB_DELETED, frozenset({ReportedCause.STOP_CALLED}))
    codes = {each.exit_code for each in containers_without_pod(job).values()}
    cause = ReportedCause.ENDED if codes - _ENDED_BY_SIGNAL else ReportedCause.INTERRUPTED
    return _report(POD_DELETED, f"{failed.reason}: {failed.message}" if failed else "", cause)


def _report(reason: str, message: str, *causes: ReportedCause) -> StopReport:
    said = "" if reason in _UNREMARKABLE else reason
    text = ": ".join(part for part in (said, message.strip()) if part)
    error = said if {ReportedCause.START_ERROR, ReportedCause.IMAGE, ReportedCause.NOT_STARTED} & set(causes) else ""
    return StopReport(text, frozenset(causes), error)
