"""apply, plan and definitions."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.access import connect, load_definition
from relaunch_cli.failures import CommandError, reported
from relaunch_cli.options import DEFAULT_STACK, Json, Stack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from relaunch.core.definition import JobDefinition
    from relaunch.core.snapshot import PriceOrigin
    from relaunch.ports import World
    from relaunch.usecases.plan_jobs import Plan
    from relaunch.usecases.register_definitions import Change

commands = typer.Typer()


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
    from relaunch_cli.screen import progress

    text = read_file(file)
    world = connect(context, stack).world
    with progress("reading the registered definitions"):
        registered = world.definitions.list_definitions()
    definitions = parse_file(text, file, registered)
    with progress("checking revisions and offerings"):
        plans = plan_jobs(definitions, world)
    refuse_impossible(plans, text, file)
    changes = compare_definitions(definitions, registered, prune=prune)
    remark_notices(definitions)
    if not dry_run:
        with progress("registering"):
            register_definitions(definitions, changes, world)
    show_changes(changes, plans, is_dry_run=dry_run, as_json=as_json)


def read_file(file: Path) -> str:
    """Read a definition file.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", exit_code=exit_codes.USAGE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def parse_file(text: str, file: Path, registered: "Sequence[JobDefinition]") -> "list[JobDefinition]":
    """Parse a definition file, and print all its problems if there are any.

    Raises:
        CommandError: with the number of problems.
    """
    from relaunch.adapters.catalogue import load_catalogue
    from relaunch.adapters.definition_file import DefinitionFileError, parse_definitions

    try:
        return parse_definitions(text, str(file), load_catalogue(), registered)
    except DefinitionFileError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        count = len(error.problems)
        raise CommandError(f"{file} has {count} problem{'s' if count > 1 else ''}: nothing was registered") from error


def refuse_impossible(plans: "Sequence[Plan]", text: str, file: Path) -> None:
    """Print what makes definitions impossible, each at its line.

    Raises:
        CommandError: if there is anything.
    """
    from relaunch.adapters.definition_file import definition_line

    bad = [plan for plan in plans if plan.problem]
    for plan in bad:
        name = plan.definition.name
        typer.echo(f"{file}:{definition_line(text, name)}:3: jobs.{name}: {plan.problem}", err=True)
    if bad:
        code = exit_codes.UNAVAILABLE if all(plan.is_unsatisfiable for plan in bad) else exit_codes.USAGE
        hint = f"`relaunch plan {file}` shows every offering and why it was rejected"
        count = f"{len(bad)} definition{'s' if len(bad) > 1 else ''}"
        raise CommandError(f"{count} of {file} could never run: nothing was registered", hint, code)


def remark_prices(origins: "Sequence[PriceOrigin]", now: "datetime") -> None:
    """Say where the prices are from and how old they are, and warn of stale ones."""
    from relaunch_cli.price_ages import describe_prices, stale_prices
    from relaunch_cli.screen import remark

    for text in (describe_prices(origins, now), stale_prices(origins, now)):
        if text:
            remark(text)


def remark_notices(definitions: "Sequence[JobDefinition]") -> None:
    """Say what teams should know that ask for a share of a GPU."""
    from relaunch.core.gpu_share import share_notices
    from relaunch_cli.screen import remark

    for definition in definitions:
        for notice in share_notices(definition):
            remark(f"{definition.name}: {notice}")


def show_changes(
    changes: "Sequence[tuple[str, Change]]", plans: "Sequence[Plan]", *, is_dry_run: bool, as_json: bool
) -> None:
    """Print what was changed, and where each definition would run now."""
    from relaunch.core.gpu_share import share_notices
    from relaunch_cli.screen import plain_table, remark, say, show
    from relaunch_cli.shapes import dump

    first = {plan.definition.name: plan.selection.kept[0] for plan in plans if plan.selection and plan.selection.kept}
    if as_json:
        notices = {plan.definition.name: list(share_notices(plan.definition)) for plan in plans}
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
def plan(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="DEFINITION|FILE", help="A registered definition, or a file.")],
    is_full: Annotated[bool, typer.Option("--all", help="Name every rejected offering.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show where a job would run now, and why not elsewhere.

    Nothing is launched. The exit status is 4 when nothing satisfies a definition right now.
    """
    from relaunch.usecases.plan_jobs import plan_jobs
    from relaunch_cli.price_ages import price_shapes
    from relaunch_cli.screen import progress, say
    from relaunch_cli.shapes import dump, plan_shape

    world = connect(context, stack).world
    definitions = _planned(target, world)
    with progress("reading prices and revisions"):
        plans = plan_jobs(definitions, world)
        now = world.clock.now()
        origins = world.offerings.price_origins(now)
    if as_json:
        say(dump({"plans": [plan_shape(each) for each in plans], "prices": price_shapes(origins, now)}))
    else:
        for index, each in enumerate(plans):
            show_plan(each, is_first=index == 0, is_full=is_full)
        remark_prices(origins, now)
        remark_notices(definitions)
    if any(each.selection is None for each in plans):
        raise typer.Exit(exit_codes.NOT_FOUND)
    if not all(each.selection and each.selection.kept for each in plans):
        raise typer.Exit(exit_codes.UNAVAILABLE)


def _planned(target: str, world: "World") -> "list[JobDefinition]":
    file = Path(target)
    if file.suffix in {".yaml", ".yml"} or file.is_file():
        return parse_file(read_file(file), file, world.definitions.list_definitions())
    return [load_definition(world, target)]


def show_plan(plan: "Plan", *, is_first: bool, is_full: bool) -> None:
    """Print the plan of one definition."""
    from rich.text import Text

    from relaunch.core.selection import explain_rejection
    from relaunch.core.selection_rows import explain_rows
    from relaunch_cli.screen import out, show
    from relaunch_cli.selection_tables import render_selection

    revision = f"{plan.revision.family}:{plan.revision.revision}" if plan.revision else plan.definition.task_definition
    title = Text(plan.definition.name, style="bold").append(f"  {revision}  {plan.at:%H:%M} UTC", style="dim")
    show(*(() if is_first else (Text(),)), title)
    if plan.selection is not None:
        rows = explain_rows(plan.selection)
        show(render_selection(rows, plan.selection.filter_counts, out().width, is_full=is_full))
        nothing = explain_rejection(plan.selection)
        if nothing and nothing != plan.problem:
            show(Text(f"\n{nothing}", style="yellow"))
    if plan.problem:
        show(Text(f"\n{plan.problem}" if plan.selection else plan.problem, style="red"))


@commands.command()
@reported
def definitions(context: typer.Context, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the registered job definitions."""
    from relaunch_cli.definition_tables import render_definitions
    from relaunch_cli.screen import progress, remark, say, show
    from relaunch_cli.shapes import definition_shape, dump

    world = connect(context, stack).world
    with progress("reading the registered definitions"):
        registered = world.definitions.list_definitions()
    if as_json:
        say(dump({"definitions": [definition_shape(each) for each in registered]}))
    elif registered:
        show(render_definitions(registered))
    else:
        remark("no job definition is registered: `relaunch apply FILE` registers them")
