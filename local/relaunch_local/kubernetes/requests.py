"""Requests of the API: paths, verbs, selectors and pages."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.patches import MERGE, STRATEGIC, apply_patch
from relaunch_local.kubernetes.resources import RESOURCES, discover
from relaunch_local.kubernetes.role import Access
from relaunch_local.kubernetes.selectors import matches
from relaunch_local.kubernetes.services import admit_service
from relaunch_local.kubernetes.state import Document
from relaunch_local.kubernetes.tables import is_table_wanted, to_table
from relaunch_local.kubernetes.watches import Watch, follow, follow_log

Answered = tuple[int, Any, Mapping[str, str]]
"""Status, content and further headers; the content is an iterator where it comes bit by bit."""
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>batch|apps|rbac\.authorization\.k8s\.io)/v1)"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>log|eviction))?)?"
)
_METADATA = frozenset({"metadata.name", "metadata.namespace"})
_INVOLVED = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
# What lists can be selected by ("Field Selectors", Kubernetes documentation, and the conversions of its source).
_SELECTABLE = {
    "jobs": _METADATA | {"status.successful"},
    "nodes": frozenset({"metadata.name", "spec.unschedulable"}),
    "events": _METADATA
    | {*(f"involvedObject.{key}" for key in _INVOLVED), "reason", "reportingComponent", "source", "type"},
    "pods": _METADATA
    | {f"spec.{key}" for key in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")}
    | {f"status.{key}" for key in ("phase", "podIP", "nominatedNodeName")},
}
_FIELDS = {("jobs", "status.successful"): "status.succeeded"}
_UNSET = {"status.successful": "0"}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Request:
    """A request; `token` is the bearer token that came with it, empty for a client certificate."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = ""
    token: str = field(default="", repr=False)
    accept: str = ""
    is_closed: Callable[[], bool] = lambda: False
    """Whether the server is closed, which ends answers that last."""

    @property
    def is_watch(self) -> bool:
        """Whether changes are asked for."""
        return self.query.get("watch") in {"true", "1"}

    @property
    def access(self) -> Access:
        """What a Role has to allow."""
        found = _PATH.fullmatch(self.path)
        if found is None:
            return Access("get", "", self.path)
        resource = f"{found['resource']}/{found['part']}" if found["part"] else found["resource"]
        listing = "watch" if self.is_watch else "list"
        verb = _VERBS.get(self.method, "get" if found["name"] else listing)
        return Access(verb, found["group"] or "", resource, found["namespace"] or "")

    @property
    def name(self) -> str:
        """The name of the object that it is about, empty if it is about none or all."""
        found = _PATH.fullmatch(self.path)
        return (found["name"] or "") if found else ""

    def json(self) -> Document:
        """Return the body.

        Raises:
            ApiError: 400, it is no object; 415, it is no JSON: kubectl's own commands that create something without a
                file, such as `kubectl create namespace`, send protobuf.
        """
        if "protobuf" in self.content_type:
            said = "the body of the request was in an unknown format - accepted media types include: application/json"
            raise ApiError(415, "UnsupportedMediaType", f"{said} (use a file with kubectl create -f)")
        try:
            read = json.loads(self.body)
        except ValueError as error:
            raise ApiError(400, "BadRequest", f"invalid character: {error}") from error
        if not isinstance(read, dict):
            raise ApiError(400, "BadRequest", "couldn't get version/kind; json parse error")
        return read

    def patch(self) -> Document:
        """Return the body as a patch.

        Raises:
            ApiError: 415, 422, it is no merge patch, and no strategic one.
        """
        if self.content_type not in {MERGE, STRATEGIC}:
            said = "the body of the request was in an unknown format - accepted media types include: "
            raise ApiError(415, "UnsupportedMediaType", f"{said}{MERGE}, {STRATEGIC}")
        try:
            return self.json()
        except ApiError as error:
            raise ApiError(422, "Invalid", f' "" is invalid: patch: Invalid value: {error.message}') from error


def answer(cluster: KubernetesCluster, request: Request) -> Answered:
    """Answer a request.

    Raises:
        ApiError: the answer is an error.
    """
    if request.path == "/version":
        minor = str(cluster.minor)
        return 200, {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.2", "platform": "linux/amd64"}, {}
    if (discovered := discover(request.path)) is not None:
        return 200, discovered, {}
    found = _PATH.fullmatch(request.path)
    if found is None or found["resource"] not in RESOURCES:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    with cluster.clock.lock:
        cluster.clock.synchronize()
        status, content, headers = _answer(cluster, request, found)
        return status, content if isinstance(content, Iterator) else deepcopy(content), headers


def _answer(cluster: KubernetesCluster, request: Request, found: re.Match[str]) -> Answered:
    resource = found["resource"]
    namespace = found["namespace"] or ""
    name = found["name"]
    part = found["part"]
    match request.method, part:
        case "GET", "log":
            pod = cluster.state.get("pods", namespace, name)
            # As of a pod that has no node yet.
            return (200 if "nodeName" in pod["spec"] else 204), _read_log(cluster, request, pod), {}
        case "POST", "eviction":
            cluster.evict_pod(namespace, name, str(request.json().get("apiVersion")))
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}, {}
        case "GET", None:
            return 200, _read(cluster, request, resource, found["namespace"], name), {}
        case "DELETE", None if name:
            return _delete(cluster, request, resource, namespace, name)
    return _write(cluster, request, resource, namespace, name)


def _read(
    cluster: KubernetesCluster, request: Request, resource: str, namespace: str | None, name: str | None
) -> Document | Iterator[Document]:
    if name:
        shown = cluster.state.get(resource, namespace or "", name)
        return _as_asked(cluster, request, resource, [shown], shown)
    if request.is_watch:
        return _watch(cluster, request, resource, namespace)
    listed = _list(cluster, request, resource, namespace)
    return _as_asked(cluster, request, resource, listed["items"], listed)


def _as_asked(
    cluster: KubernetesCluster, request: Request, resource: str, listed: list[Document], plain: Document
) -> Document:
    """Return objects as a table if the client accepts one first."""
    if not is_table_wanted(request.accept):
        return plain
    table = to_table(resource, listed, plain["metadata"], cluster.clock.now(), cluster.minor)
    if request.query.get("includeObject") == "Object":
        for row, each in zip(table["rows"], listed, strict=True):
            row["object"] = each
    return table


def _write(cluster: KubernetesCluster, request: Request, resource: str, namespace: str, name: str | None) -> Answered:
    if (request.method, resource) == ("POST", "services") and not name:
        is_dry = request.query.get("dryRun") == "All"
        return 201, admit_service(cluster.state, namespace, request.json(), is_dry=is_dry), {}
    if "dryRun" in request.query:
        raise ApiError(400, "BadRequest", "dryRun is not supported by this server")
    return _write_other(cluster, request, resource, namespace, name)


def _write_other(
    cluster: KubernetesCluster, request: Request, resource: str, namespace: str, name: str | None
) -> Answered:
    match request.method, resource:
        case "POST", "jobs":
            is_strict = request.query.get("fieldValidation") == "Strict"
            job, warnings = cluster.create_job(namespace, request.json(), is_strict=is_strict)
            said = ", ".join(f'299 - "{each}"'.replace('"spec', '\\"spec') for each in warnings)
            return 201, job, {"Warning": said} if said else {}
        case "POST", _ if "create" in RESOURCES[resource].verbs and not name:
            sent = request.json()
            if resource == "namespaces":
                sent["status"] = {"phase": "Active"}
            return 201, cluster.state.add(resource, namespace, sent), {}
        case "PUT", "configmaps" if name:
            return 200, cluster.replace_config_map(namespace, name, request.json()), {}
        case "PATCH", "jobs" if name:
            return 200, cluster.patch_job(namespace, name, request.patch(), request.content_type), {}
        case "PATCH", _ if name:
            return 200, _patch(cluster, request, resource, cluster.state.get(resource, namespace, name)), {}
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _patch(cluster: KubernetesCluster, request: Request, resource: str, stored: Document) -> Document:
    if "patch" not in RESOURCES[resource].verbs:
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    fixed = {key: stored["metadata"][key] for key in ("name", "uid", "creationTimestamp")}
    changed = apply_patch(stored, request.patch(), request.content_type)
    stored |= {**changed, "metadata": {**changed["metadata"], **fixed}}
    cluster.state.touch(stored)
    cluster.schedule()
    return stored


def _list(cluster: KubernetesCluster, request: Request, resource: str, namespace: str | None) -> Document:
    query = request.query
    limit = query.get("limit", "")
    if not re.fullmatch(r"-?[0-9]*", limit):
        raise ApiError(400, "BadRequest", f'strconv.ParseInt: parsing "{limit}": invalid syntax')
    is_wanted = _selector(request, resource)
    if resource == "events":
        cluster.state.drop_old_events()
    found = [each for each in cluster.state.all(resource, namespace) if is_wanted(each)]
    about = RESOURCES[resource]
    token = query.get("continue", "")
    return cluster.state.page(found, max(0, int(limit or 0)), token, about.kind, about.api_version)


def _watch(cluster: KubernetesCluster, request: Request, resource: str, namespace: str | None) -> Iterator[Document]:
    query = request.query
    is_wanted = _selector(request, resource)
    watch = Watch(cluster, resource, namespace, is_wanted, lambda e: _as_asked(cluster, request, resource, [e], e))
    first = watch.begin(query.get("resourceVersion", ""), sends_first=query.get("sendInitialEvents") == "true")
    return follow(watch, first, float(query.get("timeoutSeconds", 0)), request.is_closed)


def _selector(request: Request, resource: str) -> Callable[[Document], bool]:
    """Return what tells whether an object is asked for, by its labels and fields.

    Raises:
        ApiError: 400, a selector is malformed.
    """
    selector = request.query.get("labelSelector", "")
    fields = request.query.get("fieldSelector", "")
    matches(selector, {})
    _check_fields(fields, resource)
    return lambda each: (
        matches(selector, each["metadata"].get("labels") or {}) and _matches_fields(fields, resource, each)
    )


def _matches_fields(selector: str, resource: str, document: Document) -> bool:
    for requirement in filter(None, selector.split(",")):
        path, _, wanted = requirement.partition("=")
        is_equal = not path.endswith("!")
        path = path.rstrip("!")
        value: Any = document
        for key in _FIELDS.get((resource, path), path).split("."):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if (str(value or _UNSET.get(path, "")) == wanted.removeprefix("=")) is not is_equal:
            return False
    return True


def _check_fields(selector: str, resource: str) -> None:
    for requirement in filter(None, selector.split(",")):
        path = requirement.partition("=")[0].rstrip("!")
        if path not in _SELECTABLE.get(resource, _METADATA):
            raise ApiError(400, "BadRequest", f"field label not supported: {path}")


def _delete(cluster: KubernetesCluster, request: Request, resource: str, namespace: str, name: str) -> Answered:
    removed = cluster.state.get(resource, namespace, name)
    options = request.json() if request.body else {}
    if resource == "jobs":
        cluster.delete_job(namespace, name)
    elif resource == "pods":
        cluster.delete_pod(namespace, name, options.get("gracePeriodSeconds"))
    elif resource == "nodes":
        cluster.remove_node(name)
    else:
        cluster.state.remove(resource, removed)
    details = {"name": name, "uid": removed["metadata"]["uid"]}
    return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}, {}


def _read_log(cluster: KubernetesCluster, request: Request, pod: Document) -> str | Iterator[str]:
    if request.query.get("follow") != "true":
        text = "".join(_log_lines(cluster, request, pod))
        return text.encode()[: int(request.query.get("limitBytes", len(text.encode())))].decode(errors="replace")
    first = _log_lines(cluster, request, pod)
    before = len(_log_lines(cluster, request, pod, is_whole=True)) - len(first)
    return follow_log(
        cluster, pod, lambda: _log_lines(cluster, request, pod, is_whole=True)[before:], request.is_closed
    )


def _log_lines(cluster: KubernetesCluster, request: Request, pod: Document, *, is_whole: bool = False) -> list[str]:
    query = request.query
    place = (pod["metadata"]["namespace"], pod["metadata"]["name"])
    lines = cluster.read_log(*place, query.get("container", ""), query.get("sinceTime", ""))
    if "tailLines" in query and not is_whole:
        count = int(query["tailLines"])
        lines = lines[-count:] if count else []
    return [f"{at} {text}\n" if query.get("timestamps") == "true" else f"{text}\n" for at, text in lines]
