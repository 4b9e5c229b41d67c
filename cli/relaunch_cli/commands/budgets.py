"""`relaunch budgets`: lists, sets and removes what jobs may cost."""

from datetime import UTC
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.jobs.budgets import Budget, month_of
from relaunch.core.jobs.cost_report import KEPT
from relaunch_cli import exit_codes
from relaunch_cli.budget_options import FORMS, NONE, nearest_scopes, read_limit, read_scope, sum_spent
from relaunch_cli.completions import complete_budget, complete_scope
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError, did_you_mean
from relaunch_cli.lookup import connect, load_definition
from relaunch_cli.options import DEFAULT_STACK, Json, Stack, refuse_options_of_group
from relaunch_cli.views.budgets import describe_consequences, render_budgets
from relaunch_cli.views.json_output.budgets import budget_json
from relaunch_cli.views.screen import print_json, print_note, print_result, print_text, progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from relaunch.ports import Dependencies
    from relaunch_cli.views.budgets import SpentBy

MOST = 500
"""How many budgets may have a limit: all of them are read for every launch."""


def list_(context: typer.Context, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the budgets: what jobs may cost and how much is spent or reserved; set or remove one."""
    if context.invoked_subcommand is not None:
        refuse_options_of_group(context)
        return
    deps = connect(context, stack).deps
    month = month_of(deps.clock.now())
    with progress("reading the budgets"):
        found = [each for each in deps.budgets.load_budgets() if _is_limited(each)]
        spent = _load_spent_by(found, month, deps)
    if as_json:
        print_json({"month": month, "budgets": [budget_json(each, month, spent) for each in found]})
    elif found:
        print_result(render_budgets(found, month, spent))
    else:
        print_note(
            "no budget has a limit; `relaunch budgets set stack --monthly USD` limits what all jobs cost a month"
        )


def set_(
    context: typer.Context,
    scope: Annotated[str, typer.Argument(metavar="SCOPE", help=f"{FORMS}.", autocompletion=complete_scope)],
    *,
    monthly: Annotated[
        str | None, typer.Option(metavar="USD", help=f"What its jobs may cost a month (UTC); {NONE}: no limit.")
    ] = None,
    total: Annotated[
        str | None, typer.Option(metavar="USD", help=f"What its jobs may cost in all; {NONE}: no limit.")
    ] = None,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Set what the jobs of a scope may cost; a limit that is not given stays as it is.

    A budget that is new begins with what its jobs have cost in the last two years, so that it can be set at any day of
    a month.
    """
    if monthly is None and total is None:
        raise CommandError("give --monthly or --total", f"an amount of USD, or {NONE} for no limit")
    given = {
        name: read_limit(f"--{name}", text)
        for name, text in (("monthly", monthly), ("total", total))
        if text is not None
    }
    scope = read_scope(scope)
    deps = connect(context, stack).deps
    with progress("setting the budget"):
        before = _check(scope, given, deps)
        known = before or Budget(scope)
        limits = given.get("monthly", known.monthly_usd), given.get("total", known.total_usd)
        spent = {} if before else _load_spent(scope, deps)
        budget = _write(known, *limits, spent, deps)
        month = month_of(deps.clock.now())
        paid = _load_spent_by([budget], month, deps)
    if as_json:
        print_json(budget_json(budget, month, paid))
    elif not _is_limited(budget):
        print_text(f"the budget of {scope} has no limit any more")
    else:
        print_result(render_budgets([budget], month, paid))
    for consequence in describe_consequences(before, budget, month):
        print_note(consequence)


def remove(
    context: typer.Context,
    scope: Annotated[
        str, typer.Argument(metavar="SCOPE", help="As `relaunch budgets` lists it.", autocompletion=complete_budget)
    ],
    *,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Remove both limits of a budget; jobs go on counting what they cost in it, should it be set again."""
    deps = connect(context, stack).deps
    before = _require(scope, deps.budgets.load_budgets())
    month = month_of(deps.clock.now())
    if not is_sure:
        confirm(f"Remove the budget of {scope}? Its jobs may cost anything then.")
    _write(before, None, None, {}, deps)
    if as_json:
        print_json({"removed": budget_json(before, month, _load_spent_by([before], month, deps))})
    else:
        print_text(f"the budget of {scope} was removed; jobs that wait for it look again within ten minutes")


def _write(
    before: Budget,
    monthly_usd: float | None,
    total_usd: float | None,
    spent: "Mapping[str, float]",
    deps: "Dependencies",
) -> Budget:
    """Return the budget with these limits.

    Raises:
        CommandError: somebody has set others since they were read.
    """
    is_set = deps.budgets.set_budget(before, monthly_usd, total_usd, spent)
    budget = next(each for each in deps.budgets.load_budgets() if each.scope == before.scope)
    if is_set or (budget.monthly_usd, budget.total_usd) == (monthly_usd, total_usd):
        return budget
    limits = (("a month", budget.monthly_usd), ("in all", budget.total_usd))
    now = " and ".join(f"${usd:,.2f} {period}" for period, usd in limits if usd is not None) or "no limit"
    raise CommandError(
        f"somebody else has set the budget of {before.scope} meanwhile: it is {now}, and was not changed",
        "run the command again if that is not what you want",
    )


def _is_limited(budget: Budget) -> bool:
    return budget.monthly_usd is not None or budget.total_usd is not None


def _check(scope: str, given: "Mapping[str, float | None]", deps: "Dependencies") -> Budget | None:
    """Return the budget as it is, None if there is none.

    Raises:
        CommandError: there is no such definition, no budget whose limit is to go, or there are too many budgets.
    """
    budgets = deps.budgets.load_budgets()
    before = next((each for each in budgets if each.scope == scope), None)
    if before is not None and _is_limited(before):
        return before
    if all(limit is None for limit in given.values()):
        _require(scope, budgets)
    kind, _, name = scope.partition("/")
    if kind == "definition":
        load_definition(deps, name)
    if sum(map(_is_limited, budgets)) >= MOST:
        raise CommandError(
            f"{MOST} budgets have a limit, and there may be no more",
            "`relaunch budgets` lists them, `relaunch budgets remove SCOPE` removes one",
        )
    return before


def _require(scope: str, budgets: "Iterable[Budget]") -> Budget:
    """Return the budget of a scope.

    Raises:
        CommandError: it has no limit.
    """
    limited = {each.scope: each for each in budgets if _is_limited(each)}
    if scope not in limited:
        hint = did_you_mean(scope, limited) or "`relaunch budgets` lists them"
        raise CommandError(f"there is no budget of {scope!r}", hint, exit_codes.NOT_FOUND)
    return limited[scope]


def _load_spent(scope: str, deps: "Dependencies") -> "Mapping[str, float]":
    """Return what the jobs of a scope have cost, by month; note a scope whose jobs have cost nothing."""
    today = deps.clock.now().astimezone(UTC).date()
    costs = deps.jobs.load_costs(today - KEPT, today)
    spent = sum_spent(scope, costs)
    kind = scope.partition("/")[0]
    if not spent and kind in ("repository", "caller"):
        hint = nearest_scopes(scope, costs) or f"`relaunch costs --by {kind}` lists those whose jobs have"
        print_note(f"no job of {scope} has cost anything yet: {hint}")
    return spent


group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
group.callback()(list_)
group.command("set")(set_)
group.command()(remove)


def _load_spent_by(budgets: "Iterable[Budget]", month: str, deps: "Dependencies") -> "SpentBy":
    """Return what the jobs of each budget have cost, of the month alone where no budget has a limit in all."""
    known = list(budgets)
    if not known:
        return {}
    today = deps.clock.now().astimezone(UTC).date()
    has_total = any(each.total_usd is not None for each in known)
    costs = deps.jobs.load_costs(today - KEPT if has_total else today.replace(day=1), today)
    by_month = {each.scope: sum_spent(each.scope, costs) for each in known}
    return {scope: {"": sum(spent.values()), month: spent.get(month, 0.0)} for scope, spent in by_month.items()}
