"""The table of machines, what they cost, and what is asked for."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from relaunch.core.machines.charges import cost_so_far
from relaunch.core.machines.decision import MICRO_USD, MachineTotals
from relaunch.core.machines.ending import is_left_to_ec2
from relaunch.core.machines.groups import reservation_of_group
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import FleetRequest, Machine, MachineState
from relaunch.core.offerings.offering import OfferingKey
from relaunch_cli.views.formatting import (
    format_cost,
    format_count,
    format_duration,
    format_percentage,
    format_price,
    join_zones,
    shorten_reason,
)
from relaunch_cli.views.screen import state_text
from relaunch_cli.views.table import PlainTable


def render_machines(machines: Iterable[Machine], now: datetime) -> PlainTable:
    """Return the table of `machines`."""
    table = PlainTable(
        *("MACHINE", "STATE", "AGE", "OFFERING", "ZONE", "$/H", "COST", "INSTANCE", "JOBS", "REASON"),
        right=("AGE", "$/H", "COST"),
        optional=("REASON", "ZONE", "AGE", "INSTANCE", "$/H", "COST", "JOBS"),
        prose="cut",
    )
    for machine in machines:
        limit = "" if machine.offering else "<="
        table.add_row(
            machine.machine_id,
            state_text(machine.state.value),
            format_duration(now - machine.created_at),
            *short_offering(machine),
            f"{limit}{format_price(machine.usd_per_hour)}",
            format_cost(cost_so_far(machine, now)),
            machine.instance_id or "-",
            ", ".join(claim.job_id for claim in machine.claims) or _idle(machine, now),
            shorten_reason(machine.reason),
        )
    return table


def render_totals(totals: MachineTotals, limits: MachineLimits) -> str:
    """Return how many machines count against the limits of the stack, what they cost, and these limits."""
    usd = f"${format_price(totals.micro_usd_per_hour / MICRO_USD)}/h"
    count = format_count(totals.machines, "machine")
    reserve = limits.totals(is_handover=False)
    parts = [f"{count} of at most {limits.max_machines}" if limits.max_machines else count]
    parts.append(f"{usd} of ${limits.max_usd_per_hour:g}" if limits.max_usd_per_hour else usd)
    if kept := limits.max_machines - reserve.machines:
        parts.append(f"{kept} of the {limits.max_machines} for replacements of interrupted machines alone")
    return ", ".join(parts)


def describe_warm(machines: Iterable[Machine], warm_time: timedelta) -> str:
    """Return what machines cost that no job claims, and why they are kept; empty if there are none."""
    warm = [machine for machine in machines if _is_warm(machine)]
    if not warm:
        return ""
    verb = "is" if len(warm) == 1 else "are"
    usd = format_price(sum(machine.usd_per_hour for machine in warm))
    return (
        f"{format_count(len(warm), 'machine')} for ${usd}/h {verb} kept for {format_duration(warm_time)} without a job "
        "(MachineWarmMinutes)"
    )


def describe_left(machines: Iterable[Machine], now: datetime) -> str:
    """Return why machines that are ENDING are not terminated yet; empty if there are none."""
    left = [each for each in machines if each.state is MachineState.ENDING and is_left_to_ec2(each, now)]
    if not left:
        return ""
    verb = "is" if len(left) == 1 else "are"
    return (
        f"{format_count(len(left), 'ENDING machine')} {verb} left to EC2's interruption, three minutes after its "
        "warning at most: EC2 bills nothing for a spot instance that it interrupts in its first hour"
    )


def describe_fleet_request(request: FleetRequest, price_tolerance: float) -> str:
    """Return what EC2 would be asked for: `one spot machine: g6.xlarge in us-east-1a b, at most $0.4000/h`."""
    by_type: dict[str, list[str]] = {}
    for override in request.overrides:
        by_type.setdefault(override.offering.instance_type, []).append(override.offering.zone or "?")
    named = ", ".join(f"{name} in {join_zones(zones)}" for name, zones in by_type.items())
    each = "" if request.size == 1 else " each"
    limit = f"at most ${format_price(request.usd_per_hour)}/h{each}"
    within = f" from {request.reservation}" if request.reservation else ""
    what = f"one {request.purchase} machine" if request.size == 1 else f"{request.size} {request.purchase} machines"
    at_once = "" if request.size == 1 else ", all or none"
    # RunInstances launches several into a reservation.
    asker = "EC2 Fleet" if reservation_of_group(request) is None else "EC2"
    asked = f"{asker} would be asked for {what}{at_once}: {named}{within}; {limit}"
    if len(request.overrides) == 1:
        return asked
    more = format_percentage(price_tolerance)
    return f"{asked}. EC2 chooses: they are expected to cost at most {more} more than the best."


def short_offering(machine: Machine) -> tuple[str, str]:
    """Return what EC2 chose, or before that what was asked for, and its zone: `g6.xlarge spot`, `2 types spot`."""
    what, zone = _place(machine)
    return f"{what} {machine.request.purchase}", zone


def _is_warm(machine: Machine) -> bool:
    """Return whether the machine is kept for the next job."""
    return machine.state is MachineState.READY and not machine.claims


def _idle(machine: Machine, now: datetime) -> str:
    if not _is_warm(machine):
        return "-"
    return f"none for {format_duration(now - (machine.idle_since or machine.registered_at or now))}"


def _place(machine: Machine) -> tuple[str, str]:
    """Return instance type and zone, or how many of them were asked for."""
    keys: Sequence[OfferingKey] = [override.offering for override in machine.request.overrides]
    if machine.offering is not None:
        keys = [machine.offering]
    types = {each.instance_type for each in keys}
    zones = {each.zone or "?" for each in keys}
    what = types.pop() if len(types) == 1 else format_count(len(types), "type")
    return what, zones.pop() if len(zones) == 1 else format_count(len(zones), "zone")
