"""The table of machines, which fits 80 columns."""

from collections.abc import Iterable
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.machines.decision import MICRO_USD, MachineTotals
from relaunch.core.machines.machine import Machine
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_count, format_duration, format_price
from relaunch_cli.views.screen import plain_table, state_text

_WIDE = 110


def render_machines(machines: Iterable[Machine], now: datetime, width: int) -> Table:
    """Return the table of `machines`, with two lines or more for each; on a wide terminal with reasons."""
    is_wide = width >= _WIDE
    headings = ("MACHINE", "STATE", "OFFERING")
    table = plain_table(*headings, "JOBS", *(("REASON",) if is_wide else ()), no_wrap=headings)
    for machine in machines:
        age = format_duration(now - machine.created_at)
        cells: list[RenderableType] = [
            f"{machine.machine_id}\n{machine.instance_id or '-'}",
            state_text(machine.state.value).append(f"\n{age}"),
            _offering(machine),
            "\n".join(claim.job_id for claim in machine.claims) or "-",
        ]
        table.add_row(*cells, *((Text(one_line(machine.reason)),) if is_wide else ()))
    return table


def render_totals(totals: MachineTotals) -> str:
    """Return how many machines count against the limits of the stack, and what they cost."""
    usd_per_hour = totals.micro_usd_per_hour / MICRO_USD
    return f"{format_count(totals.machines, 'machine')}, ${format_price(usd_per_hour)}/h"


def _offering(machine: Machine) -> str:
    """Return what EC2 chose and its price; before that what was asked for, and the highest price of it."""
    chosen = machine.offering
    if chosen is not None:
        what, zone, limit = chosen.instance_type, chosen.zone or "?", ""
    else:
        asked = [override.offering for override in machine.request.overrides]
        types, zones = {each.instance_type for each in asked}, {each.zone or "?" for each in asked}
        what = types.pop() if len(types) == 1 else format_count(len(types), "type")
        zone = zones.pop() if len(zones) == 1 else format_count(len(zones), "zone")
        limit = "<="
    return f"{what} {machine.request.purchase}\n{zone} {limit}${format_price(machine.usd_per_hour)}"
