"""What a job definition for a cluster may ask for, what that offers it, and its revision without a task definition.

The scheduler of the cluster chooses the node, and the capacity of ACS has no instance types: an offering stands for the
GPUs that a job asks for. There is one for each purchase option, spot first, because it is the cheaper one.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption, shared_memory_notice
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes import ack, acs
from relaunch.core.kubernetes.acs import class_of
from relaunch.core.kubernetes.any_cluster import ask_plain_gpus, find_whole_gpu_problems, is_part_of_gpu
from relaunch.core.kubernetes.node_fit import GpuNode, NodeFit, predict_fit
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.kubernetes.pod_gpus import WHOLE_GPUS, PodGpus
from relaunch.core.kubernetes.problem import GPU, Problem, of_gpu, of_workload
from relaunch.core.offerings.instance_types import NVIDIA, InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.revisions.revision import ContainerRequirement, Revision
from relaunch.core.selection.gpu_share import check_requirement
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The label in which Kueue reads the queue of a Job."""
MAIN_CONTAINER = "main"
"""The name of the container if the definition gives none."""

# RFC 1123, as the names of containers are ("Object Names and IDs", Kubernetes).
_CONTAINER_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def purchase_options(definition: JobDefinition) -> frozenset[PurchaseOption]:
    """Return the purchase options that a definition allows and its target has.

    Spot is best-effort capacity of ACS, and elsewhere nodes with a label. Whether nodes of ACK may be taken away is a
    matter of its node pools.
    """
    workload = definition.kubernetes
    can = definition.target.capabilities
    is_reserved = can.has_compute_classes and workload is not None and class_of(workload) is ComputeClass.GPU_HPN
    if not can.has_spot or is_reserved:
        return definition.purchase.options & {PurchaseOption.ON_DEMAND}
    return definition.purchase.options


def find_problems(definition: JobDefinition) -> tuple[Problem, ...]:
    """Return why a job of a definition for a cluster can never run; empty if it may, and for a target without pods.

    The catalogue of EC2 says nothing about these targets.
    """
    find_gpu_problems = _rules_of(definition.target)
    if find_gpu_problems is None:
        return ()
    workload = definition.kubernetes
    gpu = definition.accelerator.gpu
    if workload is None:
        return (Problem(("kubernetes",), f"`kubernetes` is missing: {definition.target} needs its image at least"),)
    if gpu is None:
        return (Problem(("accelerator",), f"{definition.target} has NVIDIA GPUs only: give `gpu`"),)
    found = (
        *(Problem(GPU, text) for text in check_requirement(gpu)),
        *find_gpu_problems(gpu, workload),
        *_purchase_problems(definition),
        *_unknown_wishes(definition, gpu, workload),
        *_name_problems(definition, workload),
    )
    if found or definition.nodes == 1:
        return found
    asked = ask_gpus(definition.target, gpu, workload, PurchaseOption.ON_DEMAND)
    return tuple(_gang_problems(workload, asked.resources))


def _rules_of(target: Target) -> Callable[[GpuRequirement, KubernetesWorkload], tuple[Problem, ...]] | None:
    """Return what finds the problems of GPUs on a target; None for a target without pods."""
    match target:
        case Target.KUBERNETES:
            return lambda gpu, _workload: find_whole_gpu_problems(gpu)
        case Target.ACK:
            return ack.find_ack_problems
        case Target.ACS:
            return acs.find_acs_problems
        case Target.ECS:
            return None
        case _:
            assert_never(target)


def _purchase_problems(definition: JobDefinition) -> tuple[Problem, ...]:
    if PurchaseOption.RESERVED in definition.purchase.options:
        return (Problem(("purchase",), "reservations are those of EC2: set `purchase` to on-demand"),)
    if purchase_options(definition):
        return ()
    where = "compute class gpu-hpn of ACS" if definition.target.capabilities.has_spot else definition.target.upper()
    return (Problem(("purchase",), f"{where} has no spot capacity: set `purchase` to on-demand"),)


def _unknown_wishes(
    definition: JobDefinition, gpu: GpuRequirement, workload: KubernetesWorkload
) -> tuple[Problem, ...]:
    """Return the keys that choose GPUs on EC2, where nothing takes their place."""
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
    named = workload.labels.get(QUEUE_LABEL, workload.queue)
    if workload.queue and named != workload.queue:
        problems.append(of_workload("labels", f"`{QUEUE_LABEL}` is `queue`: leave it out"))
    if workload.service_account_token and not workload.service_account:
        text = "`service_account_token` is the token of a service account: name it in `service_account`"
        problems.append(of_workload("service_account_token", text))
    container = definition.container or MAIN_CONTAINER
    if _CONTAINER_NAME.fullmatch(container) is None:
        text = f"`{container}` is no name for a container of a pod: at most 63 lower-case letters, digits and -"
        problems.append(Problem(("container",), text))
    return tuple(problems)


def _gang_problems(workload: KubernetesWorkload, resources: Collection[str]) -> Iterator[Problem]:
    """Yield why the pods of a job of several nodes could not train together; `resources` are those of its GPUs.

    GPU instances of MIG do not reach each other (NVIDIA Multi-Instance GPU User Guide), and NCCL refuses two ranks on
    one GPU ("Duplicate GPU detected").
    """
    if not set(resources) <= {WHOLE_GPUS, workload.gpu_resource}:
        text = (
            "a job with `nodes` trains on whole GPUs: shares of several GPUs are slower than one whole GPU, and NCCL "
            "refuses two ranks on the same one; leave the share out, or leave `nodes` out"
        )
        yield Problem(GPU, text)
    if is_part_of_gpu(workload.gpu_resource):
        text = (
            f"`{workload.gpu_resource}` is a part of a GPU, which NCCL cannot join with others: a job with `nodes` "
            "trains on whole GPUs"
        )
        yield of_workload("gpu_resource", text)
    for key in sorted(workload.labels.keys() & ack.GROUP_LABELS):
        yield of_workload("labels", f"`{key}` is taken: Relaunch sets it for a job with `nodes`")


def _group_notices(definition: JobDefinition, workload: KubernetesWorkload) -> tuple[str, ...]:
    """Return what the owner of a job of several nodes should know of how its pods are placed."""
    target = definition.target
    if definition.nodes == 1 or target.capabilities.has_pod_groups or workload.queue:
        return ()
    return (
        f"{target} places the {definition.nodes} pods of a job one by one: those that have a node hold it until all "
        "do, or until the job is withdrawn and tried again; a `kubernetes.queue` admits all of them or none",
    )


def _shared_memory_notices(gpu: GpuRequirement, workload: KubernetesWorkload) -> tuple[str, ...]:
    """Return what NCCL fails for; parts of a GPU it does not join."""
    if workload.has_shared_memory or is_part_of_gpu(workload.gpu_resource):
        return ()
    return shared_memory_notice(gpu.count, "set `kubernetes.shared_memory`, which is part of `memory`, to 1GiB or more")


def ask_gpus(
    target: Target,
    gpu: GpuRequirement,
    workload: KubernetesWorkload,
    purchase: PurchaseOption,
    labels: NodeLabels | None = None,
) -> PodGpus:
    """Return how a pod asks for the GPUs of a definition without problems; `labels` are those that the stack names.

    Raises:
        ValueError: the target runs no pods.
    """
    match target:
        case Target.KUBERNETES:
            return ask_plain_gpus(gpu, workload, purchase, labels or NodeLabels())
        case Target.ACK:
            return ack.ask_ack_gpus(gpu, workload)
        case Target.ACS:
            return acs.ask_acs_gpus(gpu, workload, purchase)
        case Target.ECS:
            raise ValueError("a task on ECS is no pod")
        case _:
            assert_never(target)


def predict_job_fit(
    definition: JobDefinition, nodes: Sequence[GpuNode], labels: NodeLabels | None = None
) -> tuple[NodeFit, ...] | None:
    """Return what each node says of the pod of a definition; None if no node can tell.

    So it is with ECS, with a definition that has problems, and with class `gpu` of ACS, which has what is in stock.
    """
    workload = definition.kubernetes
    gpu = definition.accelerator.gpu
    can = definition.target.capabilities
    if workload is None or gpu is None or not can.runs_pods or find_problems(definition):
        return None
    if can.has_compute_classes and acs.class_of(workload) is ComputeClass.GPU:
        return None
    options = purchase_options(definition)
    # As in a plan: that of the first launch.
    first = PurchaseOption.SPOT if PurchaseOption.SPOT in options else PurchaseOption.ON_DEMAND
    asked = ask_gpus(definition.target, gpu, workload, first, labels)
    asked = replace(asked, node_selector={**workload.node_selector, **asked.node_selector})
    return predict_fit(nodes, asked, (*workload.tolerations, *asked.tolerations))


def find_kubernetes_notices(definition: JobDefinition) -> tuple[str, ...]:
    """Return what the owner of a definition without problems should know, but of its driver (acs_drivers)."""
    workload = definition.kubernetes
    gpu = definition.accelerator.gpu
    if workload is None or gpu is None:
        return ()
    notices = [
        *ask_gpus(definition.target, gpu, workload, PurchaseOption.ON_DEMAND).notices,
        *_group_notices(definition, workload),
        *_shared_memory_notices(gpu, workload),
    ]
    ignored = {
        "accelerator.instance_types": definition.accelerator.instance_types,
        "disk": definition.disk_gib,
        "max_price_per_hour": definition.max_price_usd_per_hour,
    }
    instead = {"disk": "; here it is `kubernetes.disk`"}
    notices += [
        f"`{key}` has no effect on {definition.target}: it is about EC2{instead.get(key, '')}"
        for key, value in ignored.items()
        if value
    ]
    return tuple(notices)


_FILTER = "capacity-memory"


def select_on_kubernetes(definition: JobDefinition, memory: CapacityMemory, now: datetime) -> Selection:
    """Keep the offerings of a definition for a cluster that no recent launch found without capacity."""
    offered = kubernetes_offerings(definition)
    rejections = {each: _rejection(each, memory, now) for each in offered}
    kept = tuple(each for each in offered if rejections[each] is None)
    rejected = tuple(RejectedOffering(each, _FILTER, why) for each, why in rejections.items() if why is not None)
    return Selection(kept, rejected, ((_FILTER, len(offered), len(kept)),))


def kubernetes_offerings(definition: JobDefinition) -> tuple[Offering, ...]:
    """Return the offerings of a definition for a cluster, in the order in which they are tried."""
    machine = _machine(definition)
    allowed = purchase_options(definition)
    return tuple(Offering(machine, each) for each in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND) if each in allowed)


def _machine(definition: JobDefinition) -> InstanceType:
    """Return what stands in the place of an instance type; jobs for the same kind of GPU share its name."""
    workload = definition.kubernetes
    gpu = definition.accelerator.gpu
    model = workload.gpu_model if workload is not None else ""
    has_classes = definition.target.capabilities.has_compute_classes
    kind = class_of(workload).value if workload is not None and has_classes else ""
    resource = workload.gpu_resource.rpartition("/")[2] if workload is not None else ""
    return InstanceType(
        name="/".join(part for part in (definition.target.value, kind, resource, model) if part),
        vcpus=0,
        memory_mib=0,
        architecture="",
        accelerator_manufacturer=NVIDIA,
        accelerator_model=model,
        gpu_count=gpu.count if gpu is not None else 0,
        logical_gpu_count=gpu.count if gpu is not None else 0,
        gpu_memory_mib=(gpu.memory_mib or 0) if gpu is not None else 0,
    )


def _rejection(offering: Offering, memory: CapacityMemory, now: datetime) -> Rejection | None:
    failure = memory.get(offering.key)
    if failure is None or failure.until <= now:
        return None
    reason = f"{failure.reason} at {failure.at:%H:%M} UTC; avoided until {failure.until:%H:%M} UTC"
    return Rejection(reason, is_permanent=False, retry_at=failure.until)


def kubernetes_revision(definition: JobDefinition) -> Revision:
    """Return the revision of a definition's workload: one container; it is part of the definition, not of a registry.

    Raises:
        ValueError: the definition has no workload for Kubernetes.
    """
    workload = definition.kubernetes
    gpu = definition.accelerator.gpu
    if workload is None:
        raise ValueError(f"definition {definition.name} has no workload for Kubernetes")
    is_share = gpu is not None and gpu.is_share
    main = ContainerRequirement(
        name=definition.container or MAIN_CONTAINER,
        image=workload.image,
        gpu_count=gpu.count if gpu is not None and not is_share else 0,
        memory_mib=workload.memory_mib or 0,
        vcpus=workload.vcpus or 0.0,
        gpu_share_mib=(gpu.memory_mib or 0) if gpu is not None and is_share else 0,
    )
    return Revision(
        arn=f"{definition.target}/{definition.name}",
        family=definition.name,
        revision=0,
        containers=(main,),
        network_mode="",
        vcpus=main.vcpus,
        memory_mib=main.memory_mib,
    )
