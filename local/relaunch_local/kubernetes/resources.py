"""The resources that the server has, and how it describes them: API discovery, and the operations in its OpenAPI.

Clients such as kubectl find kinds, short names and verbs by it ("API overview", "The Kubernetes API"). Aggregated
discovery is not answered: who asks for it takes the older form. Of OpenAPI there are the operations alone, without
schemas: kubectl from 1.29 on reads there that the server validates fields; older ones need `--validate=false`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]
_READ = ("get", "list", "watch")
_ALL = ("create", "delete", *_READ, "patch")
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Resource:
    """A resource: its group, empty for the core one, kind, verbs, and the parts of its objects with theirs."""

    group: str
    kind: str
    verbs: tuple[str, ...] = _ALL
    short_names: tuple[str, ...] = ()
    is_namespaced: bool = True
    parts: Mapping[str, tuple[str, ...]] | None = None
    is_listed_by_all: bool = False

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/v1" if self.group else "v1"


RESOURCES: Mapping[str, Resource] = {
    "configmaps": Resource("", "ConfigMap", (*_ALL, "update"), ("cm",)),
    "events": Resource("", "Event", _READ, ("ev",)),
    "namespaces": Resource("", "Namespace", short_names=("ns",), is_namespaced=False),
    "nodes": Resource("", "Node", ("delete", *_READ, "patch"), ("no",), is_namespaced=False),
    "persistentvolumeclaims": Resource("", "PersistentVolumeClaim", _READ, ("pvc",)),
    "pods": Resource(
        "",
        "Pod",
        ("delete", *_READ),
        ("po",),
        parts={"log": ("get",), "eviction": ("create",)},
        is_listed_by_all=True,
    ),
    "secrets": Resource("", "Secret"),
    "services": Resource("", "Service", ("create", "delete", *_READ), ("svc",), is_listed_by_all=True),
    "daemonsets": Resource("apps", "DaemonSet", _READ, ("ds",), is_listed_by_all=True),
    "jobs": Resource("batch", "Job", is_listed_by_all=True),
    "clusterrolebindings": Resource(RBAC, "ClusterRoleBinding", is_namespaced=False),
    "clusterroles": Resource(RBAC, "ClusterRole", is_namespaced=False),
    "rolebindings": Resource(RBAC, "RoleBinding"),
    "roles": Resource(RBAC, "Role"),
}
GROUPS = tuple(sorted({each.group for each in RESOURCES.values()}))
_PART_KINDS = {"eviction": {"group": "policy", "version": "v1", "kind": "Eviction"}, "log": {"kind": "Pod"}}


def is_public(path: str) -> bool:
    """Return whether every user may read a path (ClusterRole system:discovery)."""
    return path.split("/")[1] in {"version", "api", "apis", "openapi", "livez", "readyz", "healthz"}


def discover(path: str) -> Any:
    """Return what is answered at a path of discovery, None if it is none."""
    known: dict[str, Any] = {
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(each) for each in GROUPS if each]},
        "/openapi/v3": {"paths": {each: {"serverRelativeURL": f"/openapi/v3/{each}"} for each in map(_prefix, GROUPS)}},
        **dict.fromkeys(("/livez", "/readyz", "/healthz"), "ok"),
    }
    for group in GROUPS:
        known[f"/{_prefix(group)}"] = _list_resources(group)
        known[f"/openapi/v3/{_prefix(group)}"] = _describe_operations(group)
        if group:
            known[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
    return known.get(path.rstrip("/") or path)


def _prefix(group: str) -> str:
    return f"apis/{group}/v1" if group else "api/v1"


def _group(name: str) -> Document:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _list_resources(group: str) -> Document:
    found = [each for name, resource in RESOURCES.items() if resource.group == group for each in _entries(name)]
    version = f"{group}/v1" if group else "v1"
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}


def _entries(name: str) -> list[Document]:
    resource = RESOURCES[name]
    entry = {
        "name": name,
        "singularName": resource.kind.lower(),
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": sorted(resource.verbs),
        **({"shortNames": list(resource.short_names)} if resource.short_names else {}),
        **({"categories": ["all"]} if resource.is_listed_by_all else {}),
    }
    parts = [
        {"name": f"{name}/{part}", "singularName": "", "namespaced": True, "verbs": list(verbs), **_PART_KINDS[part]}
        for part, verbs in (resource.parts or {}).items()
    ]
    return [entry, *parts]


def _describe_operations(group: str) -> Document:
    """Return the operations, which show kubectl that fields are validated; schemas are not described."""
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    paths = {}
    for name, resource in RESOURCES.items():
        if resource.group != group or "patch" not in resource.verbs:
            continue
        kind = {"group": group, "version": "v1", "kind": resource.kind}
        where = "namespaces/{namespace}/" if resource.is_namespaced else ""
        operation = {"parameters": [parameter], "x-kubernetes-group-version-kind": kind, "responses": {}}
        paths[f"/{_prefix(group)}/{where}{name}/{{name}}"] = {"patch": operation}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": paths}
