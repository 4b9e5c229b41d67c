"""`relaunch dead-letters`."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from relaunch.core.messages.dead_letter import explain_dead_letter
from relaunch.usecases.dead_letters import (
    NoSourceQueueError,
    UnknownDeadLetterError,
    drop_dead_letter,
    list_dead_letters,
    redrive_all,
    redrive_dead_letter,
    show_dead_letter,
)
from relaunch_cli import exit_codes
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.dead_letters import render_message, render_messages, shorten_reason
from relaunch_cli.views.json_output.dead_letters import full_message_json, listings_json, message_json
from relaunch_cli.views.screen import print_json, print_note, print_result, print_text, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.messages.dead_letter import DeadLetterMessage
    from relaunch.usecases.dead_letters import QueueListing
    from relaunch_cli.aws.connected import Connection

_Result = TypeVar("_Result")
_Queue = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Only this dead-letter queue, as named by `list`.")
]
_MessageId = Annotated[str, typer.Argument(metavar="ID", help="ID of the message, or its first characters.")]


def list_(
    context: typer.Context,
    queue: _Queue = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of messages per queue.")
    ] = 100,
    *,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List messages in the dead-letter queues, with the reasons.

    Messages stay in the queue. SQS returns samples: run it again if some are missing.
    """
    connection = connect(context, stack)
    with progress("reading the dead-letter queues"):
        listings = _call(lambda: list_dead_letters(connection.dead_letters, queue, limit))
    if as_json:
        print_json(listings_json(listings))
    else:
        _print_listings(listings, connection)


def _print_listings(listings: "Sequence[QueueListing]", connection: "Connection") -> None:
    messages = [message for listing in listings for message in listing.messages]
    if messages:
        print_result(render_messages(messages, connection.deps.clock.now()))
    for listing in listings:
        if listing.about > len(listing.messages):
            print_note(
                f"{listing.queue.name}: SQS returned {len(listing.messages)} of about {listing.about} messages: "
                "run it again, or raise --limit"
            )
    if not messages and not any(listing.about for listing in listings):
        print_note("no dead-letter messages")


def show(
    context: typer.Context, message_id: _MessageId, *, as_json: Json = False, stack: Stack = DEFAULT_STACK
) -> None:
    """Show a message with its attributes and body."""
    connection = connect(context, stack)
    with progress("looking for the message"):
        message = _call(lambda: show_dead_letter(message_id, connection.dead_letters))
    if as_json:
        print_json(full_message_json(message))
        return
    print_result(render_message(message, connection.deps.clock.now()))
    print_text(message.body)


def redrive(
    context: typer.Context,
    message_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="IDs of messages, or their first characters.")
    ] = None,
    *,
    is_all: Annotated[bool, typer.Option("--all", help="All messages that are in the queues now.")] = False,
    queue: _Queue = "",
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Send messages back to their source queues.

    Each message is sent, then deleted from the dead-letter queue, so it may be delivered twice; all functions are
    idempotent.
    """
    if is_all == bool(message_ids):
        raise CommandError("give either message IDs or --all", "`relaunch dead-letters list` lists messages")
    connection = connect(context, stack)
    redriven: list[DeadLetterMessage] = []

    def report(message: "DeadLetterMessage") -> None:
        redriven.append(message)
        if not as_json:
            print_text(f"{message.message_id} was sent back to {message.queue.name}")

    try:
        for message_id in message_ids or ():
            report(_call(partial(redrive_dead_letter, message_id, connection.dead_letters)))
        if is_all:
            now = connection.deps.clock.now()
            for left in _call(lambda: redrive_all(connection.dead_letters, queue, now, report)):
                print_note(f"{left.queue.name}: about {left.about} stay: there is no source queue to send them to")
    finally:
        if as_json:
            print_json({"redriven": [message_json(each) for each in redriven]})


def drop(
    context: typer.Context,
    message_id: _MessageId,
    *,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Delete a message permanently."""
    dead_letters = connect(context, stack).dead_letters
    message = _call(lambda: show_dead_letter(message_id, dead_letters))
    if not is_sure:
        reason = shorten_reason(explain_dead_letter(message).reason)
        confirm(f"Delete {message.message_id} of {message.queue.name} ({reason})?", done="deleted", does="deletes")
    _call(lambda: drop_dead_letter(message, dead_letters))
    if as_json:
        print_json({"dropped": message_json(message)})
    else:
        print_text(f"{message.message_id} was deleted")


def _call(function: Callable[[], _Result]) -> _Result:
    """Call a use case; give the errors of its own their hints and exit codes."""
    try:
        return function()
    except UnknownDeadLetterError as error:
        hint = "`relaunch dead-letters list` lists messages; SQS returns samples: run it again"
        raise CommandError(str(error), hint, exit_codes.NOT_FOUND) from error
    except NoSourceQueueError as error:
        hint = "a schedule calls its function again anyway, a caller of job_api must repeat the call; then `drop` it"
        raise CommandError(str(error), hint) from error


group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Inspect and redrive failed messages.")
group.command("list")(list_)
group.command()(show)
group.command()(redrive)
group.command()(drop)
