"""`relaunch costs`."""

import calendar
from collections.abc import Sequence
from datetime import UTC, date
from typing import Annotated

import typer

from relaunch.core.jobs.cost_report import GROUPS, KEPT, CostRow, sum_costs
from relaunch_cli.errors import CommandError, did_you_mean
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
    groups = _parse_groups(by or ["definition"])
    if as_json and as_csv:
        raise CommandError("--json and --csv cannot be given together", "give one of them")
    deps = connect(context, stack).deps
    now = deps.clock.now()
    first, last = _parse_period(since, until, now.astimezone(UTC).date())
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


def _parse_groups(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in GROUPS:
            hint = did_you_mean(name, GROUPS) or f"costs are grouped by {', '.join(GROUPS)}"
            raise CommandError(f"--by: {name!r} is none of the groups of costs", hint)
    return tuple(dict.fromkeys(names))


def _parse_period(since: str, until: str, today: date) -> tuple[date, date]:
    """Return the first and the last day; there are no costs after today, and none from before they are kept.

    Raises:
        CommandError: there are no such days, or no costs of them. Each month is a query: they are not any number.
    """
    first = _parse_day("--since", since, is_last=False) if since else today.replace(day=1)
    kept_since = today - KEPT
    if first < kept_since:
        raise CommandError(f"--since: costs of {first} are not kept", f"give a day from {kept_since} on")
    newest = max(today, first)
    last = min(_parse_day("--until", until, is_last=True), newest) if until else newest
    if last < first:
        raise CommandError(f"--until: {last} is before {first}", "give a day that is not before --since")
    return first, last


def _parse_day(option: str, text: str, *, is_last: bool) -> date:
    """Return a day, or the first or last one of a month.

    Raises:
        CommandError: it is neither.
    """
    try:
        if len(text) > len("2026-11"):
            return date.fromisoformat(text)
        first = date.fromisoformat(f"{text}-01")
    except ValueError as error:
        example = "give one like 2026-11-29 or 2026-11"
        raise CommandError(f"{option}: {text!r} is neither a day nor a month", example) from error
    return first.replace(day=calendar.monthrange(first.year, first.month)[1]) if is_last else first
