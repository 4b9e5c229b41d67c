"""What a machine offers to tasks, and what a task takes of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

# Shares of a GPU are sums of fractions.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU units (1,024 per vCPU), memory in MiB, GPUs (a fraction for a share of one) and Neuron devices."""

    cpu_units: int = 0
    memory_mib: int = 0
    gpus: float = 0.0
    neuron_devices: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        """Return the sum."""
        return Resources(
            self.cpu_units + other.cpu_units,
            self.memory_mib + other.memory_mib,
            self.gpus + other.gpus,
            self.neuron_devices + other.neuron_devices,
        )

    def less(self, other: "Resources") -> "Resources":
        """Return the difference, of which no part is negative."""
        return Resources(
            max(self.cpu_units - other.cpu_units, 0),
            max(self.memory_mib - other.memory_mib, 0),
            max(self.gpus - other.gpus, 0.0),
            max(self.neuron_devices - other.neuron_devices, 0),
        )

    def holds(self, other: "Resources") -> bool:
        """Return whether there is room for the other resources."""
        return (
            other.cpu_units <= self.cpu_units
            and other.memory_mib <= self.memory_mib
            and other.gpus <= self.gpus + _TOLERANCE
            and other.neuron_devices <= self.neuron_devices
        )

    @staticmethod
    def least(several: Iterable["Resources"]) -> "Resources":
        """Return the least of each resource.

        Raises:
            ValueError: there are none.
        """
        return _of_each(min, several)

    @staticmethod
    def most(several: Iterable["Resources"]) -> "Resources":
        """Return the most of each resource.

        Raises:
            ValueError: there are none.
        """
        return _of_each(max, several)


def _of_each(choose: Callable[[Iterable[Any]], Any], several: Iterable[Resources]) -> Resources:
    known = tuple(several)
    return Resources(
        choose(each.cpu_units for each in known),
        choose(each.memory_mib for each in known),
        choose(each.gpus for each in known),
        choose(each.neuron_devices for each in known),
    )


NOTHING = Resources()
