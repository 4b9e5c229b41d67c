"""What becomes of a job by what Kubernetes says of its task: observation and classification together."""

from datetime import UTC, datetime

import pytest

from fakes.builders import make_attempt, make_running_attempt
from fakes.kubernetes import disrupted, ended, read_job, read_pod, waiting
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.observation import observe_task
from relaunch.core.jobs.attempt import IntentKind, StopIntent, StopKind
from relaunch.core.launches.launch import TaskPhase
from relaunch.core.lifecycle.stop_reason import classify_stop

NOW = datetime(2026, 11, 2, 11, tzinfo=UTC)
COMPLETE = ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF = ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
DISRUPTED = ("Failed", "PodFailurePolicy", "Pod t/p has condition DisruptionTarget matching FailJob rule at index 0")


def by_exit_code(code):
    said = f"Container main for pod t/p failed with exit code {code} matching FailJob rule at index 1"
    return ("Failed", "PodFailurePolicy", said)


def stop_of(job, pods, attempt=None):
    task = observe_task(job, pods)
    assert task.phase is TaskPhase.STOPPED
    running = make_running_attempt(instance_id=None, node="node-1")
    return classify_stop(task, "main", attempt or running, NOW)


@pytest.mark.parametrize(
    ("job", "pods", "kind", "exit_code"),
    [
        pytest.param(
            read_job(COMPLETE), [read_pod("Succeeded", state=ended(0, "Completed"))], StopKind.SUCCESS, 0, id="success"
        ),
        pytest.param(
            read_job(by_exit_code(3)), [read_pod("Failed", state=ended(3))], StopKind.USER_ERROR, 3, id="failure"
        ),
        pytest.param(read_job(BACKOFF), [read_pod("Failed", state=ended(3))], StopKind.USER_ERROR, 3, id="before 1.26"),
        pytest.param(read_job(), [read_pod("Failed", state=ended(3))], StopKind.USER_ERROR, 3, id="Job still active"),
        pytest.param(None, [read_pod("Failed", state=ended(3))], StopKind.USER_ERROR, 3, id="Job already deleted"),
        pytest.param(read_job(by_exit_code(3)), [], StopKind.USER_ERROR, 3, id="failure, and its pod was removed"),
        pytest.param(
            read_job(by_exit_code(137)),
            [read_pod("Failed", state=ended(137, "OOMKilled"))],
            StopKind.OUT_OF_MEMORY,
            137,
            id="out of memory",
        ),
        pytest.param(
            read_job(DISRUPTED),
            [read_pod("Failed", state=ended(143), conditions=disrupted("EvictionByEvictionAPI"))],
            StopKind.INTERRUPTION,
            143,
            id="evicted",
        ),
        pytest.param(
            read_job(COMPLETE),
            [read_pod("Succeeded", state=ended(0), conditions=disrupted("PreemptionByScheduler"))],
            StopKind.INTERRUPTION,
            0,
            id="preempted, saved and exited with 0",
        ),
        pytest.param(read_job(DISRUPTED), [], StopKind.INTERRUPTION, None, id="evicted, and its pod is gone"),
        pytest.param(
            read_job(COMPLETE), [], StopKind.INTERRUPTION, None, id="its pod was deleted, and it exited with 0"
        ),
        pytest.param(read_job(by_exit_code(143)), [], StopKind.INTERRUPTION, 143, id="its pod was deleted: SIGTERM"),
        pytest.param(read_job(BACKOFF), [], StopKind.INTERRUPTION, None, id="its pod was deleted by force"),
        pytest.param(
            read_job(DISRUPTED),
            [read_pod("Failed", conditions=disrupted("DeletionByPodGC", "node no longer exists"))],
            StopKind.HOST_LOST,
            None,
            id="its node is gone",
        ),
        pytest.param(
            read_job(BACKOFF),
            [read_pod("Failed", reason="Evicted", message="The node was low on resource: memory.")],
            StopKind.HOST_LOST,
            None,
            id="the node ran short",
        ),
        pytest.param(
            read_job(by_exit_code(137)),
            [read_pod("Failed", state=ended(137, "ContainerStatusUnknown"))],
            StopKind.HOST_LOST,
            None,
            id="the kubelet lost its container",
        ),
        pytest.param(
            read_job(by_exit_code(255)),
            [read_pod("Failed", state=ended(255, "Unknown"))],
            StopKind.HOST_LOST,
            None,
            id="the container runtime lost its container",
        ),
        pytest.param(
            read_job(by_exit_code(255)), [], StopKind.USER_ERROR, 255, id="-1, or lost, and its pod was removed"
        ),
        pytest.param(read_job(DEADLINE), [], StopKind.CANCELLED, None, id="a deadline that somebody set"),
    ],
)
def test_stops_of_a_task_that_ran(job, pods, kind, exit_code):
    stop = stop_of(job, pods)

    assert (stop.kind, stop.exit_code) == (kind, exit_code)


REJECTIONS = ("UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "NodeAffinity", "TopologyAffinityError", "NodePorts")


@pytest.mark.parametrize("state", [None, ended(137), ended(0, "Completed")], ids=["unknown", "killed", "exit 0"])
@pytest.mark.parametrize("reason", REJECTIONS)
def test_a_pod_that_ran_and_is_rejected_after_a_restart_of_its_node_was_lost_with_it(reason, state):
    pod = read_pod("Failed", reason=reason, message="Pod was rejected", state=state)

    assert stop_of(read_job(BACKOFF), [pod]).kind is StopKind.HOST_LOST


@pytest.mark.parametrize("state", [None, ended(137)], ids=["unknown", "killed"])
@pytest.mark.parametrize("reason", REJECTIONS)
def test_a_job_that_is_complete_has_succeeded_though_its_pod_is_rejected_after_a_restart_of_its_node(reason, state):
    pod = read_pod("Failed", reason=reason, message="Pod was rejected", state=state)

    stop = stop_of(read_job(COMPLETE), [pod])

    assert (stop.kind, stop.exit_code) == (StopKind.SUCCESS, 0)


def test_a_gpu_fault_in_the_termination_message_is_the_machines():
    pod = read_pod("Failed", state=ended(1, "Error", "NVRM: Xid (PCI:0000:00:1e): 79"))

    assert stop_of(read_job(by_exit_code(1)), [pod]).kind is StopKind.MACHINE_FAULT


@pytest.mark.parametrize(
    ("pod", "kind", "error"),
    [
        pytest.param(
            read_pod("Failed", state=ended(128, "StartError", "nvidia-container-cli: initialization error")),
            StopKind.NOT_STARTED,
            "StartError",
            id="the driver of the node",
        ),
        pytest.param(
            read_pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed"),
            StopKind.NOT_STARTED,
            "UnexpectedAdmissionError",
            id="the device plug-in of the node",
        ),
        pytest.param(
            read_pod("Failed", reason="OutOfnvidia.com/gpu"), StopKind.NOT_STARTED, "OutOfnvidia.com/gpu", id="no room"
        ),
        pytest.param(
            read_pod("Failed", state=waiting("ErrImagePull", "manifest unknown")),
            StopKind.STARTS_NOWHERE,
            "ErrImagePull",
            id="no such image",
        ),
        pytest.param(
            read_pod("Failed", state=waiting("ErrImagePull", "i/o timeout")),
            StopKind.NOT_STARTED,
            "ErrImagePull",
            id="the registry is out of reach",
        ),
        pytest.param(
            read_pod("Failed", state=ended(128, "StartError", "the flux capacitor is empty")),
            StopKind.UNKNOWN_START,
            "StartError",
            id="an error that nobody knows",
        ),
    ],
)
def test_stops_of_a_task_that_never_ran(pod, kind, error):
    attempt = make_attempt(node="node-1")

    stop = stop_of(read_job(BACKOFF), [pod], attempt)

    assert (stop.kind, stop.error) == (kind, error)


@pytest.mark.parametrize(
    ("intent", "kind"),
    [
        (IntentKind.CANCEL, StopKind.CANCELLED),
        (IntentKind.TIME_OUT, StopKind.TIME_OUT),
        (IntentKind.INTERRUPTION, StopKind.INTERRUPTION),
        (IntentKind.PLACEMENT_WITHDRAWN, StopKind.NO_CAPACITY),
        (IntentKind.START_WITHDRAWN, StopKind.NOT_STARTED),
    ],
)
def test_our_own_stop_is_what_it_was_for_though_its_exit_code_is_not_known(intent, kind):
    called = StopIntent(intent, datetime(2026, 11, 2, 9, 50, tzinfo=UTC), "because")

    stop = stop_of(read_job(DEADLINE, annotations={STOP_REASON: "because"}), [], make_running_attempt(intent=called))

    assert (stop.kind, stop.exit_code, stop.stopped_reason) == (kind, None, "because")
