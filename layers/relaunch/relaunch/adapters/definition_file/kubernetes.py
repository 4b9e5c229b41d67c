"""The block `kubernetes` of a job definition."""

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from relaunch.adapters.definition_file.kubernetes_values import (
    AnnotationKey,
    ContainerImage,
    GpuResource,
    LabelKey,
    LabelValue,
    MountPath,
    NodeLabelKey,
    ObjectName,
    RegionId,
    SecretKeyName,
    SubPath,
    WorkingDirectory,
)
from relaunch.adapters.definition_file.triggers import StrictModel
from relaunch.adapters.definition_file.values import EnvironmentName, MemoryMib, Vcpus
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)

# "must be between 0 and 2147483647, inclusive" (validation of the Kubernetes API); 0 is root.
MAX_USER_ID = 2**31 - 1
# "The total size limit of all annotations of an object is 256 KiB", less than that of an item with its definition.
MAX_ANNOTATION_CHARACTERS = 65_536
MAX_FRAGMENT_CHARACTERS = 16_384
MOST = 100


def _to_member(enumeration: type[StrEnum]) -> AfterValidator:
    def to_member(value: str) -> StrEnum:
        return enumeration(value)

    # Since Python 3.12 the signature of an enumeration itself is (*values), which pydantic refuses as a validator.
    return AfterValidator(to_member)


def _check_annotations(annotations: dict[str, str]) -> dict[str, str]:
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATION_CHARACTERS:
        raise ValueError(f"have more than {MAX_ANNOTATION_CHARACTERS:,} characters together")
    return annotations


def _check_fragment(spec: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(spec, allow_nan=False))
    except ValueError as error:
        raise ValueError("has a number that JSON cannot write") from error
    if size > MAX_FRAGMENT_CHARACTERS:
        raise ValueError(f"has more than {MAX_FRAGMENT_CHARACTERS:,} characters")
    return spec


Annotations = Annotated[dict[AnnotationKey, str], AfterValidator(_check_annotations)]
Fragment = Annotated[dict[str, Any], AfterValidator(_check_fragment), WithJsonSchema({"type": "object"})]


class SecretModel(StrictModel):
    """A key of a Secret in the namespace of the jobs."""

    secret: ObjectName
    """Name of the Secret."""
    key: SecretKeyName
    """The key whose value the variable gets."""

    def to_core(self) -> SecretKey:
        """Return the core type."""
        return SecretKey(self.secret, self.key)


class TolerationModel(StrictModel, json_schema_extra={"minProperties": 1}):
    """Taints of nodes that the pod may run on all the same."""

    key: NodeLabelKey = ""
    """Key of the taint; any when left out."""
    value: LabelValue = ""
    """Value of the taint; any when left out."""
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], _to_member(TaintEffect)] | None = None
    """Effect of the taint; any when left out."""

    def to_core(self) -> Toleration:
        """Return the core type, which has the same members."""
        return Toleration(**dict(self))


class VolumeModel(StrictModel):
    """A persistent volume claim, and where the container has it."""

    claim: ObjectName
    """Name of the claim, in the namespace of the jobs."""
    path: MountPath
    """Where the container has it."""
    read_only: bool = False
    """Whether the container may only read it."""
    sub_path: SubPath = ""
    """The folder of the volume that is mounted; its root when left out."""

    def to_core(self) -> PodVolume:
        """Return the core type, which has the same members."""
        return PodVolume(**dict(self))


class PodMetadataModel(StrictModel):
    """Metadata of the pod alone."""

    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, min_length=1)
    """Labels."""
    annotations: Annotations = Field(default_factory=dict, min_length=1)
    """Annotations."""


class PodModel(StrictModel):
    """Part of a pod template, in the words of the Kubernetes API."""

    metadata: PodMetadataModel | None = None
    """Labels and annotations of the pod alone; those of the Job too are `labels` and `annotations`."""
    spec: Fragment = Field(default_factory=dict, min_length=1)
    """Fields of the pod's specification for which there is no key here."""

    def to_core(self) -> dict[str, object]:
        """Return what is given of it."""
        return self.model_dump(exclude_unset=True)


class KubernetesModel(StrictModel):
    """What the job's pod has in a cluster; on ECS the task definition says it."""

    image: ContainerImage
    """The container image, with its registry."""
    working_directory: WorkingDirectory = ""
    """Where the command runs; the image's own when left out."""
    vcpus: Vcpus | None = None
    """Requested vCPUs, also the limit; ACS needs them."""
    memory_mib: MemoryMib | None = Field(default=None, alias="memory")
    """Requested memory, also the limit; ACS needs it."""
    shared_memory_mib: MemoryMib | None = Field(default=None, alias="shared_memory")
    """What /dev/shm has, as part of `memory`; 64 MiB when left out."""
    disk_mib: MemoryMib | None = Field(default=None, alias="disk")
    """What the pod may write beside its volumes: requested, also the limit; on ACS all of it, with the image."""
    secrets: dict[EnvironmentName, SecretModel] = Field(default_factory=dict, min_length=1, max_length=MOST)
    """Environment variables whose values are in Secrets of the namespace."""
    volumes: list[VolumeModel] = Field(default_factory=list, min_length=1, max_length=MOST)
    """Persistent volume claims (disks, OSS, NAS, CPFS) and where the container has them."""
    node_selector: dict[NodeLabelKey, LabelValue] = Field(default_factory=dict, min_length=1, max_length=MOST)
    """Labels of the nodes that the pod may run on, beside those that follow from its GPUs."""
    tolerations: list[TolerationModel] = Field(default_factory=list, min_length=1, max_length=MOST)
    """Taints of nodes that the pod may run on all the same."""
    image_pull_secrets: list[ObjectName] = Field(default_factory=list, min_length=1, max_length=MOST)
    """Secrets of the namespace with the credentials of registries."""
    priority_class: ObjectName = ""
    """Priority class of the pod; the cluster's default when left out."""
    scheduler_name: ObjectName = ""
    """Scheduler of the pod; the cluster's default when left out."""
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
    annotations: Annotations = Field(default_factory=dict, min_length=1)
    """Annotations for the Job and its pod, beside Relaunch's own."""
    region: RegionId = ""
    """Alibaba Cloud region of the cluster, such as cn-beijing: not every region has every way to share a GPU."""
    gpu_model: LabelValue = ""
    """GPU model in the target's words: the value of the stack's or ACK's label of nodes, ACS's GPU model series."""
    gpu_resource: GpuResource = ""
    """What a GPU is instead of `nvidia.com/gpu`: a MIG partition (nvidia.com/mig-1g.5gb), or a GPU shared in time."""
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

    pod: PodModel | None = None
    """Part of the pod template, for what has no key here."""

    def to_core(self) -> KubernetesWorkload:
        """Return the core type, which has the same members."""
        members = dict(self) | {
            "secrets": {name: each.to_core() for name, each in self.secrets.items()},
            "volumes": tuple(each.to_core() for each in self.volumes),
            "tolerations": tuple(each.to_core() for each in self.tolerations),
            "image_pull_secrets": tuple(self.image_pull_secrets),
            "pod": self.pod.to_core() if self.pod else {},
        }
        return KubernetesWorkload(**members)
