"""`relaunch definitions`: lists, shows and deletes the registered job definitions."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.core.triggers.schedules import has_schedules
from relaunch.usecases.arrange_schedules import plan_schedules, settle_schedules
from relaunch.usecases.arrange_upload_rules import plan_upload_rules, settle_upload_rules
from relaunch_cli import exit_codes
from relaunch_cli.completions import complete_definition
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, load_registered, raise_no_definition
from relaunch_cli.options import DEFAULT_STACK, Json, Stack, refuse_options_of_group
from relaunch_cli.terminal import one_line
from relaunch_cli.views.definitions import (
    describe_changed_rule,
    describe_changed_schedule,
    describe_owner,
    render_definitions,
)
from relaunch_cli.views.json_output.definitions import definition_json, deletion_json
from relaunch_cli.views.screen import (
    can_ask,
    noting_consequence,
    print_json,
    print_note,
    print_result,
    print_text,
    progress,
    stderr_console,
)

if TYPE_CHECKING:
    from relaunch.core.definitions.ownership import RegisteredDefinition
    from relaunch.core.triggers.schedules import ChangedSchedule
    from relaunch.core.triggers.upload_rules import ChangedRule
    from relaunch_cli.aws.connected import Connection

_UNSETTLED = "the definition is deleted, but not all rules of triggers are up to date: `relaunch apply` settles them"
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Name of a registered job definition.", autocompletion=complete_definition),
]


def list_(context: typer.Context, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the registered job definitions; show or delete one."""
    if context.invoked_subcommand is not None:
        refuse_options_of_group(context)
        return
    deps = connect(context, stack).deps
    with progress("reading the registered definitions"):
        registered = deps.definitions.list_registered()
    if as_json:
        print_json({"definitions": [definition_json(each) for each in registered]})
    elif registered:
        print_result(render_definitions(registered))
    else:
        print_note("no job definitions; `relaunch apply FILE` registers them")


def show(
    context: typer.Context,
    name: Name,
    *,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print a definition file, which `apply` takes.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show a job definition as it is registered, in the words of a definition file.

    Keys that are not shown have their defaults.
    """
    if as_yaml and as_json:
        raise CommandError("--yaml and --json cannot be combined")
    deps = connect(context, stack).deps
    with progress("reading the definition"):
        registered = load_registered(deps, name)
    if as_json:
        print_json(definition_json(registered))
        return
    if not as_yaml:
        print_text(f"# {describe_owner(registered.owner)}")
    print_text(write_definitions([registered.definition]).rstrip("\n"))


def delete(
    context: typer.Context,
    name: Name,
    *,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Delete a job definition: nothing starts a job of it any more.

    Jobs that were accepted go on, with the definition they were accepted with. The EventBridge rules that send uploads
    and other watched events to the stack become those of the definitions that are left.
    """
    connection = connect(context, stack)
    with progress("reading the definition"):
        registered = load_registered(connection.deps, name)
    if not is_sure:
        _confirm(registered)
    changed_rules, changed_schedules = _delete(registered, connection)
    if as_json:
        print_json(deletion_json(registered, changed_rules, changed_schedules))
        return
    print_text(f"{name} is deleted")
    for changed in changed_rules:
        print_note(describe_changed_rule(changed))
    for schedule in changed_schedules:
        print_note(describe_changed_schedule(schedule, connection.deps.clock.now()))


def _confirm(registered: "RegisteredDefinition") -> None:
    """Show what is to be deleted and ask for confirmation.

    Raises:
        CommandError: nobody confirmed, or nobody is there to ask.
    """
    name = registered.definition.name
    if not can_ask():
        hint = "--yes deletes without asking"
        raise CommandError(f"{name} would be deleted, and there is no terminal to ask: nothing was deleted", hint)
    stderr_console().print(render_definitions([registered]))
    try:
        is_confirmed = typer.confirm(one_line(f"Delete {name}? Its open jobs go on"), err=True)
    except typer.Abort:
        is_confirmed = False
    if not is_confirmed:
        raise CommandError("not confirmed: nothing was deleted", exit_code=exit_codes.CANCELLED)


def _delete(
    registered: "RegisteredDefinition", connection: "Connection"
) -> "tuple[tuple[ChangedRule, ...], tuple[ChangedSchedule, ...]]":
    """Delete a definition unless others have changed it meanwhile, then settle the rules of triggers and schedules.

    Returns how they change.
    """
    definitions = connection.deps.definitions
    rules = connection.upload_rules
    name = registered.definition.name
    with progress("deleting"):
        left = [each for each in definitions.list_definitions() if each.name != name]
        changed_rules = plan_upload_rules(left, rules)
        schedules = connection.schedules if has_schedules([registered.definition]) else None
        changed_schedules = plan_schedules(left, schedules) if schedules else ()
        if not definitions.delete_definition(name, version=registered.version):
            raise_no_definition(connection.deps, name)
    with progress("settling the rules of triggers (a minute if one is removed)"), noting_consequence(_UNSETTLED):
        settle_upload_rules(definitions, rules, connection.pause)
        if schedules:
            settle_schedules(definitions, schedules, connection.pause)
    return changed_rules, changed_schedules


group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
group.callback()(list_)
group.command()(show)
group.command()(delete)
