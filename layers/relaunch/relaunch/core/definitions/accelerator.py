"""What a job needs of a machine: accelerators, disk, and how it may be bought."""

from dataclasses import dataclass
from enum import StrEnum


class PurchaseOption(StrEnum):
    """How one machine is bought."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


class PurchasePolicy(StrEnum):
    """Which purchase options a job definition allows."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    SPOT_THEN_ON_DEMAND = "spot-then-on-demand"

    @property
    def options(self) -> frozenset[PurchaseOption]:
        """Return the purchase options this policy allows."""
        if self is PurchasePolicy.SPOT_THEN_ON_DEMAND:
            return frozenset(PurchaseOption)
        return frozenset({PurchaseOption(self.value)})


class Isolation(StrEnum):
    """How far apart the users of one GPU are kept."""

    REQUIRED = "required"  # a partition in hardware: a fractional instance type
    BEST_EFFORT = "best-effort"  # NVIDIA MPS: limits are kept, but a fatal error of one stops the others


class Interconnect(StrEnum):
    """What connects the GPUs of a machine, or machines with each other."""

    EFA = "efa"
    NVLINK = "nvlink"


@dataclass(frozen=True, slots=True)
class GpuRequirement:
    """NVIDIA GPUs: how many, and what each card must have. All figures are per card.

    With `compute_percent` a share of one card is asked for: `memory_mib` of its memory and at most this part of its
    compute. Without it whole cards are, and `memory_mib` is the least a card must have. `models` names any acceptable
    card (`A10G`, `L4`…), empty means any. `compute_capability` is the least acceptable one ((8, 0) has bf16).
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
        """Tell whether a part of one GPU is asked for."""
        return self.compute_percent is not None


@dataclass(frozen=True, slots=True)
class NeuronRequirement:
    """AWS Trainium or Inferentia: devices (chips) or cores; exactly one of the two is set."""

    devices: int | None = None
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class AcceleratorRequirement:
    """Exactly one of `gpu` and `neuron`, or neither with an explicit list of instance types.

    `instance_types` beside `gpu` or `neuron` narrows the choice to that list.
    """

    gpu: GpuRequirement | None = None
    neuron: NeuronRequirement | None = None
    instance_types: tuple[str, ...] = ()
