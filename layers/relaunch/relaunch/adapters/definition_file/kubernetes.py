"""The block `kubernetes` of a job definition."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

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
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
)

# "must be between 0 and 2147483647, inclusive" (validation of the Kubernetes API); 0 is root.
MAX_USER_ID = 2**31 - 1


def _to_member(enumeration: type[StrEnum]) -> AfterValidator:
    def to_member(value: str) -> StrEnum:
        return enumeration(value)

    # Since Python 3.12 the signature of an enumeration itself is (*values), which pydantic refuses as a validator.
    return AfterValidator(to_member)


class KubernetesModel(StrictModel):
    """What the job's pod has on ACK and ACS; on ECS the task definition says it."""

    image: ContainerImage
    """The container image, with its registry."""
    working_directory: WorkingDirectory = ""
    """Where the command runs; the image's own when left out."""
    vcpus: Vcpus | None = None
    """Requested vCPUs, also the limit; ACS needs them."""
    memory_mib: MemoryMib | None = Field(default=None, alias="memory")
    """Requested memory, also the limit; ACS needs it."""
    service_account: ObjectName = ""
    """Service account of the pod, one that the stack allows; the namespace's default when left out."""
    service_account_token: bool = False
    """Give the pod the token with which its service account calls the cluster's API."""
    pod_security: Annotated[Literal["baseline", "restricted"], _to_member(PodSecurity)] = Field(
        default="baseline", validate_default=True
    )
    """Pod Security Standard that the pod passes; restricted needs another user than root."""
    run_as_user: int | None = Field(default=None, ge=1, le=MAX_USER_ID)
    """ID of the user that the pod's processes have; that of the image when left out."""
    queue: LabelValue = ""
    """Queue that lets the job start: a LocalQueue of Kueue; also where ack-kube-queue starts what is suspended."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels for the Job and its pod, beside Relaunch's own."""
    region: RegionId = ""
    """Alibaba Cloud region of the cluster, such as cn-beijing: not every region has every way to share a GPU."""
    gpu_model: LabelValue = ""
    """GPU model in the target's words: ACK's node label `aliyun.accelerator/nvidia_name`, ACS's GPU model series."""
    gpu_sharing: Annotated[Literal["exclusive", "cgpu", "core_mem", "share", "mps"], _to_member(GpuSharing)] | None = (
        None
    )
    """ACK: mode of the nodes (`ack.node.gpu.schedule`) instead of the one that follows from `accelerator`."""
    gpu_placement: Annotated[Literal["binpack", "spread"], _to_member(GpuPlacement)] | None = None
    """ACK: only nodes that fill one GPU after the other (`binpack`), or spread pods over them (`spread`)."""
    compute_class: Annotated[Literal["gpu", "gpu-hpn"], _to_member(ComputeClass)] | None = None
    """ACS: compute class; `gpu` when left out."""
    gpu_driver: LabelValue = ""
    """ACS: driver version, such as 535.161.08; ACS's default for the model when left out."""
    strict: bool = False
    """ACS: refuse a driver that is not in the bundled list of the model's drivers, instead of a notice."""
    card_memory_mib: MemoryMib | None = Field(default=None, alias="card_memory")
    """ACS: memory of a whole GPU of this model, which a share on gpu-hpn is reckoned from."""

    def to_core(self) -> KubernetesWorkload:
        """Return the core type, which has the same members."""
        return KubernetesWorkload(**dict(self))
