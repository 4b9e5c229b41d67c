"""The block `kubernetes` of a job definition."""

from typing import Literal

from pydantic import Field

from relaunch.adapters.definition_file.triggers import StrictModel
from relaunch.adapters.definition_file.values import (
    ContainerImage,
    LabelKey,
    LabelValue,
    MemoryMib,
    ObjectName,
    RegionId,
    Vcpus,
    WorkingDirectory,
)
from relaunch.core.definitions.kubernetes_workload import ComputeClass, GpuPlacement, GpuSharing, KubernetesWorkload


class KubernetesModel(StrictModel):
    """What the job's pod has on ACK and ACS; on ECS the task definition says it."""

    image: ContainerImage
    """The container image, with its registry."""
    working_directory: WorkingDirectory = ""
    """Where the command runs; the image's own when left out."""
    vcpus: Vcpus | None = None
    """Requested vCPUs, also the limit; ACS needs them."""
    memory: MemoryMib | None = None
    """Requested memory, also the limit; ACS needs it."""
    service_account: ObjectName = ""
    """Service account of the pod; the namespace's default when left out."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels for the Job and its pod, beside Relaunch's own."""
    region: RegionId = ""
    """Alibaba Cloud region of the cluster, such as cn-beijing: not every region has every way to share a GPU."""
    gpu_model: LabelValue = ""
    """GPU model in the target's words: ACK's node label `aliyun.accelerator/nvidia_name`, ACS's GPU model series."""
    gpu_sharing: Literal["exclusive", "cgpu", "core_mem", "share", "mps"] | None = None
    """ACK: mode of the nodes (`ack.node.gpu.schedule`) instead of the one that follows from `accelerator`."""
    gpu_placement: Literal["binpack", "spread"] | None = None
    """ACK: only nodes that fill one GPU after the other (`binpack`), or spread pods over them (`spread`)."""
    compute_class: Literal["gpu", "gpu-hpn"] | None = None
    """ACS: compute class; `gpu` when left out."""
    gpu_driver: LabelValue = ""
    """ACS: driver version, such as 535.161.08; ACS's default for the model when left out."""
    strict: bool = False
    """ACS: refuse a driver that is not in the bundled list of the model's drivers, instead of a notice."""
    card_memory: MemoryMib | None = None
    """ACS: memory of a whole GPU of this model, which a share on gpu-hpn is reckoned from."""

    def to_core(self) -> KubernetesWorkload:
        """Return the core type."""
        return KubernetesWorkload(
            image=self.image,
            working_directory=self.working_directory,
            vcpus=self.vcpus,
            memory_mib=self.memory,
            service_account=self.service_account,
            labels=dict(self.labels),
            region=self.region,
            gpu_model=self.gpu_model,
            gpu_sharing=GpuSharing(self.gpu_sharing) if self.gpu_sharing else None,
            gpu_placement=GpuPlacement(self.gpu_placement) if self.gpu_placement else None,
            compute_class=ComputeClass(self.compute_class) if self.compute_class else None,
            gpu_driver=self.gpu_driver,
            card_memory_mib=self.card_memory,
            strict=self.strict,
        )
