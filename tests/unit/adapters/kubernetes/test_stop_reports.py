"""The causes that Jobs and pods report; test_stop_reports_kinds.py has what becomes of them."""

import pytest

from fakes.kubernetes import disrupted, ended, read_job, read_pod, waiting
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.stop_reports import observe_container, report_of_pod, report_of_task
from relaunch.core.launches.launch import ContainerObservation, StopReport
from relaunch.core.launches.launch import ReportedCause as C

COMPLETE = ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
BACKOFF = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
STOPPED = {STOP_REASON: "spot interruption warning"}
DELETED = "2026-11-02T09:59:00Z"


def by_policy(said):
    return read_job(("Failed", "PodFailurePolicy", said))


@pytest.mark.parametrize(
    ("job", "pod", "text", "causes"),
    [
        pytest.param(
            read_job(annotations=STOPPED), read_pod(), STOPPED[STOP_REASON], {C.STOP_CALLED}, id="we have called"
        ),
        pytest.param(
            read_job(("FailureTarget", *DEADLINE), annotations=STOPPED),
            read_pod(deletionTimestamp=DELETED),
            STOPPED[STOP_REASON],
            {C.STOP_CALLED},
            id="it is stopping",
        ),
        pytest.param(
            read_job(("Failed", *DEADLINE), annotations=STOPPED),
            None,
            STOPPED[STOP_REASON],
            {C.STOP_CALLED},
            id="it has stopped",
        ),
        pytest.param(read_job(("Failed", *DEADLINE)), None, DEADLINE[1], {C.STOP_CALLED}, id="a deadline of others"),
        pytest.param(
            read_job(COMPLETE, annotations=STOPPED),
            read_pod("Succeeded", state=ended(0, "Completed")),
            "",
            {C.ENDED},
            id="it ended before our stop",
        ),
        pytest.param(
            read_job(BACKOFF, annotations=STOPPED),
            read_pod("Failed", state=ended(3)),
            "",
            {C.ENDED},
            id="it failed before our stop",
        ),
        pytest.param(
            read_job(COMPLETE), read_pod("Succeeded", state=ended(0, "Completed")), "", {C.ENDED}, id="it succeeded"
        ),
        pytest.param(read_job(COMPLETE), None, "its pod was deleted", {C.INTERRUPTED}, id="0, and its pod was deleted"),
        pytest.param(
            read_job(COMPLETE),
            read_pod("Succeeded", deletionTimestamp=DELETED),
            "its pod was deleted",
            {C.INTERRUPTED},
            id="0, and its pod is being deleted",
        ),
        pytest.param(
            read_job(BACKOFF),
            None,
            f"its pod was deleted: {BACKOFF[1]}: {BACKOFF[2]}",
            {C.INTERRUPTED},
            id="its pod was deleted",
        ),
        pytest.param(
            by_policy("Container main for pod t/p failed with exit code 143 matching FailJob rule at index 1"),
            None,
            "its pod was deleted: PodFailurePolicy: Container main for pod t/p failed with exit code 143 matching "
            "FailJob rule at index 1",
            {C.INTERRUPTED},
            id="143, and its pod was deleted",
        ),
        pytest.param(
            by_policy("Container main for pod t/p failed with exit code 3 matching FailJob rule at index 1"),
            None,
            "its pod was deleted: PodFailurePolicy: Container main for pod t/p failed with exit code 3 matching "
            "FailJob rule at index 1",
            {C.ENDED},
            id="3, and its pod was deleted",
        ),
        pytest.param(
            by_policy("Pod t/p has condition DisruptionTarget matching FailJob rule at index 0"),
            None,
            "its pod was deleted: PodFailurePolicy: Pod t/p has condition DisruptionTarget matching FailJob rule at "
            "index 0",
            {C.INTERRUPTED},
            id="evicted, and its pod is gone",
        ),
        pytest.param(None, read_pod(deletionTimestamp=DELETED), "its Job was deleted", {C.STOP_CALLED}, id="no Job"),
        pytest.param(None, read_pod("Failed", state=ended(3)), "", {C.ENDED}, id="no Job, but its pod has ended"),
        pytest.param(
            read_job(deletionTimestamp=DELETED),
            read_pod(deletionTimestamp=DELETED),
            "its Job was deleted",
            {C.STOP_CALLED, C.INTERRUPTED},
            id="its Job waits for its pod",
        ),
        pytest.param(
            read_job(deletionTimestamp=DELETED), None, "its Job was deleted", {C.STOP_CALLED}, id="its Job goes alone"
        ),
    ],
)
def test_a_job_and_its_pod_report_one_stop(job, pod, text, causes):
    assert report_of_task(job, pod) == StopReport(text, frozenset(causes))


@pytest.mark.parametrize(
    ("pod", "text", "causes", "error"),
    [
        pytest.param(read_pod("Failed", state=ended(1)), "", {C.ENDED}, "", id="nothing"),
        pytest.param(
            read_pod(conditions=disrupted("PreemptionByScheduler", "preempted")),
            "PreemptionByScheduler: preempted",
            {C.INTERRUPTED},
            "",
            id="preempted",
        ),
        pytest.param(
            read_pod(conditions=disrupted("EvictionByEvictionAPI")),
            "EvictionByEvictionAPI",
            {C.INTERRUPTED},
            "",
            id="drained",
        ),
        pytest.param(
            read_pod(conditions=disrupted("DeletionByTaintManager")),
            "DeletionByTaintManager",
            {C.NODE_LOST},
            "",
            id="tainted",
        ),
        pytest.param(
            read_pod(conditions=disrupted("DeletionByPodGC")), "DeletionByPodGC", {C.NODE_LOST}, "", id="node gone"
        ),
        pytest.param(
            read_pod("Failed", reason="Terminated", conditions=disrupted("TerminationByKubelet", "shutdown")),
            "TerminationByKubelet: shutdown",
            {C.NODE_LOST},
            "",
            id="graceful node shutdown",
        ),
        pytest.param(
            read_pod(conditions=disrupted("SpotReclaimed", "in 5 minutes")),
            "SpotReclaimed: in 5 minutes",
            {C.INTERRUPTED},
            "",
            id="by another program",
        ),
        pytest.param(
            read_pod(conditions=[{"type": "DisruptionTarget", "status": "False", "reason": "PreemptionByScheduler"}]),
            "",
            {C.ENDED},
            "",
            id="no longer",
        ),
        pytest.param(
            read_pod("Failed", reason="Evicted", message="The node was low on resource: memory. "),
            "Evicted: The node was low on resource: memory.",
            {C.NODE_LOST},
            "",
            id="evicted",
        ),
        pytest.param(
            read_pod(
                "Failed", reason="Evicted", message="Pod ephemeral local storage usage exceeds the total limit of x"
            ),
            "Evicted: Pod ephemeral local storage usage exceeds the total limit of x",
            {C.ENDED},
            "",
            id="evicted for what it would use anywhere",
        ),
        pytest.param(read_pod("Failed", reason="NodeLost"), "NodeLost", {C.NODE_LOST}, "", id="node lost"),
        pytest.param(read_pod("Failed", reason="Shutdown"), "Shutdown", {C.NODE_LOST}, "", id="shut down, 1.21"),
        pytest.param(
            read_pod("Failed", reason="Preempting"), "Preempting", {C.INTERRUPTED}, "", id="for a critical pod"
        ),
        pytest.param(
            read_pod("Failed", reason="OutOfnvidia.com/gpu", message="Node didn't have enough resource"),
            "OutOfnvidia.com/gpu: Node didn't have enough resource",
            {C.NOT_STARTED, C.REJECTED},
            "OutOfnvidia.com/gpu",
            id="no room on the node",
        ),
        pytest.param(
            read_pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed"),
            "UnexpectedAdmissionError: Allocate failed",
            {C.NOT_STARTED, C.REJECTED},
            "UnexpectedAdmissionError",
            id="the device plug-in fails",
        ),
        pytest.param(
            read_pod("Failed", reason="NodeAffinity"),
            "NodeAffinity",
            {C.NOT_STARTED, C.REJECTED},
            "NodeAffinity",
            id="labels",
        ),
        pytest.param(read_pod("Failed", reason="NewReason"), "NewReason", {C.ENDED}, "", id="not known"),
    ],
)
def test_a_pod_reports_why_it_ended(pod, text, causes, error):
    assert report_of_pod(pod) == StopReport(text, frozenset(causes), error)


@pytest.mark.parametrize(
    ("state", "exit_code", "text", "causes", "error"),
    [
        pytest.param({}, None, "", set(), "", id="nothing yet"),
        pytest.param({"running": {}}, None, "", set(), "", id="running"),
        pytest.param(ended(0, "Completed"), 0, "", set(), "", id="completed"),
        pytest.param(ended(3), 3, "", set(), "", id="failed"),
        pytest.param(ended(3, message="loss is NaN"), 3, "loss is NaN", set(), "", id="termination message"),
        pytest.param(ended(3, message="x" * 9_000), 3, "x" * 4_095 + "…", set(), "", id="a message without end"),
        pytest.param(ended(137, "OOMKilled"), 137, "OOMKilled", {C.OUT_OF_MEMORY}, "", id="out of memory"),
        pytest.param(
            ended(128, "StartError", "failed to create shim: nvidia-container-cli: initialization error"),
            None,
            "StartError: failed to create shim: nvidia-container-cli: initialization error",
            {C.START_ERROR, C.NODE_FAULT},
            "StartError",
            id="the runtime of the node fails",
        ),
        pytest.param(
            ended(128, "StartError", 'exec: "pyton": executable file not found in $PATH'),
            None,
            'StartError: exec: "pyton": executable file not found in $PATH',
            {C.START_ERROR, C.STARTS_NOWHERE},
            "StartError",
            id="no such command",
        ),
        pytest.param(
            ended(137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"),
            None,
            "ContainerStatusUnknown: The container could not be located when the pod was terminated",
            {C.NODE_LOST},
            "",
            id="an exit code that is made up",
        ),
        pytest.param(
            ended(255, "Unknown"),
            None,
            "Unknown: its container runtime lost it, as when it or its node is restarted",
            {C.NODE_LOST},
            "",
            id="an exit code that containerd makes up",
        ),
        pytest.param(ended(255), 255, "", set(), "", id="a program that exits with -1"),
        pytest.param(ended(3, "Unknown"), 3, "Unknown", set(), "", id="unknown, with a code of the program"),
        pytest.param(
            waiting("ImagePullBackOff", 'Back-off pulling image "x"'),
            None,
            'ImagePullBackOff: Back-off pulling image "x"',
            {C.IMAGE},
            "ImagePullBackOff",
            id="the image is not pulled",
        ),
        pytest.param(
            waiting("ErrImagePull", "manifest unknown"),
            None,
            "ErrImagePull: manifest unknown",
            {C.IMAGE, C.STARTS_NOWHERE},
            "ErrImagePull",
            id="there is no such image",
        ),
        pytest.param(
            waiting("InvalidImageName"),
            None,
            "InvalidImageName",
            {C.IMAGE, C.STARTS_NOWHERE},
            "InvalidImageName",
            id="no image's name",
        ),
        pytest.param(
            waiting("CreateContainerConfigError", 'secret "s" not found'),
            None,
            'CreateContainerConfigError: secret "s" not found',
            {C.START_ERROR, C.STARTS_NOWHERE},
            "CreateContainerConfigError",
            id="a secret is missing",
        ),
        pytest.param(waiting("ContainerCreating"), None, "ContainerCreating", set(), "", id="not yet"),
    ],
)
def test_a_container_reports_its_exit_code_and_why(state, exit_code, text, causes, error):
    [status] = read_pod(state=state).status.container_statuses

    assert observe_container(status) == ContainerObservation(exit_code, StopReport(text, frozenset(causes), error))
