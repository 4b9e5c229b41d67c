"""Pods as definitions describe them, on a real API server, Job controller and scheduler: taken, or waiting."""

from collections.abc import Iterator

import pytest

from control_plane.jobs import Document, make_job
from control_plane.namespaces import Namespace
from control_plane.waiting import wait_for
from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.kubernetes.manifest import preview_job
from relaunch.adapters.offerings.bundled import load_catalogue

pytestmark = pytest.mark.kubernetes

ARENA = (REPOSITORY / "examples" / "arena.yaml").read_text("utf-8")
DEFINITIONS = {each.name: each for each in parse_definitions(ARENA, "arena.yaml", load_catalogue())}
TAINT = {"key": "gpu", "value": "a10", "effect": "NoSchedule"}


@pytest.fixture
def node(namespace: Namespace) -> Iterator[str]:
    """A node of this namespace's pods alone, with a taint."""
    name = f"{namespace.name}-tainted"
    namespace.kubelets.add_node(name, {"example.com/card": "8"}, {"pool": name})
    patch = {"Content-Type": "application/merge-patch+json"}
    answer = namespace.api.patch(f"/api/v1/nodes/{name}", json={"spec": {"taints": [TAINT]}}, headers=patch)
    assert answer.is_success, answer.text
    yield name
    namespace.kubelets.remove_node(name)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_definitions_of_arenas_commands_are_taken(namespace: Namespace, name: str) -> None:
    with namespace.client() as client:
        job = client.create_job(preview_job(DEFINITIONS[name], "relaunch"))

    stored = namespace.get("jobs", job.metadata.name)["spec"]["template"]["spec"]
    sent = preview_job(DEFINITIONS[name], "relaunch")["spec"]["template"]["spec"]
    assert {
        key: stored.get(key) for key in ("tolerations", "imagePullSecrets", "priorityClassName", "nodeSelector")
    } == {key: sent.get(key) for key in ("tolerations", "imagePullSecrets", "priorityClassName", "nodeSelector")}
    assert [each["name"] for each in stored.get("volumes", ())] == [each["name"] for each in sent.get("volumes", ())]


def why_waiting(namespace: Namespace, node: str, **pod: object) -> str:
    """Create a Job whose pod is for the node; return the words of the scheduler about it."""
    limits: Document = {"example.com/card": 1}
    namespace.create("jobs", make_job(limits=limits, pod={"nodeSelector": {"pool": node}, **pod}))

    def said() -> str:
        conditions = namespace.pod("cuda-sample")["status"].get("conditions") or ()
        return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

    return wait_for("reason", said)


def test_a_claim_that_is_not_there_is_named(namespace: Namespace, node: str) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]

    assert 'persistentvolumeclaim "data" not found' in why_waiting(namespace, node, volumes=volumes)


def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(namespace: Namespace, node: str) -> None:
    said = why_waiting(namespace, node)

    assert "node(s) had taint" in said or "node(s) had untolerated taint" in said
    assert "{gpu: a10}" in said


@pytest.mark.parametrize(
    "toleration",
    [{"key": "gpu", "operator": "Exists"}, {"operator": "Exists", "effect": "NoSchedule"}],
)
def test_a_pod_that_tolerates_it_runs(namespace: Namespace, node: str, toleration: Document) -> None:
    pod = {"nodeSelector": {"pool": node}, "tolerations": [toleration]}
    namespace.create("jobs", make_job(limits={"example.com/card": 1}, pod=pod))

    assert namespace.running("cuda-sample")["spec"]["nodeName"] == node


def test_a_job_of_a_class_that_is_not_there_has_no_pod(namespace: Namespace) -> None:
    namespace.create("jobs", make_job(pod={"priorityClassName": "high"}))

    def said() -> str:
        events = namespace.get("events")["items"]
        return next((each["message"] for each in events if each["reason"] == "FailedCreate"), "")

    assert wait_for("event", said).endswith("is forbidden: no PriorityClass with name high was found")
