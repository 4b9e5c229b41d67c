from datetime import UTC, datetime

import pytest

from fakes.kubernetes import TASK_NAME, disrupted, ended, read_job, read_pod, waiting
from relaunch.adapters.kubernetes.api.models import Job, Node
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.observation import is_stop_called, observe_node, observe_task
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import ContainerObservation, ReportedCause, StopReport, TaskPhase

NINE, TEN = datetime(2026, 11, 2, 9, tzinfo=UTC), datetime(2026, 11, 2, 10, tzinfo=UTC)
COMPLETE = ("Complete", "CompletionsReached", "")
FAILED = ("Failed", "BackoffLimitExceeded", "")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
DELETED = "2026-11-02T09:59:00Z"
RUNNING = {"running": {"startedAt": "2026-11-02T09:00:30Z"}}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem.",
}


@pytest.mark.parametrize(
    ("job", "pods", "phase", "status"),
    [
        pytest.param(read_job(), [], TaskPhase.PENDING, "Pending", id="the Job has no pod yet"),
        pytest.param(read_job(), [read_pod("Pending", node="")], TaskPhase.PENDING, "Pending", id="no node"),
        pytest.param(read_job(), [read_pod("Pending")], TaskPhase.STARTING, "Pending", id="a node"),
        pytest.param(read_job(), [read_pod("Running", state=RUNNING)], TaskPhase.RUNNING, "Running", id="runs"),
        pytest.param(
            read_job(),
            [read_pod(deletionTimestamp=DELETED)],
            TaskPhase.STOPPING,
            "Terminating",
            id="its pod is deleted",
        ),
        pytest.param(
            read_job(annotations={STOP_REASON: "cancelled"}),
            [read_pod()],
            TaskPhase.STOPPING,
            "Terminating",
            id="called",
        ),
        pytest.param(
            read_job(annotations={STOP_REASON: "cancelled"}), [], TaskPhase.STOPPING, "Pending", id="called early"
        ),
        pytest.param(
            read_job(("FailureTarget", *DEADLINE)),
            [read_pod()],
            TaskPhase.STOPPING,
            "Terminating",
            id="will have failed",
        ),
        pytest.param(
            read_job(deletionTimestamp=DELETED),
            [read_pod()],
            TaskPhase.STOPPING,
            "Terminating",
            id="its Job is deleted",
        ),
        pytest.param(
            read_job(("Failed", *DEADLINE)),
            [read_pod(deletionTimestamp=DELETED)],
            TaskPhase.STOPPING,
            "Terminating",
            id="failed, but its pod lives (before 1.31)",
        ),
        pytest.param(None, [read_pod()], TaskPhase.STOPPING, "Terminating", id="no Job, but its pod lives"),
        pytest.param(
            read_job(("Failed", *DEADLINE)), [], TaskPhase.STOPPED, "Failed", id="failed, and its pod is gone"
        ),
        pytest.param(read_job(COMPLETE), [read_pod("Succeeded")], TaskPhase.STOPPED, "Succeeded", id="complete"),
        pytest.param(read_job(FAILED), [read_pod("Failed")], TaskPhase.STOPPED, "Failed", id="failed"),
        pytest.param(
            read_job(),
            [read_pod("Failed", reason="Evicted")],
            TaskPhase.STOPPED,
            "Evicted",
            id="before the Job says so",
        ),
        pytest.param(None, [read_pod("Succeeded")], TaskPhase.STOPPED, "Succeeded", id="no Job, and its pod has ended"),
        pytest.param(read_job(), [read_pod("Unknown")], TaskPhase.STARTING, "Unknown", id="out of reach (before 1.21)"),
    ],
)
def test_the_phase_is_that_of_job_and_pod_together(job, pods, phase, status):
    task = observe_task(job, pods)

    assert (task.phase, task.status) == (phase, status)
    assert (task.task_id, task.owner) == (TASK_NAME, AttemptKey("resnet-1f2e3d4c", 1))


@pytest.mark.parametrize(
    ("job", "pods", "may_have_run"),
    [
        pytest.param(read_job(COMPLETE), [], True, id="its pod is gone"),
        pytest.param(read_job(FAILED), [read_pod("Failed", reason="Evicted")], True, id="evicted without containers"),
        pytest.param(
            read_job(FAILED),
            [read_pod("Failed", state={"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})],
            True,
            id="the kubelet lost its container",
        ),
        pytest.param(
            read_job(FAILED),
            [read_pod("Failed", state={"terminated": {"exitCode": 255, "reason": "Unknown"}})],
            True,
            id="the container runtime lost its container",
        ),
        pytest.param(read_job(FAILED), [read_pod("Failed", node="")], False, id="it had no node"),
        pytest.param(
            read_job(FAILED), [read_pod("Failed", reason="UnexpectedAdmissionError")], False, id="its node refused it"
        ),
        pytest.param(
            read_job(FAILED),
            [read_pod("Failed", reason="Evicted", state=waiting("ContainerCreating"))],
            False,
            id="evicted before its container was made",
        ),
        pytest.param(read_job(), [read_pod("Pending", node="")], False, id="it has not stopped"),
    ],
)
def test_what_tells_no_start_may_have_run(job, pods, may_have_run):
    assert observe_task(job, pods).may_have_run is may_have_run


def test_a_pod_on_a_node_that_is_out_of_reach_may_still_run():
    pod = read_pod("Running", deletionTimestamp=DELETED, conditions=disrupted("DeletionByTaintManager"))

    task = observe_task(read_job(("Failed", "PodFailurePolicy", "")), [pod])

    assert task.phase is TaskPhase.STOPPING
    assert task.report.causes == {ReportedCause.NODE_LOST}


def test_what_is_further_in_its_life_is_newer_whatever_its_resource_version():
    job = read_job()
    steps = [
        observe_task(job, [read_pod("Pending", node="", resourceVersion="900")]),
        observe_task(job, [read_pod("Pending", resourceVersion="800")]),
        observe_task(job, [read_pod("Running", resourceVersion="700")]),
        observe_task(job, [read_pod("Running", deletionTimestamp=DELETED, resourceVersion="600")]),
        observe_task(read_job(FAILED), [read_pod("Failed", resourceVersion="500")]),
    ]

    versions = [task.version for task in steps]
    assert versions == sorted(set(versions))


def test_what_is_said_later_of_the_same_phase_is_newer():
    job = read_job()
    pending = [read_pod("Pending", node="", resourceVersion=each) for each in ("12", "13", "opaque")]

    first, second, unknown = (observe_task(job, [pod]).version for pod in pending)

    assert first < second
    # That of the Job is left.
    assert unknown < first
    assert (
        observe_task(job, [read_pod("Running", resourceVersion="9" * 30)]).version
        < observe_task(job, [read_pod(deletionTimestamp=DELETED)]).version
    )


def test_a_pod_that_waits_tells_what_the_scheduler_says():
    task = observe_task(read_job(), [read_pod("Pending", node="", conditions=[UNSCHEDULABLE])])

    assert task.waiting_for == "Unschedulable: 0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem."


def test_a_pod_that_starts_tells_what_the_kubelet_says():
    pod = read_pod("Pending", state=waiting("ImagePullBackOff", "Back-off pulling image"))

    task = observe_task(read_job(), [pod])

    assert (task.phase, task.waiting_for) == (TaskPhase.STARTING, "ImagePullBackOff: Back-off pulling image")


def test_a_running_pod_waits_for_nothing():
    pod = read_pod("Running", state=RUNNING, conditions=[{"type": "PodScheduled", "status": "True"}])

    task = observe_task(read_job(), [pod])

    assert (task.report, task.waiting_for) == (StopReport(), "")
    assert (task.node, task.started_at, task.stopped_at) == ("node-1", NINE.replace(second=30), None)
    assert task.created_at == NINE
    assert task.containers == {"main": ContainerObservation()}


def test_a_pod_that_is_about_to_be_taken_away_is_a_warning():
    condition = disrupted("EvictionByEvictionAPI")[0] | {"lastTransitionTime": "2026-11-02T10:00:00Z"}

    task = observe_task(read_job(), [read_pod(conditions=[condition])])

    assert (task.phase, task.warned_at) == (TaskPhase.RUNNING, TEN)
    assert observe_task(read_job(), [read_pod(conditions=[condition])], NINE).warned_at == NINE
    assert observe_task(read_job(), [read_pod()]).warned_at is None


def test_a_stopped_task_tells_exit_code_and_times():
    task = observe_task(read_job(FAILED), [read_pod("Failed", state=ended(3))])

    assert task.containers == {"main": ContainerObservation(3)}
    assert (task.started_at, task.stopped_at) == (NINE.replace(second=30), TEN.replace(second=30))
    assert task.stop_code == "BackoffLimitExceeded"
    assert task.report == StopReport(causes=frozenset({ReportedCause.ENDED}))


def test_without_its_pod_the_job_tells_the_exit_code_and_when_it_ended():
    said = (
        f"Container main for pod training/{TASK_NAME}-d222p failed with exit code 143 matching FailJob rule at index 1"
    )

    task = observe_task(read_job(("Failed", "PodFailurePolicy", said)), [])

    assert task.containers == {"main": ContainerObservation(143)}
    assert (task.phase, task.stopped_at) == (TaskPhase.STOPPED, TEN)


@pytest.mark.parametrize("said", ["", "Pod training/a has condition DisruptionTarget matching FailJob rule at index 0"])
def test_an_exit_code_that_is_not_told_is_not_made_up(said):
    assert observe_task(read_job(("Failed", "PodFailurePolicy", said)), []).containers == {}
    assert observe_task(read_job(("Failed", "DeadlineExceeded", said)), []).containers == {}


def test_a_container_that_never_ran_has_not_started():
    never = {"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": None}

    task = observe_task(read_job(FAILED), [read_pod("Failed", state={"terminated": never})])

    assert task.started_at is None
    assert task.stopped_at == TEN


def test_of_a_pod_and_its_replacement_the_newer_counts():
    old = read_pod("Running", name="z", deletionTimestamp=DELETED, creationTimestamp="2026-11-02T09:00:00Z")
    new = read_pod("Pending", name="a", node="", creationTimestamp="2026-11-02T09:30:00Z")

    task = observe_task(read_job(), [new, old])

    assert (task.phase, task.node) == (TaskPhase.PENDING, None)


def test_a_job_of_others_has_no_owner():
    job = Job.model_validate({"metadata": {"name": "cuda-sample"}})

    assert observe_task(job, []).owner is None


def test_a_pod_that_replaced_another_one_within_a_second_counts():
    at = "2026-11-02T09:00:00Z"
    deleted = read_pod(name="b", creationTimestamp=at, deletionTimestamp=DELETED)
    other = read_pod("Pending", name="a", node="", creationTimestamp=at)

    assert observe_task(read_job(), [deleted, other]).phase is TaskPhase.PENDING
    assert observe_task(read_job(), [other, deleted]).phase is TaskPhase.PENDING


@pytest.mark.parametrize(
    ("job", "is_called"),
    [
        pytest.param(read_job(), False, id="runs"),
        pytest.param(read_job(("Suspended", "", "")), False, id="suspended"),
        pytest.param(read_job(annotations={STOP_REASON: ""}), True, id="called"),
        pytest.param(read_job(("FailureTarget", *DEADLINE)), True, id="stopping"),
        pytest.param(read_job(COMPLETE), True, id="complete"),
        pytest.param(read_job(FAILED), True, id="failed"),
        pytest.param(read_job(deletionTimestamp=DELETED), True, id="deleted"),
    ],
)
def test_what_ends_anyway_is_not_stopped(job, is_called):
    assert is_stop_called(job) is is_called


def node(ready="True", unschedulable=False, **labels):
    document = {
        "metadata": {"name": "n", "labels": labels, "creationTimestamp": "2026-11-02T09:00:00Z"},
        "spec": {"unschedulable": unschedulable},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    return Node.model_validate(document)


def test_a_node_tells_type_and_zone():
    labels = {"node.kubernetes.io/instance-type": "ecs.gn6i", "topology.kubernetes.io/zone": "cn-beijing-i"}

    seen = observe_node(node(**labels), 2)

    assert (seen.node.name, seen.node.instance_id) == ("n", "")
    assert (seen.node.instance_type, seen.node.zone) == ("ecs.gn6i", "cn-beijing-i")
    assert (seen.is_active, seen.task_count, seen.registered_at) == (True, 2, NINE)


def test_a_node_without_labels_has_neither():
    seen = observe_node(node())

    assert (seen.node.instance_type, seen.node.zone) == ("", None)


@pytest.mark.parametrize("held", [{"ready": "False"}, {"ready": "Unknown"}, {"unschedulable": True}])
def test_a_node_that_takes_no_pods_is_not_active(held):
    assert not observe_node(node(**held)).is_active
