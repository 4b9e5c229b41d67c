"""`relaunch uninstall`."""

import time
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.deployment.interruption import is_wanted, says_how_to_go_on
from relaunch_cli.deployment.kept import find_kept
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.uninstallation import Uninstallation, is_complete
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.deployment import kept_json, render_kept, render_removal
from relaunch_cli.views.screen import can_ask, print_json, print_note, print_result


def uninstall(
    context: typer.Context,
    *,
    is_confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Remove it without a question.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Remove a deployment: cancel its jobs, wait for its machines, delete its stacks, and say what is kept.

    Buckets, images and the jobs table are kept; it says how each is deleted. Again, it goes on where it failed.
    """
    account = AwsAccount()
    removal = Uninstallation(stack, account.client, print_note, time.sleep)
    found = removal.find_stacks()
    if not found:
        raise CommandError(
            f"there is no stack {stack!r} in {account.region}, nor one of its machines or trainings",
            "",
            exit_codes.NOT_FOUND,
        )
    kept = find_kept(found, stack, account.client)
    if not as_json:
        print_result(render_removal(found, kept, account.id, account.region))
    if not is_confirmed and not can_ask():
        raise RefusedError(
            "nobody can be asked here, and nothing was removed: add --yes to remove it without a question"
        )
    if not (is_confirmed or is_wanted(f"Cancel its jobs and remove {stack}?")):
        raise RefusedError("nothing was removed", exit_codes.CANCELLED)
    with says_how_to_go_on(print_note):
        if any(each.name == stack and is_complete(each) for each in found):
            connection = connect(context, stack)
            removal.end_application(found, connection.deps, connection.upload_rules)
        removal.delete(removal.find_stacks())
    if as_json:
        print_json(kept_json(found, kept))
    else:
        print_result(render_kept(kept))
