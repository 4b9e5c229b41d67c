"""The machines that Relaunch requested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.machines.charges import cost_so_far
from relaunch.core.machines.decision import MICRO_USD
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState
from relaunch_cli.dashboard.machine_reader import MOST, MachineList
from relaunch_cli.dashboard.pages.jobs import job_link
from relaunch_cli.views.formatting import format_cost, format_price
from relaunch_cli.views.machine_progress import describe_now
from relaunch_cli.views.machines import describe_left, describe_warm, short_offering


@dataclass(frozen=True)
class MachineRow:
    """A machine in the list; `kept_until` is when one without a job is ended."""

    machine: Machine
    what: str
    zone: str
    jobs: Sequence[tuple[str, str]]
    does: str
    idle_since: datetime | None
    kept_until: datetime | None
    per_hour: str
    cost: str


def machines_values(found: MachineList, limits: MachineLimits, now: datetime, *, is_on: bool) -> Mapping[str, object]:
    """Return the values of the template `machines.html`; `is_on`: the stack requests machines of its own."""
    most = limits.totals(is_handover=True).machines
    return {
        "rows": [_row(machine, limits, now) for machine in found.machines],
        "count": found.totals.machines,
        "most": most,
        "for_handovers": most - limits.totals(is_handover=False).machines,
        "usd_per_hour": found.totals.micro_usd_per_hour / MICRO_USD,
        "most_usd_per_hour": limits.max_usd_per_hour,
        "notes": [
            note
            for note in (describe_warm(found.machines, limits.warm_time), describe_left(found.machines, now))
            if note
        ],
        "is_on": is_on,
        "is_cut": found.is_cut,
        "most_read": MOST,
    }


def _row(machine: Machine, limits: MachineLimits, now: datetime) -> MachineRow:
    what, zone = short_offering(machine)
    is_warm = machine.state is MachineState.READY and not machine.claims
    idle_since = (machine.idle_since or machine.registered_at) if is_warm else None
    return MachineRow(
        machine,
        what,
        zone,
        [(claim.job_id, job_link(claim.job_id)) for claim in machine.claims],
        describe_now(machine, now, limits),
        idle_since,
        idle_since + limits.warm_time if idle_since is not None else None,
        # Until EC2 has chosen it is that of the dearest type that was asked for.
        f"{'' if machine.offering else '≤ '}${format_price(machine.usd_per_hour)}",
        format_cost(cost_so_far(machine, now)),
    )
