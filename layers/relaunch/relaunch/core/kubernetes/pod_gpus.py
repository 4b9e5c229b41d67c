"""The GPUs of a pod, as its manifest asks for them.

In every cluster whole ones are an extended resource, and found by a label of nodes; a target adds its rules.
"""

from collections.abc import Mapping
from dataclasses import field

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, Toleration
from relaunch.core.records import dataclass

WHOLE_GPUS = "nvidia.com/gpu"
"""The extended resource of whole GPUs."""


@dataclass(frozen=True, slots=True)
class PodGpus:
    """The resources, labels, node selector and tolerations with which a pod gets its GPUs.

    `resources` are limits, whole numbers in the unit of each. `has_requests`: they are written as requests too, which
    Kubernetes otherwise derives from the limits. `notices` say where more is asked for than the definition says.
    """

    resources: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    has_requests: bool = False
    notices: tuple[str, ...] = ()


def ask_whole_gpus(gpu: GpuRequirement, workload: KubernetesWorkload, model_label: str) -> PodGpus:
    """Return how a pod asks for whole GPUs, or for what a device plug-in makes of them.

    `model_label` is the label of nodes that has the model of their GPUs.
    """
    selector = {model_label: workload.gpu_model} if workload.gpu_model else {}
    return PodGpus({workload.gpu_resource or WHOLE_GPUS: gpu.count}, node_selector=selector)
