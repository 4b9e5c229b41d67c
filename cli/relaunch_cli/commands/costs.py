"""`relaunch costs`."""

from datetime import UTC
from typing import Annotated

import typer

from relaunch.core.jobs.cost_report import GROUPS, CostRow, sum_costs
from relaunch_cli.cost_options import parse_groups, parse_period
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.running_costs import MOST, load_running_costs
from relaunch_cli.value_completions import complete_cost_group
from relaunch_cli.views.costs import describe_costs, print_csv, render_costs
from relaunch_cli.views.json_output.costs import costs_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress


def costs(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help=f"Group by {', '.join(GROUPS)}; repeatable. By definition, if nothing is said.",
            autocompletion=complete_cost_group,
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option(metavar="DATE", help="First day (UTC), or a month: 2026-11. This month, if nothing is said."),
    ] = "",
    until: Annotated[
        str, typer.Option(metavar="DATE", help="Last day (UTC), or a month. Today, if nothing is said.")
    ] = "",
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, for a spreadsheet.")] = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show what jobs cost, by definition, repository, caller, instance type, day or month.

    What was paid is kept for two years, longer than the jobs. What runs now is included, at the price it began with.
    """
    groups = parse_groups(by or ["definition"])
    if as_json and as_csv:
        raise CommandError("--json and --csv cannot be given together", "give one of them")
    deps = connect(context, stack).deps
    now = deps.clock.now()
    first, last = parse_period(since, until, now.astimezone(UTC).date())
    with progress("reading costs"):
        paid = deps.jobs.load_costs(first, last)
        unpaid, is_cut = load_running_costs(deps, now)
    running = [each.within(first, last) for each in unpaid]
    rows = sum_costs(paid, running, groups)
    total = next(iter(sum_costs(paid, running, ())), CostRow(()))
    if as_json:
        print_json(costs_json(rows, total, groups, first, last, is_cut=is_cut))
        return
    if as_csv:
        print_csv(rows, groups)
    elif rows:
        print_result(render_costs(rows, total, groups))
        print_note(describe_costs(total, first, last))
    else:
        print_note(f"no costs from {first} to {last}: no machine was paid for a job, and no task ran")
    if is_cut:
        print_note(f"of what runs only {MOST:,} machines and {MOST:,} tasks elsewhere were read: the rest is missing")
