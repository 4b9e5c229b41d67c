"""What a job runs on Kubernetes: the image and what its pod has, which on ECS a task definition says."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from relaunch.core.definitions.accelerator import SHARED_MEMORY_PATH
from relaunch.core.records import dataclass


class GpuSharing(StrEnum):
    """How the GPUs of an ACK node are shared: values of its label `ack.node.gpu.schedule`.

    Source: "Enable scheduling features", Container Service for Kubernetes. A node has one of them.
    """

    EXCLUSIVE = "exclusive"  # whole GPUs: the label is `default`, or missing
    CGPU = "cgpu"  # memory is isolated, compute is not
    CORE_MEM = "core_mem"  # memory and compute are isolated
    SHARE = "share"  # nothing is isolated
    MPS = "mps"  # memory is isolated by NVIDIA MPS, compute is not


class GpuPlacement(StrEnum):
    """Which GPU of an ACK node a share is taken from: values of its label `ack.node.gpu.placement`."""

    BINPACK = "binpack"  # the fullest that fits
    SPREAD = "spread"  # the emptiest


class ComputeClass(StrEnum):
    """The compute classes of ACS that have GPUs: values of the pod label `alibabacloud.com/compute-class`."""

    GPU = "gpu"  # pay-as-you-go, or a capacity reservation
    GPU_HPN = "gpu-hpn"  # reserved nodes with high-performance networking


class PodSecurity(StrEnum):
    """The level of "Pod Security Standards" (Kubernetes documentation) that a pod passes.

    `privileged`, the third one, is for what manages nodes.
    """

    BASELINE = "baseline"  # with the user of its image, mostly root, and the capabilities of the runtime's default
    RESTRICTED = "restricted"  # with a user other than root, and without capabilities


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it ("Taints and Tolerations", Kubernetes documentation)."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """A value that the cluster has: a key of a Secret in the namespace of the pod."""

    secret: str
    key: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """Taints that keep the pod from no node: of a key, or of all; of a value, or of any; of an effect, or of all."""

    key: str = ""
    value: str = ""
    effect: TaintEffect | None = None


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A persistent volume claim of the namespace, and where the container has it."""

    claim: str
    path: str
    read_only: bool = False
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class KubernetesWorkload:
    """What the pod of a job has, as far as its accelerator does not say it.

    `vcpus` and `memory_mib` are both requests and limits; None asks for none. `gpu_model` is the model in the words of
    the target: on ACK the label `aliyun.accelerator/nvidia_name` of nodes, on ACS a GPU model series, elsewhere the
    label that the stack names. `gpu_resource` is the extended resource that a GPU is, empty for `nvidia.com/gpu`: a MIG
    partition, or GPUs that are shared in time. `region` is the region of the cluster in the words of Alibaba Cloud,
    whose IDs are in part those of AWS; empty if it is not given.

    `service_account_token`: the pod has the token with which its service account calls the API of the cluster.
    `run_as_user` is the ID of the user that its processes have; None is that of the image.

    `shared_memory_mib` is what /dev/shm has, and part of the memory of the pod; None is what the runtime gives, 64 MiB.
    `disk_mib` is what the pod may write beside its volumes, on ACS with its image; None asks for none. `secrets` are
    variables of the container by name. `annotations` are those of the Job and its pod. `pod` is part of a pod template,
    `metadata` and `spec` as in the API, merged into the one that Relaunch writes (core.kubernetes.pod_fragment).
    `queue` names the queue that lets the Job start, which is created suspended; empty for none.

    For ACK only: `gpu_sharing` None follows from the accelerator, `gpu_placement` None is any. For ACS only:
    `compute_class` None is `gpu`; `gpu_driver` empty is the default of ACS or of the cluster, and `strict` refuses one
    that is not in the list of the model's drivers; `card_memory_mib` is the memory of a whole GPU of this model,
    which turns a share into percent.
    """

    image: str
    working_directory: str = ""
    vcpus: float | None = None
    memory_mib: int | None = None
    service_account: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    gpu_model: str = ""
    gpu_sharing: GpuSharing | None = None
    gpu_placement: GpuPlacement | None = None
    compute_class: ComputeClass | None = None
    gpu_driver: str = ""
    card_memory_mib: int | None = None
    strict: bool = False
    service_account_token: bool = False
    pod_security: PodSecurity = PodSecurity.BASELINE
    run_as_user: int | None = None
    shared_memory_mib: int | None = None
    disk_mib: int | None = None
    secrets: Mapping[str, SecretKey] = field(default_factory=dict)
    volumes: tuple[PodVolume, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    scheduler_name: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod: Mapping[str, object] = field(default_factory=dict)
    queue: str = ""
    gpu_resource: str = ""

    @property
    def own_variables(self) -> frozenset[str]:
        """Return the names of the variables that `secrets` and `pod` give the container."""
        return frozenset({*self.secrets, *self._members_of_container("env", "name")})

    @property
    def has_shared_memory(self) -> bool:
        """Return whether the container has something of its own at /dev/shm, by whatever key."""
        mounted = {*(each.path for each in self.volumes), *self._members_of_container("volumeMounts", "mountPath")}
        return self.shared_memory_mib is not None or SHARED_MEMORY_PATH in mounted

    def _members_of_container(self, members: str, key: str) -> frozenset[str]:
        """Return a value of each of these in the containers of `pod`; what is of another shape is refused elsewhere."""
        spec = self.pod.get("spec")
        containers = spec.get("containers") if isinstance(spec, Mapping) else None
        found = (each.get(members) for each in _mappings(containers))
        return frozenset(str(each.get(key)) for listed in found for each in _mappings(listed))


def _mappings(listed: object) -> Iterator[Mapping[str, object]]:
    """Yield what a list has of mappings; nothing of what is no list."""
    for each in listed if isinstance(listed, list | tuple) else ():
        if isinstance(each, Mapping):
            yield each
