"""Accelerator requirements and purchase options of a job definition."""

import re
from enum import StrEnum

from relaunch.core.definitions.targets import Target
from relaunch.core.records import dataclass


class PurchaseOption(StrEnum):
    """How an instance is purchased."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"  # in a Capacity Block or an on-demand capacity reservation that the stack may use


class PurchasePolicy(StrEnum):
    """Which purchase options a job definition allows, as their names with `-then-` between them.

    The order of offerings is that of their expected cost, in which what is reserved costs nothing more.
    """

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    SPOT_THEN_ON_DEMAND = "spot-then-on-demand"
    RESERVED = "reserved"
    RESERVED_THEN_SPOT = "reserved-then-spot"
    RESERVED_THEN_ON_DEMAND = "reserved-then-on-demand"
    RESERVED_THEN_SPOT_THEN_ON_DEMAND = "reserved-then-spot-then-on-demand"

    @property
    def options(self) -> frozenset[PurchaseOption]:
        """Return the purchase options this policy allows."""
        return frozenset(map(PurchaseOption, self.value.split("-then-")))


def usual_purchase(target: Target) -> PurchasePolicy:
    """Return the policy of a definition that names none: a pod is preemptible only if somebody asks for it.

    ACS's own manifests are pay-as-you-go, and a job that is taken from them is what they say.
    """
    if target.capabilities.runs_pods and target.capabilities.has_spot:
        return PurchasePolicy.ON_DEMAND
    return PurchasePolicy.SPOT_THEN_ON_DEMAND


class Isolation(StrEnum):
    """How the users of a shared GPU are isolated from each other."""

    REQUIRED = "required"  # a hardware partition: a fractional instance type
    BEST_EFFORT = "best-effort"  # NVIDIA MPS: enforces limits, but a fatal error of one client stops the others


class Interconnect(StrEnum):
    """An interconnect between the GPUs of an instance (NVLink) or between instances (EFA)."""

    EFA = "efa"
    NVLINK = "nvlink"


@dataclass(frozen=True, slots=True)
class GpuRequirement:
    """NVIDIA GPUs. All figures are per GPU.

    Without `compute_percent`, `count` whole GPUs with at least `memory_mib` each are required. With it, a share of one
    GPU is: `memory_mib` of its memory and at most that percentage of its compute. `models` lists the acceptable GPUs
    (`A10G`, `L4`…); empty means any. `compute_capability` is the minimum ((8, 0) supports bfloat16).
    """

    count: int = 1
    memory_mib: int | None = None
    models: tuple[str, ...] = ()
    compute_percent: int | None = None
    isolation: Isolation = Isolation.BEST_EFFORT
    compute_capability: tuple[int, int] | None = None
    interconnect: Interconnect | None = None

    @property
    def is_share(self) -> bool:
        """Return whether a share of one GPU is required."""
        return self.compute_percent is not None


class NeuronPurpose(StrEnum):
    """What Neuron devices are for: Trainium serves both, Inferentia inference only."""

    TRAINING = "training"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True)
class NeuronRequirement:
    """AWS Trainium or Inferentia: a number of devices (chips) or of cores; exactly one of the two is set.

    `models` lists the acceptable devices (`Trainium2`…); empty means any that serves the purpose.
    """

    devices: int | None = None
    cores: int | None = None
    models: tuple[str, ...] = ()
    purpose: NeuronPurpose = NeuronPurpose.TRAINING


@dataclass(frozen=True, slots=True)
class AcceleratorRequirement:
    """Exactly one of `gpu` and `neuron`, or only a list of instance types.

    Together with `gpu` or `neuron`, `instance_types` restricts the choice to that list.
    """

    gpu: GpuRequirement | None = None
    neuron: NeuronRequirement | None = None
    instance_types: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Return the acceptable models of the accelerator; empty means any."""
        kind = self.gpu or self.neuron
        return kind.models if kind else ()


class Precision(StrEnum):
    """The number format in which a program has its matrices multiplied."""

    FP16 = "fp16"
    BF16 = "bf16"
    TF32 = "tf32"
    FP32 = "fp32"


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """The accelerators on which a duration was measured: a model, and how many of it.

    Without a `count` they are as many as a job of the definition gets.
    """

    model: str
    count: int | None = None

    def __str__(self) -> str:
        """Return `A10G`, or `4x A10G`."""
        return self.model if self.count is None else f"{self.count}x {self.model}"


@dataclass(frozen=True, slots=True)
class Accelerators:
    """What a job computes on: `count` accelerators of a model, and which `fraction` of each."""

    model: str
    count: int = 1
    fraction: float = 1.0

    def __str__(self) -> str:
        """Return `A10G`, `4x A10G` or `25% of L4`."""
        if self.fraction != 1:
            return f"{self.fraction:.0%} of {self.model}"
        return self.model if self.count == 1 else f"{self.count}x {self.model}"

    @property
    def key(self) -> str:
        """Return `A10G`, `4x A10G` or `0.125x L4`, which is exact: what is stored names them by it."""
        many = self.count if self.fraction == 1 else self.fraction
        return self.model if many == 1 else f"{many:g}x {self.model}"


def read_accelerators(key: str) -> Accelerators:
    """Return the accelerators of a key."""
    many, separator, model = key.partition("x ")
    if not separator or not re.fullmatch(r"[0-9.]+", many):
        return Accelerators(key)
    return Accelerators(model, int(many)) if many.isdecimal() else Accelerators(model, fraction=float(many))


SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - of a container


def shared_memory_notice(gpus: int, remedy: str) -> tuple[str, ...]:
    """Return what the owner of a job should know whose container has these GPUs and the runtime's default /dev/shm.

    A runtime gives a container 64 MiB there, and NCCL fails to initialize where that is not enough ("Shared memory" of
    "Runtime and MPI issues", NVIDIA NCCL User Guide, which tells containers to have 1 GiB). It was seen on GPUs that do
    not reach each other by NVLink (NVIDIA/nccl#290, NVIDIA/nccl#525). `remedy` is what to set.
    """
    if gpus < 2:
        return ()
    return (
        f"processes on {gpus} GPUs share {SHARED_MEMORY_PATH}, which has 64 MiB: NCCL may not start there, above all "
        f"without NVLink (`No space left on device`), and each attempt counts as a failure of the program; {remedy}",
    )
