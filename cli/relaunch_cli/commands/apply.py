"""`relaunch apply`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.adapters.definition_file.parser import problem_mark
from relaunch.core.checks import Verdict
from relaunch.core.selection.selection import explain_rejection
from relaunch.core.triggers.schedules import has_schedules
from relaunch.ports import PortError
from relaunch.usecases.arrange_schedules import add_schedules, are_left_behind, plan_schedules, settle_schedules
from relaunch.usecases.arrange_upload_rules import plan_upload_rules, settle_upload_rules, widen_upload_rules
from relaunch.usecases.plan_jobs import plan_jobs, refuse_unmeasured_deadlines
from relaunch.usecases.register_definitions import Change, OtherOwnerError, compare_definitions, register_definitions
from relaunch_cli import exit_codes
from relaunch_cli.definition_files import find_owner, parse_file, read_file
from relaunch_cli.errors import CommandError, NotConnectedError
from relaunch_cli.first_quotas import with_first_quotas
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.terminal import echo, one_line
from relaunch_cli.views.definitions import (
    describe_changed_rule,
    describe_changed_schedule,
    describe_take_over,
    render_changes,
    render_definitions,
)
from relaunch_cli.views.json_output.definitions import changes_json
from relaunch_cli.views.screen import (
    can_ask,
    noting_consequence,
    print_json,
    print_note,
    print_result,
    progress,
    stderr_console,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
    from relaunch.core.triggers.schedules import ChangedSchedule
    from relaunch.core.triggers.upload_rules import ChangedRule
    from relaunch.ports import Dependencies, Schedules, Targets
    from relaunch.usecases.plan_jobs import Plan
    from relaunch.usecases.register_definitions import DefinitionChange
    from relaunch_cli.aws.connected import Connection

_CONSEQUENCE = "nothing was registered"
_INCOMPLETE = "perhaps not all definitions are registered: apply again"
_UNSETTLED = "the definitions are registered, but not all rules of triggers are up to date: apply again"
_UNSETTLED_SCHEDULES = "the definitions are registered, but not all schedules are up to date: apply again"


def apply(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Definition file, for example relaunch.yaml; - is standard input.")
    ],
    *,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and register nothing; without AWS: plan FILE --offline.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove definitions registered from FILE that are not in it any more.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Replace, and with --prune remove, definitions of other owners, too.")
    ] = False,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before definitions are removed.")] = False,
    is_unchecked: Annotated[
        bool,
        typer.Option("--unchecked", help="Do not look whether the buckets and repositories of triggers are there."),
    ] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Validate the job definitions of FILE and register them.

    Nothing is registered unless all checks pass: keys and values, overlaps between triggers and checkpoints, ACTIVE
    revisions and containers of the task definitions, that some offering satisfies every job, and that what triggers
    watch is there and tells of itself (buckets with EventBridge switched on, repositories). Jobs that were
    accepted before keep the definition they were accepted with. A definition belongs to the file that it was registered
    from. The EventBridge rules that send uploads and other watched events to the stack become those of all registered
    definitions.
    """
    text = read_file(file)
    parse_file(text, file, consequence=_CONSEQUENCE)
    connection = connect(context, stack)
    deps = _connect(connection, file, is_dry_run=is_dry_run)
    with progress("reading the registered definitions"):
        owner = find_owner(file, connection.caller)
        registered = deps.definitions.list_registered()
    definitions = parse_file(text, file, [each.definition for each in registered], consequence=_CONSEQUENCE)
    changes = _compare(definitions, registered, owner, prune=prune, take_over=take_over)
    with progress("checking revisions and offerings"):
        plans = _plan(definitions, connection)
    _check_plans(plans, deps.targets, text, file)
    if not is_unchecked:
        _check_watched(definitions, connection)
    changed = {each.name for each in changes}
    unlisted = [each.definition for each in registered if each.definition.name not in changed]
    removed = [each.before for each in changes if each.change is Change.REMOVED and each.before]
    schedules = _schedules_of([*definitions, *(each.definition for each in registered)], connection)
    sources = _plan_sources([*definitions, *unlisted], connection, schedules)
    _note_plans(plans, file, connection)
    _note_owners(changes, unlisted if prune else ())
    if not is_dry_run:
        _confirm_removal(removed, is_sure=is_sure)
        _register(changes, owner, [*definitions, *unlisted], connection, schedules)
    now = deps.clock.now()
    _print_changes(changes, sources, plans, now, is_dry_run=is_dry_run, as_json=as_json)


def _connect(connection: "Connection", file: Path, *, is_dry_run: bool) -> "Dependencies":
    """Return the dependencies of the stack.

    Raises:
        CommandError: it is not a stack of Relaunch.
        NotConnectedError: there is no stack to connect to; of a dry run the hint says how a file is checked without.
    """
    try:
        return connection.deps
    except NotConnectedError as error:
        if not is_dry_run:
            raise
        hint = f"{error.hint}; `relaunch plan {file} --offline` checks it without AWS"
        raise NotConnectedError(error.message, hint, error.exit_code) from error


def _plan(definitions: "Sequence[JobDefinition]", connection: "Connection") -> "list[Plan]":
    plans = refuse_unmeasured_deadlines(plan_jobs(definitions, connection.deps))
    return with_first_quotas(plans, connection.deps, connection)


def _plan_sources(
    definitions: "Sequence[JobDefinition]", connection: "Connection", schedules: "Schedules | None"
) -> "tuple[Sequence[ChangedRule], Sequence[ChangedSchedule]]":
    """Return how rules and schedules differ from those that the definitions need."""
    with progress("reading the rules of triggers"):
        rules = plan_upload_rules(definitions, connection.upload_rules)
        return rules, plan_schedules(definitions, schedules) if schedules else ()


def _schedules_of(definitions: "Sequence[JobDefinition]", connection: "Connection") -> "Schedules | None":
    """Return the stack's schedules; None if no definition has one and none was left behind."""
    schedules = connection.schedules
    are_needed = has_schedules(definitions) or are_left_behind(schedules, lambda line: echo(line, err=True))
    return schedules if are_needed else None


def _register(
    changes: "Sequence[DefinitionChange]",
    owner: "Owner",
    definitions: "Sequence[JobDefinition]",
    connection: "Connection",
    schedules: "Schedules | None",
) -> None:
    """Register the changes, after which these are the definitions, and arrange rules and schedules around that."""
    deps = connection.deps
    rules = connection.upload_rules
    with progress("putting the rules of triggers"), noting_consequence(_CONSEQUENCE):
        widen_upload_rules(definitions, rules, connection.pause)
        if schedules:
            add_schedules(definitions, schedules, connection.pause)
    with progress("registering"), noting_consequence(_INCOMPLETE):
        register_definitions(changes, owner, deps)
    with progress("settling the rules of triggers (a minute if one is removed)"), noting_consequence(_UNSETTLED):
        settle_upload_rules(deps.definitions, rules, connection.pause)
    if schedules:
        with progress("settling the schedules"), noting_consequence(_UNSETTLED_SCHEDULES):
            settle_schedules(deps.definitions, schedules, connection.pause)


def _compare(
    definitions: "Sequence[JobDefinition]",
    registered: "Sequence[RegisteredDefinition]",
    owner: "Owner",
    *,
    prune: bool,
    take_over: bool,
) -> "list[DefinitionChange]":
    try:
        return compare_definitions(definitions, registered, owner, prune=prune, take_over=take_over)
    except OtherOwnerError as error:
        for each in error.registered:
            by = each.owner.caller if each.owner else ""
            echo(f"{each.definition.name} is registered from {each.owner}, which {by} applied", err=True)
        hint = "give it another name, apply the file it belongs to, or take it over: --take-over"
        message = f"{owner}, applied by {owner.caller}, has definitions of other owners: {_CONSEQUENCE}"
        raise CommandError(message, hint) from error


def _note_plans(plans: "Sequence[Plan]", file: Path, connection: "Connection") -> None:
    """Print what the plans of definitions have to say, and which receivers of notices there are not."""
    for plan in plans:
        for notice in plan.notices:
            print_note(f"{plan.definition.name}: {notice}")
        if plan.selection is not None and (rejection := explain_rejection(plan.selection)):
            why = f"`relaunch plan {file} --rejected` shows why each offering is left out"
            print_note(f"{plan.definition.name}: a job would wait: {rejection}; {why}")
    _note_receivers([plan.definition for plan in plans], connection)


def _note_owners(changes: "Sequence[DefinitionChange]", left: "Sequence[JobDefinition]") -> None:
    """Print whose definitions are taken over, and which ones --prune leaves to their owners."""
    for each in changes:
        if each.is_taken_over:
            print_note(describe_take_over(each))
    if left:
        names = ", ".join(each.name for each in left)
        print_note(f"not removed, as they were not registered from this file: {names}; --take-over removes them, too")


def _note_receivers(definitions: "Sequence[JobDefinition]", connection: "Connection") -> None:
    """Print which receivers of notices are named that there are not, and how to add them."""
    named = {(each.name, route.receiver) for each in definitions for route in each.notices}
    if not named:
        return
    try:
        known = connection.notices.store.names()
    except CommandError as error:
        print_note(f"notices: {error}: {error.hint}")
        return
    except PortError as error:
        print_note(f"notices: whether there are receivers of these names is not checked: {error}")
        return
    for definition, receiver in sorted(named):
        if receiver not in known:
            print_note(f"{definition}: notices: there is no receiver {receiver}: relaunch notices add {receiver}")


def _confirm_removal(removed: "Sequence[RegisteredDefinition]", *, is_sure: bool) -> None:
    """Show what is to be removed and ask for confirmation.

    Raises:
        CommandError: nobody confirmed, or nobody is there to ask.
    """
    if not removed or is_sure:
        return
    names = ", ".join(each.definition.name for each in removed)
    if not can_ask():
        hint = "--yes removes without asking, --dry-run shows all changes"
        raise CommandError(f"--prune would remove {names}, and there is no terminal to ask: {_CONSEQUENCE}", hint)
    stderr_console().print(render_definitions(removed))
    try:
        is_confirmed = typer.confirm(one_line(f"Remove {names}?"), err=True)
    except typer.Abort:
        raise CommandError(f"not confirmed: {_CONSEQUENCE}", exit_code=exit_codes.CANCELLED) from None
    if not is_confirmed:
        raise CommandError(f"{_CONSEQUENCE}, and nothing removed", exit_code=exit_codes.CANCELLED)


def _check_plans(plans: "Sequence[Plan]", targets: "Targets", text: str, file: Path) -> None:
    """Print the problems of definitions that could never run, each with its line, and raise a CommandError."""
    problems = {
        each.name: plan.problem or targets.problem(each.target, each.checkpoint_uri)
        for plan in plans
        for each in (plan.definition,)
    }
    bad = [plan for plan in plans if problems[plan.definition.name]]
    for plan in bad:
        name = plan.definition.name
        mark = problem_mark(text, name, problems[name])
        echo(f"{file}:{mark.line}:{mark.column}: jobs.{name}: {problems[name]}", err=True)
    if bad:
        code = exit_codes.UNAVAILABLE if all(plan.is_unsatisfiable for plan in bad) else exit_codes.USAGE
        has_rejected = any(plan.is_unsatisfiable and plan.selection is not None for plan in bad)
        hint = f"`relaunch plan {file}` shows every offering and why it was rejected" if has_rejected else ""
        count = f"{len(bad)} definition{'s' if len(bad) > 1 else ''}"
        raise CommandError(f"{count} of {file} could never run: {_CONSEQUENCE}", hint, code)


def _check_watched(definitions: "Sequence[JobDefinition]", connection: "Connection") -> None:
    """Print what triggers watch in vain, each with the command that mends it, and raise a CommandError."""
    with progress("looking at what triggers watch"):
        checks = connection.check_watched(definitions)
    for each in checks:
        if each.verdict is Verdict.UNKNOWN:
            print_note(f"{each.name} is not checked: {each.text}; {each.to_do}")
    bad = [each for each in checks if each.verdict is Verdict.PROBLEM]
    for each in bad:
        echo(f"{each.name}: {each.text}", err=True)
        echo(f"    {each.to_do}", err=True, is_whole=True)
    if bad:
        count = f"{len(bad)} trigger{'s' if len(bad) > 1 else ''}"
        hint = "mend it with the commands above, or register all the same with --unchecked"
        raise CommandError(f"{count} could never start a job: {_CONSEQUENCE}", hint)


def _print_changes(
    changes: "Sequence[DefinitionChange]",
    sources: "tuple[Sequence[ChangedRule], Sequence[ChangedSchedule]]",
    plans: "Sequence[Plan]",
    now: "datetime",
    *,
    is_dry_run: bool,
    as_json: bool,
) -> None:
    if as_json:
        print_json(changes_json(changes, *sources, plans, is_dry_run=is_dry_run))
        return
    print_result(render_changes(changes, plans))
    changed_rules, changed_schedules = sources
    for changed in changed_rules:
        print_note(describe_changed_rule(changed))
    for schedule in changed_schedules:
        print_note(describe_changed_schedule(schedule, now))
    if is_dry_run:
        print_note("dry run: nothing was registered")
