"""What a job remembers of the machines of our own that it pays."""

from relaunch.core.jobs.state import CostBasis, OpenCharge
from relaunch.core.machines.charges import Charge
from relaunch.core.records import dataclass

KEPT_CHARGES = 32
"""How many machines a job remembers by their charge, so that a message that comes again charges none twice."""


@dataclass(frozen=True, slots=True)
class Charges:
    """What machines of our own cost a job, from their launch to their end (core.lifecycle.charging)."""

    machines_usd: float = 0.0
    """Those that are gone."""
    on_demand_usd: float = 0.0
    """The same machines over the same time, on demand."""
    own_tasks_usd: float = 0.0
    """The part of `Totals.cost_usd` of tasks on machines that are charged."""
    trained_usd: float = 0.0
    """The part of them while tasks of the job ran, by its share and the price at the start."""
    basis: CostBasis = CostBasis.PRICE
    latest: tuple[Charge, ...] = ()
    """The machines that charged it last."""
    open: tuple[OpenCharge, ...] = ()
    """The machines that are not gone, and the one of its task until the end of that is counted."""

    def open_of(self, machine_id: str) -> OpenCharge | None:
        """Return the charge of a machine that is not gone, or on which its task ran until now; None if it has none."""
        return next((each for each in self.open if each.machine_id == machine_id), None)

    def has_charged(self, machine_id: str) -> bool:
        """Return whether a machine has charged the job, and is gone."""
        return any(each.machine_id == machine_id for each in self.latest)
