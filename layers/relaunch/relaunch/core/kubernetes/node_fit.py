"""Whether a pod's GPUs fit on a node now, as far as nodes and their pods tell.

Sources: "Configure shared GPU scheduling with computing power allocation" and "Install and use ack-ai-installer" (ACK).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from relaunch.core.definitions.kubernetes_workload import Toleration
from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_COUNT, GPU_MEMORY, SHARING
from relaunch.core.kubernetes.pod_gpus import PodGpus
from relaunch.core.records import dataclass

RELABELLED = (
    "its label was set on a node that was in the cluster already: remove the node and add it to a labelled pool"
)
MOST_PODS_OF_A_CARD = 20

_MODES = {"core_mem": (GPU_MEMORY, GPU_COMPUTE), "cgpu": (GPU_MEMORY,)}
"""By label, the resources that a node of the mode reports."""
_WHOLE_CARD_PERCENT = 100


@dataclass(frozen=True, slots=True)
class CardUse:
    """What a pod has of a card: memory in GiB, and compute in percent."""

    memory_gib: int
    compute_percent: int = 0


@dataclass(frozen=True, slots=True)
class PodUse:
    """What a pod that is not over has of a node: its resources, and of which cards its share is, if it is known."""

    resources: Mapping[str, int]
    cards: Mapping[int, CardUse] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """What keeps pods from a node that do not tolerate it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """Return it as `kubectl taint` takes it."""
        return f"{self.key}={self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node: what pods may use, and its pods. `refuses` says why it takes no new ones, empty if it does.

    `taints` are those that keep pods away ("Taints and Tolerations", Kubernetes documentation).
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    pods: Sequence[PodUse] = ()
    refuses: str = ""
    taints: tuple[NodeTaint, ...] = ()

    @property
    def free(self) -> Mapping[str, int]:
        """What is left of each resource."""
        used = Counter[str]()
        for pod in self.pods:
            used.update(pod.resources)
        return {name: count - used[name] for name, count in self.allocatable.items()}


@dataclass(frozen=True, slots=True)
class NodeFit:
    """A node, and why a pod does not fit there now; empty if it does. `free` is what is left of what it asks for."""

    node: str
    reason: str
    free: Mapping[str, int] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the pod fits."""
        return not self.reason


def predict_fit(
    nodes: Sequence[GpuNode], asked: PodGpus, tolerations: Sequence[Toleration] = ()
) -> tuple[NodeFit, ...]:
    """Return what each node has to say of a pod: first those where it fits, the fullest of them first (binpack)."""
    fits = [
        NodeFit(
            node.name, why_not(node, asked, tolerations), {name: node.free.get(name, 0) for name in asked.resources}
        )
        for node in nodes
    ]
    return tuple(sorted(fits, key=lambda fit: (not fit.fits, tuple(fit.free.values()), fit.node)))


def why_not(node: GpuNode, asked: PodGpus, tolerations: Sequence[Toleration] = ()) -> str:
    """Return why a pod does not fit on a node now; empty if it does, as far as is known."""
    return (
        _missing_label(node, asked)
        or find_relabelled(node)
        or node.refuses
        or _untolerated(node, tolerations)
        or _missing_resource(node, asked)
        or _other_kind(node, asked)
        or _full_cards(node, asked)
    )


def is_tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether a pod with these tolerations is kept from no node by a taint."""
    return any(
        each.key in {"", taint.key} and each.value in {"", taint.value} and each.effect in {None, taint.effect}
        for each in tolerations
    )


def _untolerated(node: GpuNode, tolerations: Sequence[Toleration]) -> str:
    for taint in node.taints:
        if not is_tolerated(taint, tolerations):
            return f"it has the taint {taint}, which `kubernetes.tolerations` may name"
    return ""


def find_relabelled(node: GpuNode) -> str:
    """Return why a node is not of the mode that its label says; empty if it is.

    A node is of a mode from when it joins: a label that is set later changes nothing.
    """
    mode = node.labels.get(SHARING, "")
    missing = [name for name in _MODES.get(mode, ()) if not node.allocatable.get(name)]
    return f"it has the label {SHARING}={mode}, and no {missing[0]}: {RELABELLED}" if missing else ""


def _missing_label(node: GpuNode, asked: PodGpus) -> str:
    for key, value in asked.node_selector.items():
        if node.labels.get(key) != value:
            has = f"it has {key}={node.labels[key]}" if key in node.labels else "it has no such label"
            return f"the label {key}={value} is asked for, {has}"
    return ""


def _missing_resource(node: GpuNode, asked: PodGpus) -> str:
    for name, count in asked.resources.items():
        total = node.allocatable.get(name)
        if not total:
            return f"it has no {name}"
        free = node.free[name]
        if count > free:
            return f"{max(free, 0)} of {total} {name} are free, {count} are asked for"
    return ""


def _other_kind(node: GpuNode, asked: PodGpus) -> str:
    """A node has pods with shares of memory alone, or with shares of memory and compute, never both."""
    if GPU_MEMORY not in asked.resources:
        return ""
    has_compute = GPU_COMPUTE in asked.resources
    others = [pod for pod in node.pods if pod.resources.get(GPU_MEMORY)]
    if all((GPU_COMPUTE in pod.resources) == has_compute for pod in others):
        return ""
    kind = "memory alone" if has_compute else "memory and compute"
    return f"it runs pods with shares of {kind}, which never share a node with this kind"


def _full_cards(node: GpuNode, asked: PodGpus) -> str:
    cards = node.allocatable.get(GPU_COUNT)
    if GPU_MEMORY not in asked.resources or not cards:
        return ""
    needed = int(asked.labels.get(GPU_COUNT, "1"))
    memory = asked.resources[GPU_MEMORY] // needed
    compute = asked.resources.get(GPU_COMPUTE, 0)
    free = _free_cards(node, cards)
    if sum(left[0] >= memory and left[1] >= compute and left[2] > 0 for left in free) >= needed:
        return ""
    most = max(left[0] for left in free)
    share = f"{memory} GiB and {compute} % of compute" if compute else f"{memory} GiB"
    few = "no card has" if needed == 1 else f"fewer than {needed} cards have"
    return f"{few} {share} left: the emptiest has {most} GiB"


def _free_cards(node: GpuNode, cards: int) -> list[tuple[int, int, int]]:
    """Return what is left of each card of a node with GPU memory to share: memory, compute, and more pods.

    Pods whose card is not known yet are on none: that they take room, the sums of the node tell.
    """
    memory = Counter[int]()
    compute = Counter[int]()
    pods = Counter[int]()
    for pod in node.pods:
        for card, use in pod.cards.items():
            memory[card] += use.memory_gib
            compute[card] += use.compute_percent
            pods[card] += 1
    size = node.allocatable[GPU_MEMORY] // cards
    return [
        (size - memory[card], _WHOLE_CARD_PERCENT - compute[card], MOST_PODS_OF_A_CARD - pods[card])
        for card in range(cards)
    ]
