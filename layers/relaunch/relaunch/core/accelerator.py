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


@dataclass(frozen=True, slots=True)
class GpuRequirement:
    """Whole NVIDIA GPUs: how many, and what each card must have.

    `memory_mib` is per card; `models` names any acceptable card (`A10G`, `L4`…), empty means any.
    """

    count: int = 1
    memory_mib: int | None = None
    models: tuple[str, ...] = ()


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
