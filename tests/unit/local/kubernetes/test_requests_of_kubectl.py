"""What kubectl asks beside objects: discovery, tables, changes as they happen, patches that know the keys of lists."""

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import yaml

from relaunch_local.ecs.processes.port import LogTarget, Script
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.patches import STRATEGIC, strategic_patch
from relaunch_local.kubernetes.requests import Request, answer
from relaunch_local.kubernetes.resources import RESOURCES
from relaunch_local.kubernetes.server import KubernetesServer
from relaunch_local.kubernetes.tables import human_duration, job_status, pod_status
from tests.unit.local.kubernetes.conftest import NAMESPACE, World, manifest

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def ask(world: World, method: str, path: str, body: object = None, accept: str = "", **query: str) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    kind = STRATEGIC if method == "PATCH" else "application/json"
    return answer(world.cluster, Request(method, path, query, sent, kind, accept=accept))[1]


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    names = [each["name"] for each in table["columnDefinitions"]]
    return [dict(zip(names, each["cells"], strict=True)) for each in table["rows"]]


def test_each_resource_is_found_by_discovery_in_the_group_that_its_objects_are_of(world: World) -> None:
    groups = ["api/v1", *(f"apis/{each['name']}/v1" for each in ask(world, "GET", "/apis")["groups"])]
    lists = [ask(world, "GET", f"/{each}") for each in groups]
    found = {(each["name"], listed["groupVersion"]): each for listed in lists for each in listed["resources"]}

    assert {name for name, _ in found if "/" not in name} == RESOURCES.keys()
    assert found["pods/eviction", "v1"]["kind"] == "Eviction"
    for (name, version), each in found.items():
        if "/" not in name:
            listed = ask(world, "GET", f"/{'api' if version == 'v1' else 'apis'}/{version}/{name}")
            assert (listed["apiVersion"], listed["kind"]) == (version, f"{each['kind']}List")


def test_kubectl_sees_that_fields_of_jobs_are_validated(world: World) -> None:
    path = ask(world, "GET", "/openapi/v3")["paths"]["apis/batch/v1"]["serverRelativeURL"]
    operations = [each["patch"] for each in ask(world, "GET", path)["paths"].values()]

    (jobs,) = [each for each in operations if each["x-kubernetes-group-version-kind"]["kind"] == "Job"]
    assert [each["name"] for each in jobs["parameters"]] == ["fieldValidation"]


def test_jobs_and_pods_are_tables_for_who_asks_for_tables(world: World) -> None:
    world.script = Script(runtime_seconds=None)
    world.create()
    world.clock.advance(87)

    (job,) = rows(ask(world, "GET", JOBS, accept=TABLE))
    (pod,) = rows(ask(world, "GET", PODS, accept=TABLE))

    uid = f"batch.kubernetes.io/controller-uid={world.job()['metadata']['uid']}"
    assert list(job.values()) == [
        *("cuda-sample", "Running", "0/1", "87s", "87s", "main", "registry.example/train:1", uid),
    ]
    assert list(pod.values())[1:7] == ["1/1", "Running", "0", "87s", "<none>", "gpu-1"]
    assert ask(world, "GET", JOBS, accept="application/json")["kind"] == "JobList"


def test_a_table_of_one_object_or_with_whole_objects_is_what_kubectl_sorts(world: World) -> None:
    world.create()

    one = ask(world, "GET", f"{JOBS}/cuda-sample", accept=TABLE)
    whole = ask(world, "GET", JOBS, accept=TABLE, includeObject="Object")

    assert one["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert whole["rows"][0]["object"]["spec"]["backoffLimit"] == 0


def test_other_kinds_have_tables_too(world: World) -> None:
    world.cluster.add_namespace(NAMESPACE)
    world.cluster.add_secret(NAMESPACE, "wandb", key="1")
    world.create(limits={"aliyun.com/gpu-mem": 99})
    world.clock.advance(30)
    ask(world, "PATCH", "/api/v1/nodes/gpu-1", {"spec": {"unschedulable": True}})
    binding = {"roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "User", "name": "u"}]}
    ask(
        world,
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings",
        {"metadata": {"name": "b"}} | binding,
    )
    ask(world, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", {"metadata": {"name": "a"}})

    def table(path: str) -> dict[str, Any]:
        return rows(ask(world, "GET", path, accept=TABLE))[0]

    assert table("/api/v1/nodes")["Status"] == "Ready,SchedulingDisabled"
    assert table("/api/v1/namespaces")["Status"] == "Active"
    assert table(f"/api/v1/namespaces/{NAMESPACE}/secrets")["Data"] == "1"
    event = table("/api/v1/events")
    assert (event["Last Seen"], event["Reason"], event["Source"]) == ("30s", "FailedScheduling", "default-scheduler")
    assert table("/apis/rbac.authorization.k8s.io/v1/rolebindings")["Users"] == "u"
    assert table("/apis/rbac.authorization.k8s.io/v1/roles")["Created At"] == "2026-01-01T00:00:30Z"


@pytest.mark.parametrize(("minor", "has_status"), [(29, False), (30, True)])
def test_the_status_of_a_job_is_a_column_of_newer_servers(make_world: Callable[..., World], minor, has_status) -> None:
    table = ask(make_world(minor=minor), "GET", JOBS, accept=TABLE)

    assert ("Status" in {each["name"] for each in table["columnDefinitions"]}) is has_status


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (28_800, "8h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (700_000, "8d"),
    ],
)
def test_durations_have_the_figures_of_a_server(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def pod(main: dict[str, Any] | None, *init: tuple[dict[str, Any], bool], **status: Any) -> dict[str, Any]:
    sidecar = {True: {"restartPolicy": "Always"}, False: {}}
    names = [(f"init-{number}", each) for number, each in enumerate(init)]
    states = [{"name": name, "ready": "running" in state, "state": state} for name, (state, _) in names]
    return {
        "metadata": {},
        "spec": {"containers": [{}], "initContainers": [{"name": name, **sidecar[each]} for name, (_, each) in names]},
        "status": {"phase": "Pending", "initContainerStatuses": states, **status}
        | ({"containerStatuses": [{"name": "main", "state": main}]} if main is not None else {}),
    }


DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        (pod(None), "Pending"),
        (pod({"waiting": {"reason": "ImagePullBackOff"}}), "ImagePullBackOff"),
        (pod({"running": {}}, phase="Running"), "Running"),
        (pod(DONE, phase="Succeeded"), "Completed"),
        (pod({"terminated": {"exitCode": 3}}, phase="Failed"), "ExitCode:3"),
        (pod(None, phase="Failed", reason="Evicted"), "Evicted"),
        (pod(INITIALIZING, (DONE, False), ({"running": {}}, False)), "Init:1/2"),
        (pod(INITIALIZING, ({"waiting": {"reason": "ErrImagePull"}}, False)), "Init:ErrImagePull"),
        (pod(INITIALIZING, ({"terminated": {"exitCode": 1, "reason": "Error"}}, False)), "Init:Error"),
        (pod({"running": {}}, ({"running": {}}, True), phase="Running"), "Running"),
        (pod({"running": {}}) | {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "Terminating"),
    ],
)
def test_the_status_of_a_pod_is_that_of_its_containers(document: dict[str, Any], shown: str) -> None:
    assert pod_status(document) == shown


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        ([], "Running"),
        (["Suspended"], "Suspended"),
        (["FailureTarget"], "FailureTarget"),
        (["FailureTarget", "Failed"], "Failed"),
        (["SuccessCriteriaMet", "Complete"], "Complete"),
    ],
)
def test_the_status_of_a_job_is_that_of_its_conditions(kinds: list[str], shown: str) -> None:
    conditions = [{"type": each, "status": "True"} for each in kinds]

    assert job_status({"metadata": {}, "status": {"conditions": conditions}}) == shown


def watch(world: World, path: str, **query: str) -> Iterator[dict[str, Any]]:
    events: Iterator[dict[str, Any]] = ask(world, "GET", path, watch="true", **query)
    return events


def test_a_watch_tells_what_changes_after_a_list(world: World) -> None:
    world.script = Script(runtime_seconds=None)
    world.create("before")
    listed = ask(world, "GET", JOBS)
    events = watch(world, JOBS, resourceVersion=listed["metadata"]["resourceVersion"], labelSelector="app=cuda-sample")
    world.create("later")
    added = next(events)
    world.cluster.patch_job(NAMESPACE, "before", {"spec": {"activeDeadlineSeconds": 9}})
    changed = next(events)
    world.cluster.patch_job(NAMESPACE, "before", {"metadata": {"labels": {"app": "other"}}})
    left = next(events)
    world.cluster.delete_job(NAMESPACE, "later")
    deleted = next(events)

    seen = [(each["type"], each["object"]["metadata"]["name"]) for each in (added, changed, left, deleted)]
    assert seen == [("ADDED", "later"), ("MODIFIED", "before"), ("DELETED", "before"), ("DELETED", "later")]


def test_a_watch_without_a_version_begins_with_what_is_there(world: World) -> None:
    world.create("there")

    assert next(watch(world, JOBS))["type"] == "ADDED"
    events = watch(world, JOBS, sendInitialEvents="true")
    first = next(events)
    end = next(events)
    assert first["object"]["metadata"]["name"] == "there"
    assert (end["type"], end["object"]["kind"]) == ("BOOKMARK", "Job")


def test_a_watch_ends_when_its_time_is_over_or_the_server_is_closed(world: World) -> None:
    assert list(watch(world, JOBS, timeoutSeconds="0.01")) == []
    closed = Request("GET", JOBS, {"watch": "true"}, is_closed=lambda: True)
    assert list(answer(world.cluster, closed)[1]) == []


def test_a_watch_from_too_long_ago_is_told_so(world: World) -> None:
    world.cluster.state.expire_lists()

    (event,) = watch(world, JOBS, resourceVersion="1")

    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    with pytest.raises(ApiError, match="must be a number"):
        next(watch(world, JOBS, resourceVersion="x"))


def test_a_log_is_followed_until_its_pod_has_ended(world: World) -> None:
    world.create()
    world.clock.advance(1)
    metadata = world.pod["metadata"]

    def write(text: str) -> None:
        world.cluster.write_log(
            LogTarget(NAMESPACE, metadata["uid"]), int((world.clock.now()).timestamp() * 1000), text
        )

    write("step 1")
    write("step 2")
    lines = ask(world, "GET", f"{PODS}/{metadata['name']}/log", follow="true", tailLines="1")
    first = next(lines)
    write("step 3")
    world.clock.advance_to(world.clock.now() + timedelta(minutes=9))

    assert [first, *lines] == ["step 2\n", "step 3\n"]


def test_fields_can_be_excluded(world: World) -> None:
    world.create()
    selector = "spec.nodeName=gpu-1,status.phase!=Succeeded,status.phase!=Failed"
    found = [ask(world, "GET", "/api/v1/pods", fieldSelector=selector)["items"]]
    world.clock.advance(120)
    found.append(ask(world, "GET", "/api/v1/pods", fieldSelector=selector)["items"])

    assert [len(each) for each in found] == [1, 0]


def test_a_strategic_patch_merges_elements_by_their_keys() -> None:
    before = {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "args": ["x"], "gone": 1, "m": {"k": 1}}
    patch = {
        "$setElementOrder/containers": [{"name": "a"}],
        "containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}],
        "args": ["y"],
        "gone": None,
        "m": {"$patch": "replace", "n": 2},
    }

    assert strategic_patch(before, patch) == {
        "containers": [{"name": "a", "image": "2"}, {"name": "c"}],
        "args": ["y"],
        "m": {"n": 2},
    }


def test_what_kubectl_applies_again_changes_no_job(world: World) -> None:
    world.create()
    numbers = [{"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": 2}}}]

    patched = ask(world, "PATCH", f"{JOBS}/cuda-sample", {"spec": {"template": {"spec": {"containers": numbers}}}})

    assert patched["spec"] == world.job()["spec"]
    assert patched["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"] == "2"


@pytest.mark.parametrize(
    ("request_of", "code"),
    [
        (Request("POST", JOBS, {"dryRun": "All"}, b"{}"), 400),
        (Request("POST", "/api/v1/namespaces", {}, b"k8s\x00", "application/vnd.kubernetes.protobuf"), 415),
        (Request("POST", PODS, {}, b"{}"), 405),
        (Request("PATCH", "/api/v1/namespaces/a/events/b", {}, b"{}", STRATEGIC), 404),
        (Request("PATCH", f"{PODS}/cuda-sample", {}, b"{}", STRATEGIC), 405),
    ],
)
def test_what_is_not_served_is_refused_and_changes_nothing(world: World, request_of: Request, code: int) -> None:
    world.cluster.state.add("pods", NAMESPACE, pod(None) | {"metadata": {"name": "cuda-sample"}})
    with pytest.raises(ApiError) as caught:
        answer(world.cluster, request_of)

    assert caught.value.code == code


def test_changes_and_logs_come_over_https_as_they_happen(server: KubernetesServer, world: World) -> None:
    world.script = Script(runtime_seconds=None)
    read = yaml.safe_load(server.kubeconfig(NAMESPACE))
    headers = {"Authorization": f"Bearer {read['users'][0]['user']['token']}", "Accept": TABLE}
    trusted = ssl.create_default_context(cadata=server.authority.certificate)
    with (
        httpx.Client(base_url=server.url, headers=headers, verify=trusted, trust_env=False) as http,
        http.stream("GET", JOBS, params={"watch": "true"}) as changes,
    ):
        world.cluster.create_job(NAMESPACE, manifest())
        line = next(changes.iter_lines())

    assert json.loads(line)["object"]["rows"][0]["cells"][:2] == ["cuda-sample", "Running"]
