"""Jobs whose pods have an index, and what belongs to them: as servers from 1.22 on have them."""

from typing import Any

import pytest

from fakes.held_processes import HeldProcesses
from relaunch_local.ecs.clock import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.indexed_jobs import INDEX, index_of, pod_name_base, write_indices
from relaunch_local.kubernetes.pod_groups import NAME, SIZE
from relaunch_local.kubernetes.services import admit_service, resolve
from relaunch_local.kubernetes.state import Document, has_condition
from tests.unit.local.kubernetes.conftest import NAMESPACE, manifest

GPUS = {"nvidia.com/gpu": "8"}


class Gangs:
    """A cluster whose containers run until a test lets them exit."""

    def __init__(self, minor: int = 36, nodes: int = 3, *, is_ack: bool = False) -> None:
        self.processes = HeldProcesses()
        self.cluster = KubernetesCluster(Clock(), self.processes, minor=minor, is_ack=is_ack)
        for number in range(nodes):
            self.cluster.add_node(f"node-{number}", gpus=8)

    def create(self, name: str = "train", completions: int = 3, labels: dict[str, str] | None = None) -> None:
        job = manifest(name, limits=GPUS, completionMode="Indexed", completions=completions, parallelism=completions)
        job["spec"]["template"]["metadata"]["labels"] |= labels or {}
        self.cluster.create_job(NAMESPACE, job)
        self.advance(5)

    def advance(self, seconds: float) -> None:
        self.cluster.clock.advance(seconds)

    def job(self, name: str = "train") -> Document:
        return self.cluster.state.get("jobs", NAMESPACE, name)

    def pods(self) -> dict[int | None, Document]:
        return {index_of(each): each for each in self.cluster.state.all("pods", NAMESPACE)}

    def exit(self, index: int, code: int) -> None:
        self.processes.of_task[self.pods()[index]["metadata"]["uid"]].exit(code)


@pytest.mark.parametrize(("minor", "has_label"), [(24, False), (27, False), (28, True)])
def test_each_pod_has_its_index_in_its_name_its_host_name_and_its_variables(minor, has_label):
    gangs = Gangs(minor)
    gangs.create()
    pod = gangs.pods()[2]

    assert sorted(gangs.pods()) == [0, 1, 2]
    assert pod["metadata"]["name"].startswith("train-2-")
    assert pod["metadata"]["annotations"][INDEX] == "2"
    assert (INDEX in pod["metadata"]["labels"]) is has_label
    assert pod["spec"]["hostname"] == "train-2"
    assert gangs.processes.specs[pod["metadata"]["uid"]].environment == {"JOB_COMPLETION_INDEX": "2"}
    assert gangs.job()["status"]["active"] == 3


def test_a_job_is_complete_when_each_index_has_succeeded():
    gangs = Gangs()
    gangs.create()
    gangs.exit(2, 0)
    gangs.exit(0, 0)

    assert gangs.job()["status"]["completedIndexes"] == "0,2"
    assert not has_condition(gangs.job(), "Complete")
    gangs.exit(1, 0)
    status = gangs.job()["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-2", 3)
    assert has_condition(gangs.job(), "Complete")


@pytest.mark.parametrize("minor", [24, 36])
def test_the_first_pod_that_fails_fails_the_job_which_ends_the_others_and_says_so(minor):
    gangs = Gangs(minor)
    gangs.create()

    gangs.exit(1, 7)
    gangs.advance(60)

    assert has_condition(gangs.job(), "Failed")
    assert list(gangs.pods()) == [1]
    events = {each["reason"] for each in gangs.cluster.state.all("events", NAMESPACE)}
    assert {"BackoffLimitExceeded", "Killing"} <= events


@pytest.mark.parametrize(("minor", "count"), [(24, 3), (36, 0)])
def test_an_old_server_replaces_a_deleted_pod_by_one_of_its_index(minor, count):
    gangs = Gangs(minor)
    gangs.create()
    name = gangs.pods()[1]["metadata"]["name"]

    gangs.cluster.delete_pod(NAMESPACE, name)
    gangs.advance(60)

    assert len(gangs.pods()) == count
    assert name not in [each["metadata"]["name"] for each in gangs.pods().values()]


@pytest.mark.parametrize("minor", [20, 21])
def test_a_server_that_does_not_know_the_mode_makes_one_pod_without_an_index(minor):
    gangs = Gangs(minor)
    gangs.create()

    assert "completionMode" not in gangs.job()["spec"]
    assert list(gangs.pods()) == [None]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"completionMode": "Ordered"}, 'spec.completionMode: Unsupported value: "Ordered"'),
        ({"completionMode": "Indexed"}, "spec.completions: Required value: when completion mode is Indexed"),
    ],
)
def test_a_wrong_mode_is_refused(change, said):
    with pytest.raises(ApiError, match=said):
        Gangs().cluster.create_job(NAMESPACE, manifest(limits=GPUS, **change))


def test_a_name_that_leaves_no_room_for_the_index_is_refused():
    with pytest.raises(ApiError, match=f"will not able to create pod with invalid DNS label: {'a' * 62}-2"):
        Gangs().create("a" * 62)


def test_names_of_pods_are_cut_before_the_index():
    assert pod_name_base("a" * 54, 31) == "a" * 54 + "-31-"
    assert pod_name_base("a" * 60, 3) == "a" * 55 + "-3-"
    assert pod_name_base("train", None) == "train-"


@pytest.mark.parametrize(
    ("indices", "text"), [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((0, 2, 3, 4, 7, 8), "0,2-4,7,8")]
)
def test_indices_are_written_as_intervals(indices, text):
    assert write_indices(indices) == text


def test_a_quota_lets_some_pods_be_made_and_the_others_later():
    gangs = Gangs()
    quota: Document = {"kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "2"}}}
    gangs.cluster.state.add("resourcequotas", NAMESPACE, quota)
    gangs.create()
    assert sorted(gangs.pods()) == [0, 1]

    gangs.cluster.state.remove("resourcequotas", quota)
    gangs.advance(60)

    assert sorted(gangs.pods()) == [0, 1, 2]


def service(name: str = "nodes-train", **spec: Any) -> Document:
    return {"metadata": {"name": name}, "spec": {"clusterIP": "None", "selector": {"app": "cuda-sample"}, **spec}}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (service("9-train"), "a DNS-1035 label must consist of lower case"),
        (service("a" * 64), "must be no more than 63 characters"),
        (service(""), "name or generateName is required"),
        (service(clusterIP=""), "spec.ports: Required value"),
        (service() | {"metadata": {"name": "a", "ownerReferences": [{"name": "b"}]}}, "uid must not be empty"),
    ],
)
def test_a_wrong_service_is_refused(sent, said):
    with pytest.raises(ApiError, match=said):
        admit_service(Gangs().cluster.state, NAMESPACE, sent, is_dry=False)


def test_a_dry_run_makes_nothing_and_says_what_would_be_said():
    state = Gangs().cluster.state

    admit_service(state, NAMESPACE, service(), is_dry=True)
    assert state.all("services", NAMESPACE) == []
    admit_service(state, NAMESPACE, service(), is_dry=False)
    with pytest.raises(ApiError, match="already exists"):
        admit_service(state, NAMESPACE, service(), is_dry=True)


@pytest.mark.parametrize(
    ("spec", "is_found"),
    [({}, False), ({"publishNotReadyAddresses": True}, True), ({"selector": {"app": "other"}}, False)],
)
def test_a_name_leads_to_a_pod_that_is_not_ready_only_if_that_is_published(spec, is_found):
    gangs = Gangs()
    gangs.cluster._kubelet.missing_images.add("registry.example/train:1")
    job = manifest("train", limits=GPUS, completionMode="Indexed", completions=2, parallelism=2)
    job["spec"]["template"]["spec"]["subdomain"] = "nodes-train"
    gangs.cluster.create_job(NAMESPACE, job)
    admit_service(gangs.cluster.state, NAMESPACE, service(**spec), is_dry=False)
    gangs.advance(5)

    found = resolve(gangs.cluster.state, NAMESPACE, "train-1.nodes-train")

    assert (found is gangs.pods()[1]) is is_found
    assert resolve(gangs.cluster.state, NAMESPACE, "train-1.other") is None


def test_what_belongs_to_a_job_is_removed_with_it_and_nothing_else():
    gangs = Gangs()
    gangs.create()
    state = gangs.cluster.state
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": gangs.job()["metadata"]["uid"]}
    owned = service()
    owned["metadata"]["ownerReferences"] = [owner]
    admit_service(state, NAMESPACE, owned, is_dry=False)
    admit_service(state, NAMESPACE, service("other"), is_dry=False)

    gangs.cluster.delete_job(NAMESPACE, "train")

    assert [each["metadata"]["name"] for each in state.all("services", NAMESPACE)] == ["other"]


def test_ack_places_a_group_whole_or_not_and_says_how_many_it_lacks():
    gangs = Gangs(nodes=2, is_ack=True)
    gangs.create(labels={NAME: "train", SIZE: "3"})
    said = gangs.pods()[0]["status"]["conditions"][0]["message"]

    assert said == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. (pod group train: 2 of 3)"
    assert all("nodeName" not in each["spec"] for each in gangs.pods().values())
    # What is of no group goes past it.
    gangs.cluster.create_job(NAMESPACE, manifest("single", limits=GPUS))
    assert gangs.pods()[None]["spec"]["nodeName"] == "node-0"
    gangs.cluster.add_node("node-2", gpus=8)
    gangs.cluster.add_node("node-3", gpus=8)
    assert all("nodeName" in each["spec"] for each in gangs.pods().values())


def test_another_scheduler_does_not_know_groups():
    gangs = Gangs(nodes=2)
    gangs.create(labels={NAME: "train", SIZE: "3"})

    assert sum("nodeName" in each["spec"] for each in gangs.pods().values()) == 2
