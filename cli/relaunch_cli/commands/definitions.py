"""apply and definitions."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.definition_files import parse_file, read_file, remark_notices
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.usecases.plan_jobs import Plan
    from relaunch.usecases.register_definitions import Change

commands = typer.Typer()
_REFUSED = "nothing was registered"


@commands.command()
@reported
def apply(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The definition file, for example relaunch.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and register nothing.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove registered definitions that are not in FILE.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Check the job definitions of FILE and register them.

    Nothing is registered unless everything is right: keys and values, overlaps between triggers and checkpoints,
    the task definitions' ACTIVE revisions and containers, and that some offering satisfies every job.
    Jobs that were accepted before keep the definition they were accepted with.
    """
    from relaunch.usecases.plan_jobs import plan_jobs
    from relaunch.usecases.register_definitions import compare_definitions, register_definitions
    from relaunch_cli.views.screen import progress

    text = read_file(file)
    parse_file(text, file, so=_REFUSED)
    deps = connect(context, stack).deps
    with progress("reading the registered definitions"):
        registered = deps.definitions.list_definitions()
    definitions = parse_file(text, file, registered, so=_REFUSED)
    with progress("checking revisions and offerings"):
        plans = plan_jobs(definitions, deps)
    refuse_impossible(plans, text, file)
    changes = compare_definitions(definitions, registered, prune=prune)
    for plan in plans:
        remark_notices(plan, plan.definition.name)
    if not dry_run:
        with progress("registering"):
            register_definitions(definitions, changes, deps)
    show_changes(changes, plans, is_dry_run=dry_run, as_json=as_json)


def refuse_impossible(plans: "Sequence[Plan]", text: str, file: Path) -> None:
    """Print what makes definitions impossible, each at its line.

    Raises:
        CommandError: if there is anything.
    """
    from relaunch.adapters.definition_file.parser import definition_line

    bad = [plan for plan in plans if plan.problem]
    for plan in bad:
        name = plan.definition.name
        typer.echo(f"{file}:{definition_line(text, name)}:3: jobs.{name}: {plan.problem}", err=True)
    if bad:
        code = exit_codes.UNAVAILABLE if all(plan.is_unsatisfiable for plan in bad) else exit_codes.USAGE
        hint = f"`relaunch plan {file}` shows every offering and why it was rejected"
        count = f"{len(bad)} definition{'s' if len(bad) > 1 else ''}"
        raise CommandError(f"{count} of {file} could never run: {_REFUSED}", hint, code)


def show_changes(
    changes: "Sequence[tuple[str, Change]]", plans: "Sequence[Plan]", *, is_dry_run: bool, as_json: bool
) -> None:
    """Print what was changed, and where each definition would run now."""
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import plain_table, remark, say, show

    first = {plan.definition.name: plan.selection.kept[0] for plan in plans if plan.selection and plan.selection.kept}
    if as_json:
        notices = {plan.definition.name: list(plan.notices) for plan in plans}
        shapes = [{"name": name, "change": change.value, "notices": notices.get(name, [])} for name, change in changes]
        say(dump({"is_dry_run": is_dry_run, "definitions": shapes}))
        return
    table = plain_table("DEFINITION", "CHANGE", "WOULD RUN NOW ON")
    for name, change in changes:
        offering = first.get(name)
        price = offering.expected_usd_per_hour if offering else None
        shown = f" at ${price:.4f}/h" if price is not None else ""
        table.add_row(name, change.value, f"{offering.key}{shown}" if offering else "nothing right now")
    show(table)
    if is_dry_run:
        remark("dry run: nothing was registered")


@commands.command()
@reported
def definitions(context: typer.Context, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the registered job definitions."""
    from relaunch_cli.views.definitions import render_definitions
    from relaunch_cli.views.json_output import definition_shape, dump
    from relaunch_cli.views.screen import progress, remark, say, show

    deps = connect(context, stack).deps
    with progress("reading the registered definitions"):
        registered = deps.definitions.list_definitions()
    if as_json:
        say(dump({"definitions": [definition_shape(each) for each in registered]}))
    elif registered:
        show(render_definitions(registered))
    else:
        remark("no job definition is registered: `relaunch apply FILE` registers them")
