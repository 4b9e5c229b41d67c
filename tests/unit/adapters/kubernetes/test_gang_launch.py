"""How a job of several nodes is launched in a cluster, on the API server of our own."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from fakes.builders import make_launch_request
from fakes.cluster_gangs import WORKLOAD
from fakes.kubernetes_clusters import NAMESPACE, STACK, ServedKubernetesCluster, served_cluster
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, ForbiddenError
from relaunch.adapters.kubernetes.api.models import ServerVersion
from relaunch.adapters.kubernetes.labels import MAX_GANG_NAME_LENGTH
from relaunch.adapters.kubernetes.manifest import build_job
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import SecretKey
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.kubernetes.ack import GROUP_NAME, GROUP_SIZE
from relaunch.core.launches.launch import LaunchConflict, LaunchRefused, LaunchUncertain, TaskPlaced
from relaunch.ports import PermanentError, TransientError
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.role import Access
from relaunch_local.kubernetes.server import Fault
from relaunch_local.kubernetes.services import resolve

REQUEST = make_launch_request(
    workload=WORKLOAD,
    gpu=GpuRequirement(count=8),
    nodes=3,
    command=("torchrun", "train.py"),
    environment={"RELAUNCH_NODES": "3", "PET_NNODES": "3"},
)
NAME = "resnet-1f2e3d4c-1-1"
SERVICE = f"nodes-{NAME}"


class Doctored:
    """A client with some of its methods replaced."""

    def __init__(self, client: Any, **methods: Any) -> None:
        self._client = client
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.fixture
def cluster() -> Iterator[ServedKubernetesCluster]:
    with served_cluster(Target.ACK) as served:
        yield served


def objects(cluster, kind):
    return [each["metadata"]["name"] for each in cluster.cluster.state.all(kind, NAMESPACE)]


def raising(error):
    def fail(*_given, **_named):
        raise error

    return fail


def test_one_indexed_job_and_a_headless_service_that_belongs_to_it(cluster):
    assert cluster.target.launch(REQUEST) == TaskPlaced(NAME)

    job = cluster.cluster.state.get("jobs", NAMESPACE, NAME)
    service = cluster.cluster.state.get("services", NAMESPACE, SERVICE)
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 3)
    assert spec["backoffLimit"] == 0
    assert [each["action"] for each in spec["podFailurePolicy"]["rules"]] == ["FailJob", "FailJob"]
    assert spec["template"]["spec"]["subdomain"] == SERVICE
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": NAME, "uid": job["metadata"]["uid"]}
    assert service["metadata"]["ownerReferences"] == [owner]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
    # The version, and whether the Service may be made, before the Job is.
    assert [method for method, _ in cluster.server.requests] == ["GET", "POST", "POST", "POST"]
    asked = [path.rpartition("/")[2] for _, path in cluster.server.requests]
    assert asked == ["version", "services", "jobs", "services"]


def test_each_pod_has_its_rank_and_finds_the_first_before_that_is_ready(cluster):
    cluster.target.launch(REQUEST)
    for number in range(3):
        cluster.cluster.add_node(f"node-{number}", gpus=8)
    pods = cluster.cluster.state.all("pods", NAMESPACE)
    address = f"{NAME}-0.{SERVICE}"
    assert not any(each["type"] == "Ready" for each in pods[0]["status"].get("conditions", ()))
    first = resolve(cluster.cluster.state, NAMESPACE, address)
    cluster.advance(5)

    specs = [cluster.processes.specs[each["metadata"]["uid"]] for each in pods]
    ranks = [each.environment["RELAUNCH_NODE_RANK"] for each in specs]
    assert sorted(ranks) == ["0", "1", "2"]
    assert [each.environment["PET_NODE_RANK"] for each in specs] == ranks
    assert [each.environment["JOB_COMPLETION_INDEX"] for each in specs] == ranks
    assert {each.environment["RELAUNCH_MASTER_ADDR"] for each in specs} == {address}
    assert {each.environment["PET_MASTER_ADDR"] for each in specs} == {address}
    assert first is pods[ranks.index("0")]
    assert {(each.image, each.command) for each in specs} == {(WORKLOAD.image, ("torchrun", "train.py"))}
    assert sorted(each["spec"]["hostname"] for each in pods) == [f"{NAME}-{rank}" for rank in range(3)]


@pytest.mark.parametrize("kind", WITH_PODS)
def test_only_acks_scheduler_is_told_of_the_group(kind):
    gpu = GpuRequirement()
    manifest = build_job(replace(REQUEST, gpu=gpu, workload=replace(WORKLOAD, gpu_model="T4")), kind, STACK)

    labels = manifest["spec"]["template"]["metadata"]["labels"]
    group = {key: labels[key] for key in (GROUP_NAME, GROUP_SIZE) if key in labels}
    assert group == ({GROUP_NAME: NAME, GROUP_SIZE: "3"} if kind is Target.ACK else {})
    assert manifest["spec"]["completionMode"] == "Indexed"


def test_what_the_definition_says_of_torchrun_stays():
    secrets = {"PET_MASTER_ADDR": SecretKey("rendezvous", "address")}
    pod = {"spec": {"containers": [{"name": REQUEST.container, "env": [{"name": "PET_NODE_RANK", "value": "7"}]}]}}
    own = replace(REQUEST, environment={}, workload=replace(WORKLOAD, secrets=secrets, pod=pod))
    manifest = build_job(own, Target.ACK, STACK)
    names = [each["name"] for each in manifest["spec"]["template"]["spec"]["containers"][0]["env"]]

    assert names.count("PET_NODE_RANK") == 1
    assert names.count("PET_MASTER_ADDR") == 1
    assert {"RELAUNCH_NODE_RANK", "RELAUNCH_MASTER_ADDR"} <= set(names)


def test_init_containers_know_their_rank_too():
    fragment = {"spec": {"initContainers": [{"name": "fetch", "image": "fetch:1"}]}}
    manifest = build_job(replace(REQUEST, workload=replace(WORKLOAD, pod=fragment)), Target.ACK, STACK)

    (init,) = manifest["spec"]["template"]["spec"]["initContainers"]
    assert {"RELAUNCH_NODES", "RELAUNCH_NODE_RANK", "RELAUNCH_MASTER_ADDR"} <= {each["name"] for each in init["env"]}


def test_a_repeated_launch_makes_nothing_twice(cluster):
    assert cluster.target.launch(REQUEST) == TaskPlaced(NAME)
    service = cluster.cluster.state.get("services", NAMESPACE, SERVICE)
    since = datetime.fromisoformat(service["metadata"]["creationTimestamp"])
    assert cluster.target.launch(REQUEST) == TaskPlaced(NAME, since=since)

    assert objects(cluster, "jobs") == [NAME]
    assert objects(cluster, "services") == [SERVICE]
    assert len(objects(cluster, "pods")) == 3


def test_a_function_that_ended_between_job_and_service_is_finished_by_the_next(cluster):
    # The fourth request is the Service's.
    cluster.server.faults.extend([None, None, None, Fault()])
    assert isinstance(cluster.target.launch(REQUEST), LaunchUncertain)
    assert objects(cluster, "services") == []

    assert cluster.target.launch(REQUEST) == TaskPlaced(NAME)
    assert objects(cluster, "services") == [SERVICE]


def test_another_request_for_the_same_placement_has_its_service_too(cluster):
    cluster.target.launch(REQUEST)
    cluster.cluster.state.remove("services", cluster.cluster.state.get("services", NAMESPACE, SERVICE))

    outcome = cluster.target.launch(replace(REQUEST, command=("other",)))

    assert outcome == LaunchConflict((NAME,))
    assert objects(cluster, "services") == [SERVICE]


def test_the_service_of_an_earlier_job_of_the_name_gives_way(cluster):
    cluster.target.launch(REQUEST)
    state = cluster.cluster.state
    state.get("services", NAMESPACE, SERVICE)["metadata"]["ownerReferences"][0]["uid"] = "earlier"

    assert isinstance(cluster.target.launch(REQUEST), LaunchUncertain)
    assert cluster.target.launch(REQUEST) == TaskPlaced(NAME)
    uid = state.get("jobs", NAMESPACE, NAME)["metadata"]["uid"]
    assert state.get("services", NAMESPACE, SERVICE)["metadata"]["ownerReferences"][0]["uid"] == uid


def test_a_service_of_somebody_else_is_left_alone_and_the_job_is_stopped(cluster):
    service = {"metadata": {"name": SERVICE}, "spec": {"clusterIP": "None"}}
    cluster.cluster.state.add("services", NAMESPACE, service)

    outcome = cluster.target.launch(REQUEST)

    assert outcome == LaunchRefused(f"there is a Service {SERVICE} that is not of Relaunch", placed=(NAME,))
    assert objects(cluster, "services") == [SERVICE]


def test_a_service_that_is_refused_after_the_job_was_made_lets_that_be_stopped(cluster):
    said = ApiError(403, "Forbidden", "services is forbidden: no more")
    cluster.server.faults.extend([None, None, None, Fault(said)])

    outcome = cluster.target.launch(REQUEST)

    assert isinstance(outcome, LaunchRefused)
    assert (outcome.placed, outcome.may_heal) == ((NAME,), True)


def test_a_service_that_cannot_be_read_is_asked_for_again(cluster):
    cluster.target.launch(REQUEST)
    client = Doctored(cluster.client, get_headless_service=raising(TransientError("no answer")))

    assert isinstance(kubernetes_target(client, Target.ACK, STACK).launch(REQUEST), LaunchUncertain)


def test_a_service_that_is_gone_by_then_is_made_next_time(cluster):
    cluster.target.launch(REQUEST)
    client = Doctored(cluster.client, get_headless_service=lambda _name: None)

    assert isinstance(kubernetes_target(client, Target.ACK, STACK).launch(REQUEST), LaunchUncertain)


@pytest.mark.parametrize("minor", [20, 22, 23])
def test_an_older_server_is_refused_before_anything_is_made(minor):
    with served_cluster(Target.ACK, minor=minor) as cluster:
        outcome = cluster.target.launch(REQUEST)

        assert isinstance(outcome, LaunchRefused)
        assert "needs Kubernetes 1.24" in outcome.reason
        assert f"the cluster has v1.{minor}.2" in outcome.reason
        assert [objects(cluster, kind) for kind in ("jobs", "services")] == [[], []]


def test_a_job_that_the_server_stored_without_ranks_is_deleted_and_refused():
    with served_cluster(Target.ACK, minor=20) as cluster:
        client = Doctored(cluster.client, version=lambda: ServerVersion(1, 24, "v1.24.9-odd"))
        outcome = kubernetes_target(client, Target.ACK, STACK).launch(REQUEST)

        assert outcome == LaunchRefused(
            "a job with `nodes` needs Kubernetes 1.24, from which on pods of a Job have a rank: the cluster made the "
            f"Job {NAME} without ranks, and it was deleted"
        )
        cluster.advance(200)
        assert [objects(cluster, kind) for kind in ("jobs", "pods", "services")] == [[], [], []]


@pytest.mark.parametrize(
    ("error", "expected", "placed"),
    [
        (TransientError("no answer"), LaunchUncertain, ()),
        (ForbiddenError("cannot delete", 403, "Forbidden"), LaunchRefused, (NAME,)),
    ],
)
def test_a_job_without_ranks_that_cannot_be_deleted_is_tried_again_or_stopped(error, expected, placed):
    with served_cluster(Target.ACK, minor=20) as cluster:
        version = ServerVersion(1, 24, "v1.24.9-odd")
        client = Doctored(cluster.client, version=lambda: version, delete_job=raising(error))
        outcome = kubernetes_target(client, Target.ACK, STACK).launch(REQUEST)

        assert isinstance(outcome, expected)
        assert outcome.placed == placed


def test_names_leave_room_for_the_index_and_the_service_and_stay_apart(cluster):
    long = "a-team-with-a-very-long-name-for-its-training-of-language-models"
    names = set()
    for number in (1, 2):
        outcome = cluster.target.launch(replace(REQUEST, attempt=AttemptKey(f"9{long}-{number}", 1), nodes=32))
        assert isinstance(outcome, TaskPlaced)
        names.add(outcome.task_id)

    assert len(names) == 2
    assert {len(each) for each in names} == {MAX_GANG_NAME_LENGTH}
    pods = cluster.cluster.state.all("pods", NAMESPACE)
    assert len(pods) == 64
    assert all(any(each["metadata"]["name"].startswith(f"{name}-") for name in names) for each in pods)


def test_a_fragment_that_hides_a_pod_is_refused_when_the_job_is_made():
    workload = replace(WORKLOAD, pod={"spec": {"subdomain": "own"}})

    with pytest.raises(PermanentError, match=r"`pod.spec.subdomain` may not be set for a job with `nodes`"):
        build_job(replace(REQUEST, workload=workload), Target.ACK, STACK)
    assert build_job(replace(REQUEST, workload=workload, nodes=1), Target.ACK, STACK)


def test_a_quota_of_services_is_waited_for_before_the_job_is_made(cluster):
    said = ApiError(403, "Forbidden", 'services "a" is forbidden: exceeded quota: team, requested: services=1')
    cluster.server.faults.extend([None, Fault(said)])

    assert "exceeded quota" in str(cluster.target.launch(REQUEST))
    assert objects(cluster, "jobs") == []


def test_the_functions_need_no_more_than_the_role_gives(cluster):
    cluster.target.launch(REQUEST)
    cluster.target.launch(REQUEST)

    granted = {each for each in cluster.server.granted if each.resource == "services"}
    assert granted == {Access("create", "", "services", NAMESPACE), Access("get", "", "services", NAMESPACE)}
    assert cluster.server.refused == set()
    with pytest.raises(ApiRefusedError, match="services"):
        list(cluster.client.list_objects(f"/api/v1/namespaces/{NAMESPACE}/services"))
