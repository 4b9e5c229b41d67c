"""What a cluster tells whoever may read it: nodes with their pods, charts, images, and the functions' Role."""

import base64
import binascii
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import ForbiddenError, NotFoundError
from relaunch.adapters.kubernetes.api.models import Node, Pod, RawObject
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.core.kubernetes.card_annotations import read_cards
from relaunch.core.kubernetes.node_fit import GpuNode, NodeTaint, PodUse
from relaunch.core.kubernetes.role_rules import Rule

SYSTEM_NAMESPACE = "kube-system"

# A release may hold a whole chart; more than this is none.
_MAX_RELEASE_BYTES = 16 << 20
_OVER = frozenset({"Succeeded", "Failed"})
# Extended resources are whole numbers; a server may write 1k for 1000.
_COUNT = re.compile(r"(\d+)(k?)")
_KEEPS_OUT = frozenset({"NoSchedule", "NoExecute"})


class ClusterInspection:
    """Reads a cluster; all of it needs a ClusterRole (infrastructure/kubernetes/reader.yaml).

    Every method raises TransientError where the cluster does not answer, and ForbiddenError where the ClusterRole is
    not bound, but `own_name`, which needs none.
    """

    def __init__(self, client: KubernetesClient) -> None:
        self._client = client

    def gpu_nodes(self) -> list[GpuNode]:
        """Return the nodes, with what their pods that are not over have of them."""
        # A list that had to be restarted has objects twice.
        nodes = {node.metadata.name: node for page in self._client.list_nodes() for node in page}
        pods = defaultdict[str, list[PodUse]](list)
        listed = {pod.metadata.uid or pod.metadata.name: pod for page in self._client.list_all_pods() for pod in page}
        for pod in listed.values():
            if pod.spec.node_name and pod.status.phase not in _OVER:
                pods[pod.spec.node_name].append(_use(pod))
        return [_node(node, pods[node.metadata.name]) for node in nodes.values()]

    def has_task(self, task_id: str) -> bool:
        """Return whether there are pods of a task, in whichever namespace."""
        return any(page for page in self._client.list_objects("/api/v1/pods", f"{TASK}={task_id}", limit=1))

    def chart_version(self, chart: str) -> str | None:
        """Return the version of a chart that Helm 3 installed, None if it did not, empty if it cannot be read."""
        path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets"
        selector = f"owner=helm,name={chart},status=deployed"
        releases = [each for page in self._client.list_objects(path, selector) for each in page]
        if not releases:
            return None
        return _chart_version(max(releases, key=_revision))

    def image_versions(self, word: str) -> list[str]:
        """Return the tags of images of the system's DaemonSets with this word in their names."""
        path = f"/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/daemonsets"
        found = {
            image.rpartition(":")[2]
            for page in self._client.list_objects(path)
            for daemon_set in page
            for image in _images(daemon_set)
            if word in image.rpartition(":")[0].rpartition("/")[2].lower()
        }
        return sorted(found)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, None if there is none of this name."""
        found = self._client.get_object(f"/api/v1/namespaces/{quote(name, safe='')}")
        return None if found is None else found.metadata.labels

    def role_rules(self, namespace: str, name: str) -> list[Rule] | None:
        """Return the rules of a Role, without a namespace of a ClusterRole; None if there is none of this name."""
        kind = "roles" if namespace else "clusterroles"
        role = self._client.get_object(f"{_rbac(namespace)}/{kind}/{quote(name, safe='')}")
        if role is None:
            return None
        return [_rule(each) for each in _mappings(role.field("rules"))]

    def own_name(self) -> str:
        """Return the name of whoever asks, as `kubectl auth whoami` does; empty if the server does not say it.

        Servers before 1.28 do not. Every user may ask, unless system:basic-user was changed, and nothing is stored.
        """
        try:
            review = self._client.review_self()
        except (NotFoundError, ForbiddenError):
            return ""
        name = _mapping(_mapping(review.get("status")).get("userInfo")).get("username")
        return name if isinstance(name, str) else ""

    def subjects_of(self, namespace: str, role: str) -> list[str]:
        """Return whom RoleBindings give a Role, without a namespace ClusterRoleBindings a ClusterRole."""
        kind = "rolebindings" if namespace else "clusterrolebindings"
        listed = (each for page in self._client.list_objects(f"{_rbac(namespace)}/{kind}") for each in page)
        bindings = [each for each in listed if _mapping(each.field("roleRef")).get("name") == role]
        return sorted(
            {str(subject.get("name", "")) for each in bindings for subject in _mappings(each.field("subjects"))}
        )


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a field that is an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a field that is a list; none for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _rbac(namespace: str) -> str:
    within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"/apis/rbac.authorization.k8s.io/v1{within}"


def _rule(document: Mapping[str, Any]) -> Rule:
    def texts(key: str) -> frozenset[str]:
        values = document.get(key)
        return frozenset(map(str, values)) if isinstance(values, list) else frozenset()

    return Rule(texts("apiGroups"), texts("resources"), texts("verbs"))


def _use(pod: Pod) -> PodUse:
    resources = defaultdict[str, int](int)
    for container in pod.spec.containers:
        for name, count in _counts({**container.resources.requests, **container.resources.limits}).items():
            resources[name] += count
    return PodUse(dict(resources), read_cards(pod.metadata.annotations, resources))


def _node(node: Node, pods: Sequence[PodUse]) -> GpuNode:
    taints = tuple(
        NodeTaint(each.key, each.value, each.effect) for each in node.spec.taints if each.effect in _KEEPS_OUT
    )
    allocatable = _counts(node.status.allocatable)
    return GpuNode(node.metadata.name, node.metadata.labels, allocatable, pods, _refusal(node), taints)


def _refusal(node: Node) -> str:
    if not node.is_ready:
        return "it is not ready"
    return "it takes no new pods (cordoned)" if node.spec.unschedulable else ""


def _counts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Return the extended resources; those of Kubernetes itself, such as memory, have other units."""
    read = {name: _COUNT.fullmatch(text) for name, text in quantities.items() if "/" in name}
    return {name: int(found[1]) * (1000 if found[2] else 1) for name, found in read.items() if found}


def _images(daemon_set: RawObject) -> Iterator[str]:
    spec = _mapping(_mapping(_mapping(daemon_set.field("spec")).get("template")).get("spec"))
    for container in (*_mappings(spec.get("containers")), *_mappings(spec.get("initContainers"))):
        yield str(container.get("image", ""))


def _revision(release: RawObject) -> int:
    text = release.metadata.labels.get("version", "")
    return int(text) if text.isdecimal() else 0


def _chart_version(release: RawObject) -> str:
    """Read the version of a release: JSON, compressed, in base64, which the API writes in base64 once more."""
    try:
        packed = base64.b64decode(base64.b64decode(_mapping(release.field("data")).get("release", "")))
        text = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(packed, _MAX_RELEASE_BYTES)
        return str(json.loads(text)["chart"]["metadata"]["version"])
    except (binascii.Error, zlib.error, ValueError, KeyError, TypeError, RecursionError):
        return ""
