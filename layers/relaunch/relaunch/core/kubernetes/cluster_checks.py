"""What any cluster needs for jobs with GPUs: nodes that offer them, and labels that pods find them with.

Sources: "Schedule GPUs", Kubernetes documentation; GPU feature discovery, NVIDIA; "Scheduling" of Karpenter; "Run GPUs
in GKE Standard node pools", GKE; "Simplify compute management with managed node groups", EKS.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from relaunch.core.checks import Check, is_ok, unknown
from relaunch.core.kubernetes.node_fit import GpuNode

GPUS = "GPUs"
MODELS = "GPU models"
SPOT = "spot"
"""The names of the checks."""

MODEL_LABELS = (
    *("nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name", "eks.amazonaws.com/instance-gpu-name"),
    "cloud.google.com/gke-accelerator",
)
"""The labels with the model of a node's GPUs, of those who are known to set one."""
PURCHASE_LABELS = (
    *("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-spot"),
    *("cloud.google.com/gke-provisioning", "kubernetes.azure.com/scalesetpriority"),
)
"""The labels with how a node is bought."""

_OF_NVIDIA = "nvidia.com/"
_SHOW = "kubectl get nodes --show-labels"


def check_gpu_nodes(nodes: Sequence[GpuNode]) -> Iterator[Check]:
    """Check which GPUs nodes offer, and which labels they have."""
    offering = [node for node in nodes if any(_is_gpu(name, count) for name, count in node.allocatable.items())]
    if not offering:
        text = f"of {_count(nodes)} none offers {_OF_NVIDIA}gpu now"
        to_do = "install NVIDIA's device plug-in or GPU operator, unless nodes are made for pods that wait for them"
        yield unknown(GPUS, text, to_do)
        return
    total = Counter[str]()
    for node in offering:
        total.update({name: count for name, count in node.allocatable.items() if _is_gpu(name, count)})
    counts = ", ".join(f"{count} {name}" for name, count in sorted(total.items()))
    yield is_ok(GPUS, f"{counts} on {_count(offering)}")
    models = _values(offering, MODEL_LABELS)
    if models:
        yield is_ok(MODELS, f"{models}: KubernetesGpuModelLabel names such a label, and `gpu_model` its value")
    else:
        yield unknown(MODELS, "no node has a label that is known for them, which `gpu_model` needs", _SHOW)
    bought = _values(offering, PURCHASE_LABELS)
    named = f"{bought}: KubernetesSpotLabel and KubernetesOnDemandLabel name such labels"
    yield is_ok(SPOT, named if bought else "no node has a label that is known for how it is bought")


def _count(nodes: Sequence[GpuNode]) -> str:
    return "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"


def _is_gpu(name: str, count: int) -> bool:
    return name.startswith(_OF_NVIDIA) and count > 0


def _values(nodes: Sequence[GpuNode], keys: Sequence[str]) -> str:
    found = defaultdict[str, set[str]](set)
    for node in nodes:
        for key in keys:
            if key in node.labels:
                found[key].add(node.labels[key])
    return "; ".join(f"{key}={', '.join(sorted(values))}" for key, values in found.items())
