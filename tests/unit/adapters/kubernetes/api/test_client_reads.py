"""What the client reads of pods, events, logs, nodes and config maps."""

import json
from datetime import UTC, datetime

import httpx
import pytest

from relaunch.adapters.kubernetes.api import client as api_client
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, GoneError, NotFoundError
from relaunch.ports import TransientError

PODS = "https://192.0.2.1:6443/api/v1/namespaces/training/pods"


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "status": {"phase": "Running"}}


def test_a_list_is_read_page_by_page(client: KubernetesClient, server) -> None:
    server.answer(200, {"metadata": {"continue": "next"}, "items": [pod("a"), pod("b")]})
    server.answer(200, {"metadata": {}, "items": None})

    pages = [[each.metadata.name for each in page] for page in client.list_pods("app=train", limit=2)]

    assert pages == [["a", "b"], []]
    first, second = (dict(each.url.params) for each in server.requests)
    assert first == {"limit": "2", "labelSelector": "app=train"}
    assert second == {"limit": "2", "labelSelector": "app=train", "continue": "next"}


def test_an_expired_list_is_read_again_from_the_first_page(client: KubernetesClient, server) -> None:
    server.answer(200, {"metadata": {"continue": "old"}, "items": [pod("a")]})
    server.refuse(410, "Expired", "The provided continue parameter is too old")
    server.answer(200, {"metadata": {}, "items": [pod("a"), pod("b")]})

    names = [each.metadata.name for page in client.list_pods("") for each in page]

    assert names == ["a", "a", "b"]
    assert dict(server.last.url.params) == {"limit": "100"}


def test_a_list_that_expires_again_and_again_ends_in_a_transient_error(client: KubernetesClient, server) -> None:
    for _ in range(4):
        server.answer(200, {"metadata": {"continue": "old"}, "items": []})
        server.refuse(410, "Expired", "The provided continue parameter is too old")

    with pytest.raises(GoneError):
        list(client.list_pods(""))


def test_an_expired_first_page_is_not_asked_for_again(client: KubernetesClient, server) -> None:
    server.refuse(410, "Expired", "too old resource version")

    with pytest.raises(GoneError):
        list(client.list_jobs("app=train"))


def test_a_list_that_does_not_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, client: KubernetesClient, server
) -> None:
    monkeypatch.setattr(api_client, "_MAX_PAGES", 3)
    for _ in range(3):
        server.answer(200, {"metadata": {"continue": "next"}, "items": []})

    with pytest.raises(TransientError, match="listing pods: the list does not end after 3 pages"):
        list(client.list_pods(""))


def test_an_answer_is_read_no_further_than_any_server_writes(
    monkeypatch: pytest.MonkeyPatch, client: KubernetesClient, server
) -> None:
    monkeypatch.setattr(api_client, "_MAX_ANSWER_BYTES", 1 << 20)
    server.answer(200, " " * (1 << 20) + "{}")

    with pytest.raises(TransientError, match="the answer is longer than 1 MiB"):
        client.get_job("a")


@pytest.mark.parametrize(
    "answer",
    [
        "[" * 100_000 + "]" * 100_000,
        {"items": 7},
        {"items": ["a"]},
        {
            "items": [
                {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "resources": {"limits": 7}}]}}
            ]
        },
    ],
    ids=["too deep", "no list", "no objects", "no quantities"],
)
def test_a_list_that_is_none_is_a_transient_error(client: KubernetesClient, server, answer) -> None:
    server.answer(200, answer)

    with pytest.raises(TransientError):
        list(client.list_pods(""))


@pytest.mark.parametrize("document", [{}, {"metadata": {}, "data": 7}, {"metadata": {}, "data": {"selectors": []}}])
def test_a_config_map_without_texts_is_a_transient_error(client: KubernetesClient, server, document) -> None:
    server.answer(200, document)

    with pytest.raises(TransientError, match="the answer is no ConfigMapTexts"):
        client.get_config_map("kube-system", "acs-profile")


@pytest.mark.parametrize(
    ("written", "year"),
    [
        ("2026-11-03T12:00:00Z", 2026),
        ("1970-01-01T00:00:00Z", 1970),
        ("2026-11-03T12:00:00", None),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
    ],
)
def test_a_time_that_no_server_writes_is_none(client: KubernetesClient, server, written, year) -> None:
    server.answer(200, {"items": [{"metadata": {"name": "a", "creationTimestamp": written}}]})

    ((pod_read,),) = client.list_pods("")

    at = pod_read.metadata.creation_timestamp
    assert (at.year if at else None) == year


def test_events_of_an_object_come_in_order_each_once(client: KubernetesClient, server) -> None:
    about = {"involvedObject": {"kind": "Pod", "name": "p", "uid": "u-1"}}
    late = {"metadata": {"name": "e2", "uid": "2"}, "reason": "Evicted", "lastTimestamp": "2026-11-03T12:02:00Z"}
    early = {"metadata": {"name": "e1", "uid": "1"}, "reason": "Scheduled", "eventTime": "2026-11-03T12:01:00.000001Z"}
    server.answer(200, {"metadata": {"continue": "n"}, "items": [about | late]})
    server.answer(200, {"metadata": {}, "items": [about | early, about | late]})

    events = client.list_events("u-1")

    assert [each.reason for each in events] == ["Scheduled", "Evicted"]
    assert server.requests[0].url.params["fieldSelector"] == "involvedObject.uid=u-1"
    assert server.last.url.path == "/api/v1/namespaces/training/events"


def test_reads_a_log_line_by_line(client: KubernetesClient, server) -> None:
    server.answer(200, "2026-11-03T12:00:00.1Z a\x0cb\n\n2026-11-03T12:00:01.2Z step 2\r 3")
    since = datetime(2026, 11, 3, 12, 0, 0, 900000, tzinfo=UTC)

    lines = list(client.read_log("p", "main", tail_lines=10, since_time=since))

    assert lines == ["2026-11-03T12:00:00.1Z a\x0cb", "", "2026-11-03T12:00:01.2Z step 2\r 3"]
    assert str(server.last.url).startswith(f"{PODS}/p/log?")
    assert dict(server.last.url.params) == {
        "container": "main",
        "limitBytes": "10485760",
        "timestamps": "true",
        "tailLines": "10",
        "sinceTime": "2026-11-03T12:00:00Z",
    }


def test_a_container_that_waits_has_no_log_yet(client: KubernetesClient, server) -> None:
    message = 'container "main" in pod "p" is waiting to start: ContainerCreating'
    server.refuse(400, "BadRequest", message)

    assert list(client.read_log("p", "main", timestamps=False)) == []


@pytest.mark.parametrize(
    ("code", "reason", "message", "error"),
    [
        (400, "BadRequest", "container x is not valid for pod p", ApiRefusedError),
        (404, "NotFound", 'pods "p" not found', NotFoundError),
    ],
)
def test_a_log_that_cannot_be_read_is_an_error(client, server, code, reason, message, error) -> None:
    server.refuse(code, reason, message)

    with pytest.raises(error, match=r"reading the log of main in pod p"):
        list(client.read_log("p", "main"))


def test_a_log_that_breaks_off_is_a_transient_error(client: KubernetesClient, server) -> None:
    class Broken(httpx.SyncByteStream):
        def __iter__(self):
            yield b"line 1\nli"
            raise httpx.ReadError("reset")

    server.answers.append(httpx.Response(200, stream=Broken()))
    lines = client.read_log("p", "main")

    assert next(lines) == "line 1"
    with pytest.raises(TransientError, match="reset"):
        next(lines)


def test_reads_nodes_with_what_pods_may_use(client: KubernetesClient, server) -> None:
    gpus = {"aliyun.com/gpu-core.percentage": "400", "aliyun.com/gpu-count": "4", "aliyun.com/gpu-mem": 60}
    status = {"allocatable": gpus, "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"providerID": "cn-beijing.i-1", "taints": [{"key": "k", "effect": "NoSchedule"}]}
    server.answer(200, {"items": [{"metadata": {"name": "gpu-1"}, "spec": spec, "status": status}]})

    (page,) = client.list_nodes()

    assert page[0].status.allocatable["aliyun.com/gpu-mem"] == "60"
    assert (page[0].is_ready, page[0].spec.provider_id, page[0].spec.taints[0].key) == (True, "cn-beijing.i-1", "k")


def test_a_config_map_is_replaced_with_all_it_had(client: KubernetesClient, server) -> None:
    stored = {
        "metadata": {"name": "acs-profile", "namespace": "kube-system", "resourceVersion": "7", "managedFields": [1]},
        "data": {"selectors": "", "vpcId": "vpc-1"},
        "binaryData": {"x": "AA=="},
    }
    server.answer(200, stored)
    server.answer(200, stored)

    found = client.get_config_map("kube-system", "acs-profile")
    assert found is not None
    client.replace_config_map(found.with_value("selectors", "[]"))

    assert (server.last.method, server.last.url.path) == (
        "PUT",
        "/api/v1/namespaces/kube-system/configmaps/acs-profile",
    )
    assert json.loads(server.last.content) == stored | {"data": {"selectors": "[]", "vpcId": "vpc-1"}}


def test_a_config_map_that_does_not_exist_is_none(client: KubernetesClient, server) -> None:
    server.refuse(404, "NotFound", 'configmaps "acs-profile" not found')

    assert client.get_config_map("kube-system", "acs-profile") is None


@pytest.mark.parametrize(
    ("answer", "version"), [({"major": "1", "minor": "20+", "gitVersion": "v1.20.4-aliyun.1"}, (1, 20))]
)
def test_reads_the_version_of_a_vendor(client: KubernetesClient, server, answer, version) -> None:
    server.answer(200, answer)

    found = client.version()

    assert (found.major, found.minor) == version
    assert found.git_version == "v1.20.4-aliyun.1"
