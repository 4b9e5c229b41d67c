"""A decision about a machine: what to save, and what it takes from the counters of the stack."""

from dataclasses import dataclass, field

from relaunch.core.machines.machine import Machine
from relaunch.core.machines.starts import Starts

MICRO_USD = 1_000_000
"""Money per hour is counted in millionths of a USD: a counter of floating point numbers would drift."""


@dataclass(frozen=True, slots=True)
class MachineTotals:
    """What lives: the number of machines that are not GONE, and their price per hour in millionths of a USD."""

    machines: int = 0
    micro_usd_per_hour: int = 0


@dataclass(frozen=True, slots=True)
class MachineDecision:
    """The machine to save, and what the counters of the stack change by in the same transaction.

    `added` may be negative. `limits`, if given, must hold after the addition, else nothing is written; nor is it if one
    of `starts` was written by others since it was loaded. The effects that follow the save are in `machine.pending`. An
    ignored decision changes nothing; `note` says why. `action` is the name of the action that decided; empty if there
    was none.
    """

    machine: Machine
    added: MachineTotals = MachineTotals()
    limits: MachineTotals | None = None
    starts: tuple[Starts, ...] = ()
    is_ignored: bool = False
    note: str = ""
    action: str = field(default="", compare=False)


def micro_usd(usd_per_hour: float) -> int:
    """Return a price per hour in millionths of a USD."""
    return round(usd_per_hour * MICRO_USD)
