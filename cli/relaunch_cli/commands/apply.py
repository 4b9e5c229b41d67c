"""`relaunch apply`."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.definition_files import parse_file, read_file
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relaunch.core.triggers.upload_rules import ChangedRule
    from relaunch.usecases.plan_jobs import Plan
    from relaunch.usecases.register_definitions import Change

_CONSEQUENCE = "nothing was registered"
_UNSETTLED = "the definitions are registered, but not all rules for uploads are up to date: apply again"


def apply(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Definition file, for example relaunch.yaml.")],
    is_dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and register nothing.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove registered definitions that are not in FILE.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Validate the job definitions of FILE and register them.

    Nothing is registered unless all checks pass: keys and values, overlaps between triggers and checkpoints, ACTIVE
    revisions and containers of the task definitions, and that some offering satisfies every job. Jobs that were
    accepted before keep the definition they were accepted with. The EventBridge rules that send uploads to the stack
    become those of all registered definitions.
    """
    from relaunch.usecases.arrange_upload_rules import plan_upload_rules, settle_upload_rules, widen_upload_rules
    from relaunch.usecases.plan_jobs import plan_jobs
    from relaunch.usecases.register_definitions import compare_definitions, register_definitions
    from relaunch_cli.views.screen import print_note, progress

    text = read_file(file)
    parse_file(text, file, consequence=_CONSEQUENCE)
    connection = connect(context, stack)
    deps, rules = connection.deps, connection.upload_rules
    with progress("reading the registered definitions"):
        registered = deps.definitions.list_definitions()
    definitions = parse_file(text, file, registered, consequence=_CONSEQUENCE)
    with progress("checking revisions and offerings"):
        plans = plan_jobs(definitions, deps)
    _check_plans(plans, text, file)
    changes = compare_definitions(definitions, registered, prune=prune)
    given = {each.name for each in definitions}
    kept = [each for each in registered if each.name not in given and not prune]
    with progress("reading the rules for uploads"):
        changed_rules = plan_upload_rules([*definitions, *kept], rules)
    for plan in plans:
        for notice in plan.notices:
            print_note(f"{plan.definition.name}: {notice}")
    if not is_dry_run:
        with progress("putting the rules for uploads"), _noting_consequence(_CONSEQUENCE):
            widen_upload_rules([*definitions, *kept], rules, connection.pause)
        with progress("registering"):
            register_definitions(definitions, changes, deps)
        with progress("settling the rules for uploads (a minute if one is removed)"), _noting_consequence(_UNSETTLED):
            settle_upload_rules(deps.definitions, rules, connection.pause)
    _print_changes(changes, changed_rules, plans, is_dry_run=is_dry_run, as_json=as_json)


@contextmanager
def _noting_consequence(consequence: str) -> "Iterator[None]":
    """Print the consequence of an error, or of Ctrl-C, beside it."""
    from relaunch_cli.views.screen import print_note

    try:
        yield
    except BaseException:
        print_note(consequence)
        raise


def _check_plans(plans: "Sequence[Plan]", text: str, file: Path) -> None:
    """Print the problems of definitions that could never run, each with its line, and raise a CommandError."""
    from relaunch.adapters.definition_file.parser import definition_line

    bad = [plan for plan in plans if plan.problem]
    for plan in bad:
        name = plan.definition.name
        echo(f"{file}:{definition_line(text, name)}:3: jobs.{name}: {plan.problem}", err=True)
    if bad:
        code = exit_codes.UNAVAILABLE if all(plan.is_unsatisfiable for plan in bad) else exit_codes.USAGE
        hint = f"`relaunch plan {file}` shows every offering and why it was rejected"
        count = f"{len(bad)} definition{'s' if len(bad) > 1 else ''}"
        raise CommandError(f"{count} of {file} could never run: {_CONSEQUENCE}", hint, code)


def _print_changes(
    changes: "Sequence[tuple[str, Change]]",
    changed_rules: "Sequence[ChangedRule]",
    plans: "Sequence[Plan]",
    *,
    is_dry_run: bool,
    as_json: bool,
) -> None:
    from relaunch_cli.views.definitions import describe_changed_rule, render_changes
    from relaunch_cli.views.json_output.definitions import changes_json
    from relaunch_cli.views.screen import print_json, print_note, print_result

    if as_json:
        print_json(changes_json(changes, changed_rules, plans, is_dry_run=is_dry_run))
        return
    print_result(render_changes(changes, plans))
    for changed in changed_rules:
        print_note(describe_changed_rule(changed))
    if is_dry_run:
        print_note("dry run: nothing was registered")
