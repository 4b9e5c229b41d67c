"""What a job definition for ACK or ACS may ask for, and how its pod asks for it."""

import re
from collections.abc import Sequence

from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload, Target
from relaunch.core.kubernetes import ack, acs
from relaunch.core.kubernetes.node_fit import GpuNode, NodeFit, predict_fit
from relaunch.core.kubernetes.pod_gpus import PodGpus
from relaunch.core.kubernetes.problem import GPU, Problem, of_gpu, of_workload
from relaunch.core.selection.gpu_share import check_requirement

MAIN_CONTAINER = "main"
"""The name of the container if the definition gives none."""

# RFC 1123, as the names of containers are ("Object Names and IDs", Kubernetes).
_CONTAINER_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def purchase_options(definition: JobDefinition) -> frozenset[PurchaseOption]:
    """Return the purchase options that a definition allows and its target has.

    Spot is best-effort capacity of ACS. Whether nodes of ACK may be taken away is a matter of its node pools.
    """
    workload = definition.kubernetes
    is_reserved = workload is not None and acs.class_of(workload) is ComputeClass.GPU_HPN
    if definition.target is Target.ACK or is_reserved:
        return definition.purchase.options & {PurchaseOption.ON_DEMAND}
    return definition.purchase.options


def find_problems(definition: JobDefinition) -> tuple[Problem, ...]:
    """Return why a job of a definition for Kubernetes can never run; empty if it may.

    The catalogue of EC2 says nothing about these targets.
    """
    workload, gpu = definition.kubernetes, definition.accelerator.gpu
    if workload is None:
        return (Problem(("kubernetes",), f"`kubernetes` is missing: {definition.target} needs its image at least"),)
    if gpu is None:
        return (Problem(("accelerator",), f"{definition.target} has NVIDIA GPUs only: give `gpu`"),)
    return (
        *(Problem(GPU, text) for text in check_requirement(gpu)),
        *_rules_of_target(definition, gpu, workload),
        *_unknown_wishes(definition, gpu, workload),
        *_name_problems(definition, workload),
    )


def _rules_of_target(
    definition: JobDefinition, gpu: GpuRequirement, workload: KubernetesWorkload
) -> tuple[Problem, ...]:
    is_ack = definition.target is Target.ACK
    problems = ack.find_ack_problems(gpu, workload) if is_ack else acs.find_acs_problems(gpu, workload)
    if PurchaseOption.RESERVED in definition.purchase.options:
        return (*problems, Problem(("purchase",), "reservations are those of EC2: set `purchase` to on-demand"))
    if purchase_options(definition):
        return problems
    where = "ACK" if is_ack else "compute class `gpu-hpn` of ACS"
    return (*problems, Problem(("purchase",), f"{where} has no spot capacity: set `purchase` to on-demand"))


def _unknown_wishes(
    definition: JobDefinition, gpu: GpuRequirement, workload: KubernetesWorkload
) -> tuple[Problem, ...]:
    """Return the keys by which GPUs are chosen on EC2, where nothing takes their place."""
    if workload.gpu_model:
        return ()
    wishes = {"models": gpu.models, "compute_capability": gpu.compute_capability, "interconnect": gpu.interconnect}
    return tuple(
        of_gpu(key, f"`{key}` chooses among the GPUs of EC2: on {definition.target} give `kubernetes.gpu_model`")
        for key, wish in wishes.items()
        if wish
    )


def _name_problems(definition: JobDefinition, workload: KubernetesWorkload) -> tuple[Problem, ...]:
    taken = sorted(workload.labels.keys() & (ack.OWN_LABELS | acs.OWN_LABELS))
    problems = [of_workload("labels", f"`{key}` is taken: Relaunch sets it") for key in taken]
    container = definition.container or MAIN_CONTAINER
    if _CONTAINER_NAME.fullmatch(container) is None:
        text = f"`{container}` is no name for a container of a pod: at most 63 lower-case letters, digits and -"
        problems.append(Problem(("container",), text))
    return tuple(problems)


def ask_gpus(target: Target, gpu: GpuRequirement, workload: KubernetesWorkload, purchase: PurchaseOption) -> PodGpus:
    """Return how a pod on ACK or ACS asks for the GPUs of a definition without problems."""
    if target is Target.ACK:
        return ack.ask_ack_gpus(gpu, workload)
    return acs.ask_acs_gpus(gpu, workload, purchase)


def predict_job_fit(definition: JobDefinition, nodes: Sequence[GpuNode]) -> tuple[NodeFit, ...] | None:
    """Return what each node says of the pod of a definition; None if no node can tell.

    So it is with ECS, with a definition that has problems, and with class `gpu` of ACS, which has what is in stock.
    """
    workload, gpu = definition.kubernetes, definition.accelerator.gpu
    if workload is None or gpu is None or not definition.target.is_kubernetes or find_problems(definition):
        return None
    if definition.target is Target.ACS and acs.class_of(workload) is ComputeClass.GPU:
        return None
    return predict_fit(nodes, ask_gpus(definition.target, gpu, workload, PurchaseOption.ON_DEMAND))


def find_kubernetes_notices(definition: JobDefinition) -> tuple[str, ...]:
    """Return what the owner of a definition without problems should know, but of its driver (acs_drivers)."""
    workload, gpu = definition.kubernetes, definition.accelerator.gpu
    if workload is None or gpu is None:
        return ()
    notices = list(ask_gpus(definition.target, gpu, workload, PurchaseOption.ON_DEMAND).notices)
    ignored = {
        "accelerator.instance_types": definition.accelerator.instance_types,
        "disk": definition.disk_gib,
        "max_price_per_hour": definition.max_price_usd_per_hour,
    }
    notices += [
        f"`{key}` has no effect on {definition.target}: it is about EC2" for key, value in ignored.items() if value
    ]
    return tuple(notices)
