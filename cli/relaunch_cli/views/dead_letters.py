"""Dead letters as tables that fit 80 columns, and as JSON."""

from collections.abc import Iterable
from datetime import datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.messages.dead_letter import FIRST_SEEN, REASON, DeadLetterMessage, explain_dead_letter
from relaunch_cli.views.formats import write_count, write_moment, write_time
from relaunch_cli.views.screen import plain_table

_LONGEST_REASON = 160
_ID_LENGTH = 8


def render_letters(letters: Iterable[DeadLetterMessage], now: datetime) -> Table:
    """Return the table of `list`."""
    table = plain_table("ID", "QUEUE", "FIRST (UTC)", "LAST (UTC)", "WHY")
    for column in table.columns[:4]:
        column.no_wrap = True
    for letter in letters:
        cause = explain_dead_letter(letter)
        table.add_row(
            letter.message_id[:_ID_LENGTH],
            letter.queue.name,
            write_time(cause.first_at, now) if cause.first_at else "?",
            write_time(cause.last_at, now) if cause.last_at else "?",
            Text(shorten_reason(cause.reason)),
        )
    return table


def shorten_reason(reason: str) -> str:
    """Return as much of a reason as fits into a few lines; `show` has all of it."""
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"


def render_letter(letter: DeadLetterMessage, now: datetime) -> RenderableType:
    """Return the facts of one message; its body follows."""
    cause = explain_dead_letter(letter)
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    moments = (
        ("First", cause.first_at),
        ("Last", cause.last_at),
        ("Sent", letter.sent_at),
        ("First received", letter.first_received_at),
    )
    facts.add_row("Message", letter.message_id)
    facts.add_row("Queue", letter.queue.name)
    facts.add_row("Given up by", cause.given_up_by.value)
    facts.add_row("Why", Text(cause.reason))
    for name, at in moments:
        facts.add_row(name, write_moment(at, now) if at else "not known")
    facts.add_row("Received", f"{write_count(letter.receive_count, 'time')}, by people who look too")
    for name, value in sorted({"source": letter.source_arn, **letter.attributes}.items()):
        if value and name not in (REASON, FIRST_SEEN):
            facts.add_row(name, Text(value))
    facts.add_row("Body", Text())
    return facts


def letter_shape(letter: DeadLetterMessage) -> dict[str, object]:
    """Return a message of `list`, `redrive` and `drop`."""
    cause = explain_dead_letter(letter)
    return {
        "message_id": letter.message_id,
        "queue": letter.queue.name,
        "given_up_by": cause.given_up_by.value,
        "reason": cause.reason,
        "first_at": cause.first_at.isoformat() if cause.first_at else None,
        "last_at": cause.last_at.isoformat() if cause.last_at else None,
    }


def full_letter_shape(letter: DeadLetterMessage) -> dict[str, object]:
    """Return the message of `show`."""
    received_at = letter.first_received_at
    return {
        **letter_shape(letter),
        "sent_at": letter.sent_at.isoformat(),
        "first_received_at": received_at.isoformat() if received_at else None,
        "receive_count": letter.receive_count,
        "source_arn": letter.source_arn or None,
        "attributes": dict(letter.attributes),
        "body": letter.body,
    }
