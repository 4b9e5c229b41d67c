"""dead-letters: messages that were given up, and what to do with them."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.messages.dead_letter import DeadLetterMessage
    from relaunch.usecases.dead_letters import QueueListing

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Messages that were given up: list, show, redrive, drop.",
)

_Found = TypeVar("_Found")
_Queue = Annotated[str, typer.Option("--queue", help="Only this dead-letter queue, as `list` names it.")]
_MessageId = Annotated[str, typer.Argument(metavar="ID", help="The message's id, or how it begins.")]


@commands.command("list")
@reported
def list_(
    context: typer.Context,
    queue: _Queue = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many of each queue at most.")] = 100,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """List messages that were given up, and why.

    Nothing is consumed: what SQS gives is put back at once. It gives samples, so look again when some are missing.
    """
    from relaunch.usecases.dead_letters import list_dead_letters
    from relaunch_cli.views.dead_letters import letter_shape
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import progress, say

    connection = connect(context, stack)
    with progress("looking into the dead-letter queues"):
        listings = _asked(lambda: list_dead_letters(connection.dead_letters, queue, limit))
    if as_json:
        queues = [{"queue": each.queue.name, "about": each.about, "seen": len(each.letters)} for each in listings]
        say(dump({"queues": queues, "messages": [letter_shape(each) for one in listings for each in one.letters]}))
    else:
        show_listings(listings, context, stack)


def show_listings(listings: "Sequence[QueueListing]", context: typer.Context, stack: str) -> None:
    """Print what was seen, and what was not."""
    from relaunch_cli.views.dead_letters import render_letters
    from relaunch_cli.views.screen import remark
    from relaunch_cli.views.screen import show as show_parts

    letters = [letter for listing in listings for letter in listing.letters]
    if letters:
        show_parts(render_letters(letters, connect(context, stack).deps.clock.now()))
    for listing in listings:
        if listing.about > len(listing.letters):
            remark(
                f"{listing.queue.name}: SQS showed {len(listing.letters)} of about {listing.about}; it gives samples: "
                "look again, or raise --limit"
            )
    if not letters and not any(listing.about for listing in listings):
        remark("no dead letters")


@commands.command()
@reported
def show(context: typer.Context, message_id: _MessageId, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """Show everything about a message."""
    from relaunch.usecases.dead_letters import show_dead_letter
    from relaunch_cli.views.dead_letters import full_letter_shape, render_letter
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import progress, say
    from relaunch_cli.views.screen import show as show_parts

    connection = connect(context, stack)
    with progress("looking for the message"):
        letter = _asked(lambda: show_dead_letter(message_id, connection.dead_letters))
    if as_json:
        say(dump(full_letter_shape(letter)))
        return
    show_parts(render_letter(letter, connection.deps.clock.now()))
    say(letter.body)


@commands.command()
@reported
def redrive(
    context: typer.Context,
    message_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The messages' ids, or how they begin.")
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="Every message that is there now.")] = False,
    queue: _Queue = "",
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Send messages back to the queue they came from.

    Each is sent, then deleted here, so it may come twice: every function takes a message it has seen for what it is.
    """
    from relaunch.usecases.dead_letters import redrive_all, redrive_dead_letter
    from relaunch_cli.views.dead_letters import letter_shape
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import remark, say

    if is_all == bool(message_ids):
        raise CommandError("name the messages, or say --all", "`relaunch dead-letters list` lists them")
    connection = connect(context, stack)
    sent: list[DeadLetterMessage] = []

    def tell(letter: "DeadLetterMessage") -> None:
        sent.append(letter)
        if not as_json:
            say(f"{letter.message_id} was sent back to {letter.queue.name}")

    try:
        for message_id in message_ids or ():
            tell(_asked(partial(redrive_dead_letter, message_id, connection.dead_letters)))
        if is_all:
            now = connection.deps.clock.now()
            for left in _asked(lambda: redrive_all(connection.dead_letters, queue, now, tell)):
                remark(f"{left.queue.name}: about {left.about} stay: its function has no queue to send them to")
    finally:
        if as_json:
            say(dump({"redriven": [letter_shape(each) for each in sent]}))


@commands.command()
@reported
def drop(
    context: typer.Context,
    message_id: _MessageId,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Delete a message for good."""
    from relaunch.core.messages.dead_letter import explain_dead_letter
    from relaunch.usecases.dead_letters import drop_dead_letter, show_dead_letter
    from relaunch_cli.views.dead_letters import letter_shape, shorten_reason
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import say

    dead_letters = connect(context, stack).dead_letters
    letter = _asked(lambda: show_dead_letter(message_id, dead_letters))
    if not is_sure:
        reason = shorten_reason(explain_dead_letter(letter).reason)
        _confirm(f"Delete {letter.message_id} of {letter.queue.name} ({reason})?")
    _asked(lambda: drop_dead_letter(letter, dead_letters))
    say(dump({"dropped": letter_shape(letter)}) if as_json else f"{letter.message_id} was deleted")


def _confirm(question: str) -> None:
    try:
        is_confirmed = typer.confirm(question, err=True)
    except typer.Abort:
        raise CommandError("nobody confirmed it, so nothing was deleted", "--yes deletes without asking") from None
    if not is_confirmed:
        raise CommandError("nothing was deleted", exit_code=exit_codes.CANCELLED)


def _asked(ask: Callable[[], _Found]) -> _Found:
    """Give what is not found, and what cannot be sent back, their exit codes."""
    from relaunch.usecases.dead_letters import NoSourceQueueError, UnknownDeadLetterError

    try:
        return ask()
    except UnknownDeadLetterError as error:
        hint = "`relaunch dead-letters list` lists them; SQS gives samples: look again"
        raise CommandError(str(error), hint, exit_codes.NOT_FOUND) from error
    except NoSourceQueueError as error:
        hint = "a schedule's next call did what was left; call job_api again; then `relaunch dead-letters drop` it"
        raise CommandError(str(error), hint) from error
