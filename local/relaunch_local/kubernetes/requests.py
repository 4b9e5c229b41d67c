"""Requests of the API: paths, verbs, selectors and pages."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.role import Access
from relaunch_local.kubernetes.selectors import matches
from relaunch_local.kubernetes.state import Document

Answered = tuple[int, Any, Mapping[str, str]]
_KINDS = {
    "jobs": "Job",
    "pods": "Pod",
    "nodes": "Node",
    "events": "Event",
    "configmaps": "ConfigMap",
    "daemonsets": "DaemonSet",
    "namespaces": "Namespace",
    "rolebindings": "RoleBinding",
    "roles": "Role",
    "secrets": "Secret",
}
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

    @property
    def access(self) -> Access:
        """What a Role has to allow."""
        found = _PATH.fullmatch(self.path)
        if found is None:
            return Access("get", "", self.path)
        resource = f"{found['resource']}/{found['part']}" if found["part"] else found["resource"]
        verb = _VERBS.get(self.method, "get" if found["name"] else "list")
        return Access(verb, found["group"] or "", resource, found["namespace"] or "")

    @property
    def name(self) -> str:
        """The name of the object that it is about, empty if it is about none or all."""
        found = _PATH.fullmatch(self.path)
        return (found["name"] or "") if found else ""

    def json(self) -> Document:
        """Return the body.

        Raises:
            ApiError: 400, it is no object.
        """
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
            ApiError: 415, 422, it is no merge patch.
        """
        if self.content_type != "application/merge-patch+json":
            said = "the body of the request was in an unknown format - accepted media types include: "
            raise ApiError(415, "UnsupportedMediaType", f"{said}application/merge-patch+json")
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
    found = _PATH.fullmatch(request.path)
    if found is None or found["resource"] not in _KINDS:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    with cluster.clock.lock:
        cluster.clock.synchronize()
        status, content, headers = _answer(cluster, request, found)
        return status, deepcopy(content), headers


def _answer(cluster: KubernetesCluster, request: Request, found: re.Match[str]) -> Answered:
    resource = found["resource"]
    namespace = found["namespace"] or ""
    name = found["name"]
    part = found["part"]
    match request.method, part:
        case "GET", "log":
            text = _read_log(cluster, request, namespace, name)
            # As of a pod that has no node yet.
            return (200 if "nodeName" in cluster.state.get("pods", namespace, name)["spec"] else 204), text, {}
        case "POST", "eviction":
            cluster.evict_pod(namespace, name, str(request.json().get("apiVersion")))
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}, {}
        case "GET", None if name:
            return 200, cluster.state.get(resource, namespace, name), {}
        case "GET", None:
            return 200, _list(cluster, request, resource, found["namespace"]), {}
        case "DELETE", None if name:
            return _delete(cluster, request, resource, namespace, name)
    return _write(cluster, request, resource, namespace, name)


def _write(cluster: KubernetesCluster, request: Request, resource: str, namespace: str, name: str | None) -> Answered:
    match request.method, resource:
        case "POST", "jobs":
            is_strict = request.query.get("fieldValidation") == "Strict"
            job, warnings = cluster.create_job(namespace, request.json(), is_strict=is_strict)
            said = ", ".join(f'299 - "{each}"'.replace('"spec', '\\"spec') for each in warnings)
            return 201, job, {"Warning": said} if said else {}
        case "POST", "configmaps":
            return 201, cluster.state.add("configmaps", namespace, request.json()), {}
        case "PUT", "configmaps" if name:
            return 200, cluster.replace_config_map(namespace, name, request.json()), {}
        case "PATCH", "jobs" if name:
            return 200, cluster.patch_job(namespace, name, request.patch()), {}
        case "PATCH", _ if name:
            cluster.state.get(resource, namespace, name)
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _list(cluster: KubernetesCluster, request: Request, resource: str, namespace: str | None) -> Document:
    query = request.query
    selector, fields, limit = (query.get(key, "") for key in ("labelSelector", "fieldSelector", "limit"))
    if not re.fullmatch(r"-?[0-9]*", limit):
        raise ApiError(400, "BadRequest", f'strconv.ParseInt: parsing "{limit}": invalid syntax')
    matches(selector, {})
    _check_fields(fields, resource)
    if resource == "events":
        cluster.state.drop_old_events()
    found = [
        each
        for each in cluster.state.all(resource, namespace)
        if matches(selector, each["metadata"].get("labels") or {}) and _matches_fields(fields, resource, each)
    ]
    version = "batch/v1" if resource == "jobs" else "v1"
    return cluster.state.page(found, max(0, int(limit or 0)), query.get("continue", ""), _KINDS[resource], version)


def _matches_fields(selector: str, resource: str, document: Document) -> bool:
    for requirement in filter(None, selector.split(",")):
        path, _, wanted = requirement.partition("=")
        value: Any = document
        for key in _FIELDS.get((resource, path), path).split("."):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if str(value or _UNSET.get(path, "")) != wanted.removeprefix("="):
            return False
    return True


def _check_fields(selector: str, resource: str) -> None:
    for requirement in filter(None, selector.split(",")):
        path = requirement.partition("=")[0]
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


def _read_log(cluster: KubernetesCluster, request: Request, namespace: str, name: str) -> str:
    query = request.query
    lines = cluster.read_log(namespace, name, query.get("container", ""), query.get("sinceTime", ""))
    if "tailLines" in query:
        count = int(query["tailLines"])
        lines = lines[-count:] if count else []
    shown = [f"{at} {text}" if query.get("timestamps") == "true" else text for at, text in lines]
    text = "".join(f"{each}\n" for each in shown)
    return text.encode()[: int(query.get("limitBytes", len(text.encode())))].decode(errors="replace")
