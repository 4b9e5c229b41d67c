"""What the contract of targets (tests/contracts/test_task_target.py) leaves open for Kubernetes."""

from dataclasses import replace
from datetime import datetime

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes import FakeKubernetes
from fakes.kubernetes_clusters import served_cluster
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.labels import OWNER, REQUEST, STOP_REASON
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import LaunchUncertain, ReportedCause, TaskPhase, TaskPlaced
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import TransientError

REQUEST_OF_JOB = make_launch_request(workload=KubernetesWorkload("image:v1"), gpu=GpuRequirement())
NAME = "resnet-1f2e3d4c-1-1"


@pytest.fixture
def kubernetes():
    return FakeKubernetes()


@pytest.fixture
def target(kubernetes):
    return kubernetes_target(kubernetes, Target.ACK, "relaunch")


def launch(target, job_id="resnet-1f2e3d4c"):
    outcome = target.launch(replace(REQUEST_OF_JOB, attempt=AttemptKey(job_id, 1)))
    assert isinstance(outcome, TaskPlaced)
    return outcome.task_id


def test_a_job_is_created_by_one_request_and_tells_its_owner_and_its_request(target, kubernetes):
    assert target.launch(REQUEST_OF_JOB) == TaskPlaced(NAME)

    assert kubernetes.calls == ["create_job"]
    annotations = kubernetes.jobs[NAME]["metadata"]["annotations"]
    assert annotations[OWNER] == "resnet-1f2e3d4c/1"
    assert len(annotations[REQUEST]) == 64


def test_a_job_that_exists_and_cannot_be_read_is_asked_for_again(target, kubernetes, monkeypatch):
    launch(target)

    def fail(name):
        raise TransientError("no answer")

    monkeypatch.setattr(kubernetes, "get_job", fail)
    outcome = target.launch(REQUEST_OF_JOB)

    assert isinstance(outcome, LaunchUncertain)
    assert NAME in outcome.reason


def test_a_stop_tells_its_reason_and_sets_the_deadline_in_one_request(target, kubernetes):
    launch(target)
    kubernetes.run(NAME, "node-1")

    target.stop(NAME, "cancelled")

    job = kubernetes.jobs[NAME]
    assert (job["metadata"]["annotations"][STOP_REASON], job["spec"]["activeDeadlineSeconds"]) == ("cancelled", 1)
    assert kubernetes.calls.count("patch_job") == 1
    assert kubernetes.pods[NAME]["metadata"]["deletionTimestamp"]


def test_a_stopped_task_has_stopped_when_its_pod_is_gone_and_not_before(target, kubernetes):
    launch(target)
    kubernetes.run(NAME, "node-1")
    target.stop(NAME, "cancelled")

    stopping = target.describe([NAME])[NAME]
    kubernetes.exit(NAME, 143)
    stopped = target.describe([NAME])[NAME]

    assert (stopping.phase, stopped.phase) == (TaskPhase.STOPPING, TaskPhase.STOPPED)
    assert stopped.report.text == "cancelled"
    assert stopped.report.causes == {ReportedCause.STOP_CALLED}
    # Pods that are deleted take their exit code with them.
    assert stopped.containers == {}
    assert stopped.stopped_at is not None


def test_a_stop_that_the_job_controller_missed_is_carried_out_when_it_is_sent_again(target, kubernetes):
    launch(target)
    kubernetes.run(NAME, "node-1")
    kubernetes.lost_deadlines = 1
    for reason in ("cancelled", "cancelled again"):
        assert "deletionTimestamp" not in kubernetes.pods[NAME]["metadata"]
        target.stop(NAME, reason)

    task = target.describe([NAME])[NAME]
    assert task.phase is TaskPhase.STOPPING
    assert task.report.text == "cancelled"
    assert kubernetes.pods[NAME]["metadata"]["deletionTimestamp"]


def test_a_job_that_is_deleted_before_it_is_stopped_needs_no_stop(target, kubernetes, monkeypatch):
    launch(target)
    job = kubernetes.get_job(NAME)
    kubernetes.forget(NAME)
    monkeypatch.setattr(kubernetes, "get_job", lambda name: job)

    target.stop(NAME, "cancelled")

    assert kubernetes.calls[-1] == "patch_job"


def test_names_that_cannot_be_a_job_cost_no_request(target, kubernetes):
    target.stop("a,b)", "cancelled")

    assert target.describe(["a,b)", ""]) == {"a,b)": None, "": None}
    assert kubernetes.calls == []


def test_a_task_whose_job_was_deleted_is_known_while_its_pod_lives(target, kubernetes):
    launch(target)
    kubernetes.run(NAME, "node-1")
    kubernetes.delete_job(NAME)

    task = target.describe([NAME])[NAME]

    assert (task.task_id, task.phase, task.owner) == (NAME, TaskPhase.STOPPING, AttemptKey("resnet-1f2e3d4c", 1))
    assert [each.task_id for each in target.find_tasks_of(task.owner)] == [NAME]
    del kubernetes.pods[NAME]
    assert target.describe([NAME]) == {NAME: None}


def test_fifty_tasks_are_described_by_two_requests(target, kubernetes):
    names = [launch(target, f"job{number}") for number in range(51)]
    kubernetes.calls.clear()

    described = target.describe(names)

    assert list(described) == names
    assert None not in described.values()
    assert kubernetes.calls == ["list_jobs", "list_pods"] * 2


def test_lists_are_read_page_by_page(target, kubernetes):
    names = {launch(target, f"job{number}") for number in range(7)}
    kubernetes.page_size = 3

    pages = [[task.task_id for task in page] for page in target.list_tasks()]

    assert [len(page) for page in pages] == [3, 3, 1]
    assert {name for page in pages for name in page} == names
    assert set(target.describe(sorted(names))) == names


def test_jobs_of_another_stack_are_not_seen(target, kubernetes):
    other = kubernetes_target(kubernetes, Target.ACK, "another")
    name = launch(other)

    assert [task for page in target.list_tasks() for task in page] == []
    assert target.describe([name]) == {name: None}
    assert target.find_tasks_of(REQUEST_OF_JOB.attempt) == []


def test_without_the_permission_there_are_no_nodes(target, kubernetes):
    kubernetes.nodes = ForbiddenError('nodes is forbidden: User "relaunch"', 403, "Forbidden")

    assert list(target.list_nodes()) == []
    assert target.find_node("node-1") is None


def test_an_api_server_that_does_not_answer_is_not_a_cluster_without_nodes(target, kubernetes):
    kubernetes.nodes = TransientError("no answer")

    with pytest.raises(TransientError):
        list(target.list_nodes())


def test_nodes_are_no_ec2_instances(target):
    target.drain("i-0123456789abcdef0")
    target.deregister("node-1")

    assert target.find_tasks_on("i-0123456789abcdef0") == []
    assert target.find_node_of("i-0123456789abcdef0") is None
    assert target.find_gpus("g5.xlarge", "") == []
    assert target.find_remaining_resources("g5.xlarge", "") == []


@pytest.fixture
def preemptible(kubernetes):
    """Yield the ACS target with a task that runs on preemptible capacity."""
    target = kubernetes_target(kubernetes, Target.ACS, "relaunch")
    spot = OfferingKey("acs", None, PurchaseOption.SPOT)
    assert target.launch(replace(REQUEST_OF_JOB, offering=spot)) == TaskPlaced(NAME)
    return target


@pytest.mark.parametrize("reason", ["BestEffortToBeReleased", "SpotToBeReleased"])
def test_an_event_warns_of_the_end_of_preemptible_capacity(preemptible, kubernetes, reason):
    kubernetes.run(NAME, "virtual-kubelet")
    assert preemptible.describe([NAME])[NAME].warned_at is None

    first = kubernetes.warn(NAME, reason)
    kubernetes.warn(NAME, reason)
    kubernetes.warn(NAME, "Killing")

    assert preemptible.describe([NAME])[NAME].warned_at == datetime.fromisoformat(first)
    assert [each.warned_at for page in preemptible.list_tasks() for each in page] == [datetime.fromisoformat(first)]


def test_events_are_read_for_tasks_that_run_on_preemptible_capacity_only(preemptible, kubernetes):
    preemptible.describe([NAME])
    assert "list_events" not in kubernetes.calls

    on_demand = OfferingKey("acs", None, PurchaseOption.ON_DEMAND)
    preemptible.launch(replace(REQUEST_OF_JOB, offering=on_demand, placement_number=2))
    kubernetes.run("resnet-1f2e3d4c-1-2", "virtual-kubelet")
    preemptible.describe(["resnet-1f2e3d4c-1-2"])
    assert "list_events" not in kubernetes.calls


@pytest.mark.parametrize(
    "error", [TransientError("no answer"), ForbiddenError("events is forbidden", 403, "Forbidden")]
)
def test_without_events_there_is_no_warning(preemptible, kubernetes, error):
    kubernetes.run(NAME, "virtual-kubelet")
    kubernetes.events = error

    task = preemptible.describe([NAME])[NAME]

    assert (task.phase, task.warned_at) == (TaskPhase.RUNNING, None)


def test_a_task_is_seen_in_its_cluster_and_namespace_and_in_no_other():
    with served_cluster(Target.ACK) as old, served_cluster(Target.ACK) as new:
        old.target.launch(REQUEST_OF_JOB)
        seen = old.target.describe([NAME])[NAME]

        assert seen.cluster == old.target.identify() == old.client.identity
        assert new.target.describe([NAME]) == {NAME: None}
        assert new.target.identify() != old.target.identify()
        assert old.target.identify().endswith("/training")
