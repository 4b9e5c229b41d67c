"""The revision of a job on Kubernetes, which has no task definition."""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.kubernetes.rules import MAIN_CONTAINER
from relaunch.core.revisions.revision import ContainerRequirement, Revision


def kubernetes_revision(definition: JobDefinition) -> Revision:
    """Return the revision of a definition's workload: one container; it is part of the definition, not of a registry.

    Raises:
        ValueError: the definition has no workload for Kubernetes.
    """
    workload, gpu = definition.kubernetes, definition.accelerator.gpu
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
