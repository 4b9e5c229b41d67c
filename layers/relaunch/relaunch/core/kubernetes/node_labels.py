"""The labels with which pods find nodes that have their GPUs, and that are bought as their job says.

Who makes nodes gives them labels of its own: NVIDIA's GPU feature discovery (`nvidia.com/gpu.product`), Karpenter
(`karpenter.sh/capacity-type`), managed node groups of EKS (`eks.amazonaws.com/capacityType`), GKE
(`cloud.google.com/gke-accelerator`, `cloud.google.com/gke-spot`). So a stack names those of its cluster.
"""

from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """A label of nodes."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """The labels of the nodes of a cluster.

    `gpu_model` is the key of the label with the model of their GPUs. `spot` is the label of nodes that may be taken
    away, None if the stack names none. `on_demand` is that of the others: None asks for no label.
    """

    gpu_model: str = "nvidia.com/gpu.product"
    spot: NodeLabel | None = None
    on_demand: NodeLabel | None = None
