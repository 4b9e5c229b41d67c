"""The strict server of our own answers what a real one answers: the same requests to both."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from control_plane.jobs import Document, make_job, with_container
from control_plane.namespaces import Namespace
from control_plane.pods import PODS
from fakes.held_processes import HeldProcesses
from relaunch_local.ecs.clock import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request, answer

pytestmark = pytest.mark.kubernetes

MERGE = "application/merge-patch+json"


def resources(**kinds: Document) -> Callable[[], Document]:
    return lambda: with_container(make_job(), resources=kinds)


JOBS: dict[str, Callable[[], Document]] = {
    "as in the document": make_job,
    "quantities as text": lambda: make_job(limits={"aliyun.com/gpu-mem": "2", "aliyun.com/gpu-core.percentage": "30"}),
    "fraction": lambda: make_job(limits={"aliyun.com/gpu-mem": 0.5}),
    "fraction of a whole GPU": lambda: make_job(limits={"nvidia.com/gpu": "0.5"}),
    "suffix": lambda: make_job(limits={"aliyun.com/gpu-mem": "2Gi"}),
    "negative": lambda: make_job(limits={"aliyun.com/gpu-mem": "-5"}),
    "no quantity": lambda: make_job(limits={"aliyun.com/gpu-mem": "two"}),
    "request without a limit": resources(requests={"aliyun.com/gpu-mem": 2}),
    "request other than its limit": resources(limits={"aliyun.com/gpu-mem": 3}, requests={"aliyun.com/gpu-mem": 2}),
    "processors": resources(limits={"cpu": "500m", "memory": "1.5Gi"}, requests={"cpu": 0.25, "memory": "1Gi"}),
    "more requested than allowed": resources(limits={"cpu": "1"}, requests={"cpu": "2"}),
    "resource without a domain": lambda: make_job(limits={"gpu-mem": 2}),
    "label that is a number": lambda: make_job(metadata={"labels": {"a": 1}}),
    "label that is too long": lambda: make_job(metadata={"labels": {"a": "x" * 64}}),
    "label with a space": lambda: make_job(metadata={"labels": {"a": "Tesla T4"}}),
    "label with a bad key": lambda: make_job(metadata={"labels": {"a b": "c"}}),
    "long annotation": lambda: make_job(metadata={"annotations": {"a": "x" * (256 << 10)}}),
    "restarts always": lambda: make_job(pod={"restartPolicy": "Always"}),
    "restarts as by default": lambda: make_job(pod={"restartPolicy": None}),
    "restarts on failure": lambda: make_job(pod={"restartPolicy": "OnFailure"}),
    "name that is too long": lambda: make_job("a" * 64),
    "name with an underscore": lambda: make_job("train_1"),
    "name in upper case": lambda: make_job("Train"),
    "no name": lambda: make_job(""),
    "no containers": lambda: make_job(pod={"containers": []}),
    "container without an image": lambda: with_container(make_job(), image=""),
    "container without a name": lambda: with_container(make_job(), name=""),
    "environment that is a number": lambda: with_container(make_job(), env=[{"name": "A", "value": 1}]),
    "environment": lambda: with_container(make_job(), env=[{"name": "A.b-c", "value": "1"}]),
    "grace": lambda: make_job(pod={"terminationGracePeriodSeconds": 90}),
    "node selector": lambda: make_job(pod={"nodeSelector": {"ack.node.gpu.schedule": "core_mem"}}),
    "fields of newer servers": lambda: make_job(
        suspend=True,
        ttlSecondsAfterFinished=60,
        completionMode="NonIndexed",
        podFailurePolicy={"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
    ),
    "fields of all servers": lambda: make_job(parallelism=1, completions=1, backoffLimit=0, activeDeadlineSeconds=3600),
    "unknown field": lambda: make_job(backofLimit=0),
    "negative backoffLimit": lambda: make_job(backoffLimit=-1),
    "deadline of no seconds": lambda: make_job(activeDeadlineSeconds=0),
    "other version": lambda: make_job() | {"apiVersion": "batch/v2"},
    "other kind": lambda: make_job() | {"kind": "Pod"},
    "no spec": lambda: {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}},
}


class Servers:
    """Both servers, of the same minor version."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.cluster = KubernetesCluster(Clock(), HeldProcesses(), minor=namespace.plane.version.minor)

    def real(self, request: Request) -> tuple[int, Any]:
        answered = self.namespace.api.request(
            request.method,
            request.path,
            params=dict(request.query),
            content=request.body,
            headers={
                "Content-Type": request.content_type or "application/json",
                "Accept": request.accept or "application/json",
            },
        )
        is_json = answered.headers.get("Content-Type", "").startswith("application/json")
        return answered.status_code, answered.json() if is_json else answered.text

    def ours(self, request: Request) -> tuple[int, Any]:
        try:
            status, content, _ = answer(self.cluster, request)
        except ApiError as error:
            return error.code, error.to_status()
        return status, content


@pytest.fixture
def servers(namespace: Namespace) -> Servers:
    return Servers(namespace)


def creating(servers: Servers, job: Document, **query: str) -> Request:
    return Request("POST", servers.namespace.path("jobs"), query, json.dumps(job).encode())


def compare(servers: Servers, request: Request) -> Any:
    """Send a request to both; the answers have the same status and reason, and refuse the same fields."""
    real, ours = servers.real(request), servers.ours(request)
    assert summary(ours) == summary(real)
    return real[1]


def summary(answered: tuple[int, Any]) -> tuple[int, str, list[str]]:
    """Return status and reason of an answer, and the fields that it refuses: the rest has other words by version."""
    status, content = answered
    if status < 300 or not isinstance(content, dict):
        return status, "", []
    message = content.get("message", "")
    return status, content.get("reason", ""), REFUSED.findall(message) if status == 422 else []


REFUSED = re.compile(
    r"(?<![\w.])((?:metadata|spec|patch)[\w.\[\]/-]*): "
    "(?=Invalid value|Required value|Too long|Not found|Duplicate value|Unsupported value|Forbidden)"
)


@pytest.mark.parametrize("case", JOBS | PODS)
def test_a_job_is_stored_or_refused_alike(servers: Servers, case: str) -> None:
    request = creating(servers, (JOBS | PODS)[case]())
    real, ours = servers.real(request), servers.ours(request)

    assert summary(ours) == summary(real)
    if real[0] == 201:
        assert differences(without_uid(ours[1])["spec"], without_uid(real[1])["spec"]) == []
        assert set(ours[1]["spec"]) | DEFAULTS >= set(real[1]["spec"])


# Defaults and generated fields that only real servers add.
DEFAULTS = {"suspend", "completionMode", "podReplacementPolicy", "manualSelector"}


def without_uid(document: Document) -> Document:
    """Return an object with the same UID as any other: a Job finds its pods by it."""
    return dict(json.loads(json.dumps(document).replace(document["metadata"]["uid"], "UID")))


def differences(ours: Any, real: Any, path: str = "spec") -> list[str]:
    """Return where what we store is not what a real server stores; it may store more."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [each for key in ours for each in differences(ours[key], real.get(key), f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        pairs = enumerate(zip(ours, real, strict=True))
        return [each for number, (a, b) in pairs for each in differences(a, b, f"{path}[{number}]")]
    return [] if ours == real else [f"{path}: {ours!r} is {real!r}"]


def test_an_unknown_field_is_refused_only_where_the_server_can(servers: Servers) -> None:
    compare(servers, creating(servers, make_job(backofLimit=0), fieldValidation="Strict"))


def test_the_same_name_is_taken(servers: Servers) -> None:
    for _ in range(2):
        answered = compare(servers, creating(servers, make_job()))

    assert answered["reason"] == "AlreadyExists"


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        ({"spec": {"activeDeadlineSeconds": 1}, "metadata": {"annotations": {"a": "b"}}}, MERGE),
        ({"spec": {"parallelism": 0, "backoffLimit": 0}}, MERGE),
        ({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}, MERGE),
        ({"spec": {"completions": 2}}, MERGE),
        ({"spec": {"activeDeadlineSeconds": -1}}, MERGE),
        ({"metadata": {"annotations": {"a": 1}}}, MERGE),
        ({"metadata": {"labels": {"a": "b c"}}}, MERGE),
        ({"metadata": {"name": "other"}}, MERGE),
        ({"spec": {"activeDeadlineSeconds": 1}}, "application/json"),
        ([], MERGE),
    ],
    ids=str,
)
def test_a_patch_is_taken_or_refused_alike(servers: Servers, patch: object, content_type: str) -> None:
    compare(servers, creating(servers, make_job()))
    path = servers.namespace.path("jobs", "cuda-sample")

    compare(servers, Request("PATCH", path, {}, json.dumps(patch).encode(), content_type))


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
@pytest.mark.parametrize("resource", ["jobs", "pods"])
def test_what_is_not_there_is_not_found(servers: Servers, method: str, resource: str) -> None:
    path = servers.namespace.path(resource, "nobody")

    compare(servers, Request(method, path, {}, b"{}", MERGE if method == "PATCH" else ""))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b"{}"], ids=repr)
def test_what_is_no_job_is_refused_alike(servers: Servers, body: bytes) -> None:
    compare(servers, Request("POST", servers.namespace.path("jobs"), {}, body))


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "app=cuda-sample"},
        {"labelSelector": "app in (cuda-sample,other)"},
        {"labelSelector": "app notin (cuda-sample)"},
        {"labelSelector": "app!=cuda-sample"},
        {"labelSelector": "!app"},
        {"labelSelector": "app"},
        {"labelSelector": "app in"},
        {"labelSelector": "app in ()"},
        {"labelSelector": "app=a b"},
        {"labelSelector": "app=,"},
        {"labelSelector": "a b"},
        {"fieldSelector": "metadata.name=cuda-sample"},
        {"fieldSelector": "metadata.name==cuda-sample"},
        {"fieldSelector": "status.successful=0"},
        {"fieldSelector": "spec.nodeName=a"},
        {"limit": "1"},
        {"limit": "x"},
        {"limit": "1", "continue": "x"},
    ],
    ids=str,
)
def test_a_list_finds_or_refuses_alike(servers: Servers, query: dict[str, str]) -> None:
    compare(servers, creating(servers, make_job()))
    request = Request("GET", servers.namespace.path("jobs"), query)
    real, ours = servers.real(request), servers.ours(request)

    assert summary(ours) == summary(real)
    assert names(ours[1]) == names(real[1])


def names(content: Any) -> list[str]:
    return [each["metadata"]["name"] for each in content.get("items") or ()]


@pytest.mark.parametrize("field", ["status.phase=Pending", "spec.nodeName=", "metadata.namespace=a", "spec.image=a"])
def test_pods_are_found_by_their_fields_alike(servers: Servers, field: str) -> None:
    compare(servers, creating(servers, make_job()))
    servers.namespace.pod("cuda-sample")
    request = Request("GET", servers.namespace.path("pods"), {"fieldSelector": field})
    real, ours = servers.real(request), servers.ours(request)

    assert summary(ours) == summary(real)
    assert len(names(ours[1])) == len(names(real[1]))


@pytest.mark.parametrize("field", ["reason=Scheduled", "involvedObject.uid=a", "involvedObject.kind=Pod", "note=a"])
def test_events_are_found_by_their_fields_alike(servers: Servers, field: str) -> None:
    compare(servers, Request("GET", servers.namespace.path("events"), {"fieldSelector": field}))


def test_a_job_can_be_suspended_and_deleted_alike(servers: Servers) -> None:
    compare(servers, creating(servers, make_job()))
    path = servers.namespace.path("jobs", "cuda-sample")

    compare(servers, Request("DELETE", path, {}, b'{"propagationPolicy": "Background"}'))
    compare(servers, Request("GET", path, {}))
    compare(servers, creating(servers, make_job()))


@pytest.mark.parametrize("api_version", ["policy/v1", "policy/v1beta1"])
def test_an_eviction_is_known_or_not_alike(servers: Servers, api_version: str) -> None:
    compare(servers, creating(servers, make_job()))
    real = servers.namespace.pod("cuda-sample")["metadata"]["name"]
    ours = servers.cluster.state.all("pods", servers.namespace.name)[0]["metadata"]["name"]
    eviction = {"apiVersion": api_version, "kind": "Eviction"}

    def evicting(pod: str) -> Request:
        body = json.dumps(eviction | {"metadata": {"name": pod, "namespace": servers.namespace.name}}).encode()
        return Request("POST", f"{servers.namespace.path('pods', pod)}/eviction", {}, body)

    assert summary(servers.ours(evicting(ours))) == summary(servers.real(evicting(real)))


@pytest.mark.parametrize("query", [{}, {"container": "main"}, {"container": "other"}], ids=str)
def test_the_log_of_a_pod_without_a_node_is_alike(servers: Servers, query: dict[str, str]) -> None:
    compare(servers, creating(servers, make_job()))
    real = servers.namespace.pod("cuda-sample")["metadata"]["name"]
    ours = servers.cluster.state.all("pods", servers.namespace.name)[0]["metadata"]["name"]

    def reading(pod: str) -> Request:
        return Request("GET", f"{servers.namespace.path('pods', pod)}/log", query)

    asked_ours, asked_real = servers.ours(reading(ours)), servers.real(reading(real))
    assert asked_ours[0] == asked_real[0]
    if isinstance(asked_real[1], str):
        assert asked_ours[1] == asked_real[1]


@pytest.mark.parametrize("resource", ["jobs", "pods", "events", "configmaps", "roles", "rolebindings"])
def test_a_table_has_the_same_columns(servers: Servers, resource: str) -> None:
    request = Request("GET", servers.namespace.path(resource), {}, accept=TABLE)

    assert columns(servers.ours(request)[1]) == columns(servers.real(request)[1])


def test_a_job_and_its_pod_are_the_same_rows_of_a_table(servers: Servers) -> None:
    servers.cluster.schedulers.clear()
    compare(servers, creating(servers, make_job(pod={"schedulerName": "nobody"})))
    servers.namespace.started("cuda-sample")
    servers.namespace.pod("cuda-sample")
    for resource in ("jobs", "pods"):
        request = Request("GET", servers.namespace.path(resource), {}, accept=TABLE)

        assert cells(servers.ours(request)[1]) == cells(servers.real(request)[1])


@pytest.mark.parametrize("group", ["/api/v1", "/apis/batch/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1"])
def test_what_discovery_says_of_our_resources_is_true(servers: Servers, group: str) -> None:
    request = Request("GET", group, {})
    known = {each["name"]: each for each in servers.real(request)[1]["resources"]}

    for each in servers.ours(request)[1]["resources"]:
        there = known[each["name"]]
        if each["name"] != "pods/eviction":
            assert [each.get(key) for key in SAID] == [there.get(key) for key in SAID]
        assert set(each["verbs"]) <= set(there["verbs"])


SAID = ("kind", "namespaced", "shortNames", "categories")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGE = re.compile(r"[0-9]+(s|m|m[0-9]+s)")
RANDOM = re.compile(r"(?<=cuda-sample-)[a-z0-9]{5}\b|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def columns(table: Document) -> list[tuple[str, bool]]:
    """Return the columns of a table, and whether each is shown with `-o wide` alone."""
    return [(each["name"], each["priority"] > 0) for each in table["columnDefinitions"]]


def cells(table: Document) -> list[list[str]]:
    """Return the cells of a table, without ages and what is drawn."""
    shown = [[RANDOM.sub("*", str(each)) for each in row["cells"]] for row in table["rows"]]
    return [["AGE" if AGE.fullmatch(each) else each for each in row] for row in shown]
