"""The table of a selection as rows, for storage and output."""

import math
from collections.abc import Mapping

from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.selection import RejectedOffering, Selection


def explain_rows(selection: Selection) -> tuple[Mapping[str, object], ...]:
    """Return all offerings as JSON-serializable rows, the kept ones first.

    Keys: `rank` (1 is the chosen one; None if rejected), `instance_type`, `purchase`, `zone`, `zones`,
    `capacity_provider`, `is_own_machine`, `reservation` (None, or `id`, `type`, `state`, `total`, `available`,
    `starts_at`, `ends_at`), `accelerator`, `accelerator_count`, `accelerator_memory_mib`, `vcpus`,
    `memory_mib`, `price_usd_per_hour` (None: unknown), `expected_usd_per_hour`, `price_at` (ISO 8601),
    `on_demand_usd_per_hour`, `saving` (fraction of the on-demand price), `expected_cost_usd` (until the job has
    finished; None without an estimated duration or a price, or if it would never finish), `interruptions_per_hour`
    (expected; 0 for on-demand), `placement_score` (EC2's spot placement score, 1 to 10; None: unknown), `verdict`
    (`kept`, `rejected`), `filter`, `reason`, `is_permanent`.
    """
    cost = cost_of(selection.work)
    kept = [_row(each, rank, cost(each)) for rank, each in enumerate(selection.kept, start=1)]
    return (*kept, *(_rejected_row(each, cost(each.offering)) for each in selection.rejected))


def _row(offering: Offering, rank: int | None, cost: float | None) -> dict[str, object]:
    machine = offering.instance_type
    return {
        "rank": rank,
        "instance_type": machine.name,
        "purchase": offering.purchase.value,
        "zone": offering.zone,
        "zones": list(offering.zones),
        "capacity_provider": offering.capacity_provider,
        "is_own_machine": offering.is_own_machine,
        "reservation": _reservation(offering.reservation),
        "accelerator": machine.accelerator_model,
        "accelerator_count": machine.accelerator_count,
        "accelerator_memory_mib": machine.accelerator_memory_mib,
        "vcpus": machine.vcpus,
        "memory_mib": machine.memory_mib,
        "price_usd_per_hour": offering.price_usd_per_hour,
        "expected_usd_per_hour": offering.expected_usd_per_hour,
        "price_at": offering.price_at.isoformat() if offering.price_at else None,
        "on_demand_usd_per_hour": offering.on_demand_usd_per_hour,
        "saving": offering.saving,
        "expected_cost_usd": cost if cost is None or math.isfinite(cost) else None,
        "interruptions_per_hour": offering.interruption_rate,
        "placement_score": offering.placement_score,
        "verdict": "kept",
        "filter": None,
        "reason": "",
        "is_permanent": None,
    }


def _reservation(reservation: Reservation | None) -> dict[str, object] | None:
    if reservation is None:
        return None
    starts_at, ends_at = reservation.starts_at, reservation.ends_at
    return {
        "id": reservation.reservation_id,
        "type": reservation.type.value,
        "state": reservation.state,
        "total": reservation.total,
        "available": reservation.available,
        "starts_at": starts_at.isoformat() if starts_at else None,
        "ends_at": ends_at.isoformat() if ends_at else None,
    }


def _rejected_row(rejected: RejectedOffering, cost: float | None) -> dict[str, object]:
    return _row(rejected.offering, None, cost) | {
        "verdict": "rejected",
        "filter": rejected.filter_name,
        "reason": rejected.rejection.reason,
        "is_permanent": rejected.rejection.is_permanent,
    }
