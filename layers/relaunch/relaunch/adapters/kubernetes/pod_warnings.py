"""What a cluster announces of pods that are going to be taken away, beside the conditions of the pods themselves.

Capacity of ACS and of ECI announces it by events of the pod, nodes do by taints.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from relaunch.adapters.kubernetes.api.models import Event, Node, Pod
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.adapters.kubernetes.observation import TO_BE_RELEASED
from relaunch.core.definitions.kubernetes_workload import TaintEffect, Toleration
from relaunch.core.kubernetes.acs import BEST_EFFORT, COMPUTE_QOS
from relaunch.core.kubernetes.node_fit import NodeTaint
from relaunch.core.kubernetes.node_warnings import NodeSigns, find_node_warning
from relaunch.core.records import dataclass
from relaunch.ports import PermanentError, PortError, TransientError

_EFFECTS = frozenset(TaintEffect)
_FAILED = "Failed"
_OVER = frozenset({"Succeeded", _FAILED})


@dataclass(frozen=True, slots=True)
class Warned:
    """When a warning was given, and its words; empty if there are none but those of an event."""

    at: datetime
    words: str = ""


class Announcements(Protocol):
    """What is asked of the Kubernetes API; see `api.client`."""

    def list_events(self, involved_object_uid: str = "", reason: str = "") -> Sequence[Event]: ...

    def get_node(self, name: str) -> Node | None: ...


@dataclass(frozen=True)
class PodWarnings:
    """Finds warnings of tasks; with `has_node_taints` their nodes are asked, which needs a ClusterRole."""

    cluster: Announcements
    has_node_taints: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def find(self, pods: Iterable[Pod]) -> Mapping[str, Warned]:
        """Return the tasks whose pods are going to be taken away, with when that was announced.

        The API does not say when a taint was set: it is announced when it is seen. A warning that cannot be read is not
        waited for: the task is looked at again soon.

        Raises:
            TransientError: events cannot be read now, and a pod has failed, whose program would be blamed for the loss
                of its capacity: it is looked at again soon.
        """
        pods = list(pods)
        tainted = self._find_on_tainted_nodes(pods) if self.has_node_taints else {}
        return {**tainted, **self._find_released(pods)}

    def _find_released(self, pods: Iterable[Pod]) -> Mapping[str, Warned]:
        asked = [pod for pod in pods if _is_preemptible(pod)]
        if not asked:
            return {}
        preemptible = {pod.metadata.uid: _task_of(pod) for pod in asked}
        try:
            events = [each for reason in TO_BE_RELEASED for each in self.cluster.list_events(reason=reason)]
        except TransientError:
            if any(pod.status.phase == _FAILED for pod in asked):
                raise
            return {}
        except PermanentError:
            return {}
        known = ((preemptible.get(each.involved_object.uid), each.at) for each in events)
        announced = sorted((at, name) for name, at in known if name is not None and at is not None)
        return {name: Warned(at) for at, name in reversed(announced)}

    def _find_on_tainted_nodes(self, pods: Iterable[Pod]) -> Mapping[str, Warned]:
        live = [pod for pod in pods if pod.spec.node_name and not is_ending_pod(pod)]
        nodes = self._read_nodes(dict.fromkeys(pod.spec.node_name for pod in live))
        said = [
            (_task_of(pod), find_node_warning(nodes.get(pod.spec.node_name, NodeSigns()), _tolerations_of(pod)))
            for pod in live
        ]
        # One of several pods of a task is enough.
        return {name: Warned(self.now(), words) for name, words in said if words}

    def _read_nodes(self, names: Iterable[str]) -> Mapping[str, NodeSigns]:
        """Return what nodes show, as far as they can be read: a first one that cannot stands for all."""
        seen: dict[str, NodeSigns] = {}
        try:
            for name in names:
                node = self.cluster.get_node(name)
                if node is not None:
                    seen[name] = _signs_of(node)
        except PortError:
            return seen
        return seen


def is_ending_pod(pod: Pod) -> bool:
    """Return whether a pod has ended, or is being deleted."""
    return pod.status.phase in _OVER or pod.metadata.deletion_timestamp is not None


def _signs_of(node: Node) -> NodeSigns:
    taints = [NodeTaint(each.key, each.value, each.effect) for each in node.spec.taints]
    return NodeSigns(taints, node.metadata.deletion_timestamp is not None)


def _tolerations_of(pod: Pod) -> list[Toleration]:
    return [
        Toleration(each.key, each.value, TaintEffect(each.effect) if each.effect in _EFFECTS else None)
        for each in pod.spec.tolerations
    ]


def _task_of(pod: Pod) -> str:
    return pod.metadata.labels.get(TASK, "")


def _is_preemptible(pod: Pod) -> bool:
    return pod.metadata.labels.get(COMPUTE_QOS) == BEST_EFFORT and pod.status.phase != "Pending"
