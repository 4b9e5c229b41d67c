"""Tables of messages in dead-letter queues."""

from collections.abc import Iterable
from datetime import datetime

from rich.text import Text

from relaunch.core.messages.dead_letter import FIRST_SEEN, REASON, DeadLetterMessage, explain_dead_letter
from relaunch_cli.views.formatting import format_count, format_time, format_timestamp
from relaunch_cli.views.table import PlainTable, key_values

_MAX_REASON_LENGTH = 160
_ID_LENGTH = 8


def render_messages(messages: Iterable[DeadLetterMessage], now: datetime) -> PlainTable:
    """Return the table of `list`."""
    table = PlainTable(
        *("ID", "QUEUE", "FIRST (UTC)", "LAST (UTC)", "REASON"), optional=("FIRST (UTC)", "LAST (UTC)"), prose="wrapped"
    )
    for message in messages:
        cause = explain_dead_letter(message)
        table.add_row(
            message.message_id[:_ID_LENGTH],
            message.queue.name,
            format_time(cause.first_at, now) if cause.first_at else "?",
            format_time(cause.last_at, now) if cause.last_at else "?",
            Text(shorten_reason(cause.reason)),
        )
    return table


def shorten_reason(reason: str) -> str:
    """Return a reason cut to a few lines; `show` prints all of it."""
    return reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[:_MAX_REASON_LENGTH]}…"


def render_message(message: DeadLetterMessage, now: datetime) -> PlainTable:
    """Return everything about one message but its body."""
    cause = explain_dead_letter(message)
    table = key_values()
    timestamps = (
        ("First", cause.first_at),
        ("Last", cause.last_at),
        ("Sent", message.sent_at),
        ("First received", message.first_received_at),
    )
    table.add_row("Message", message.message_id)
    table.add_row("Queue", message.queue.name)
    table.add_row("Given up by", cause.given_up_by.value)
    table.add_row("Reason", Text(cause.reason))
    for name, at in timestamps:
        table.add_row(name, format_timestamp(at, now) if at else "not known")
    table.add_row("Received", f"{format_count(message.receive_count, 'time')}, including by this command")
    for name, value in sorted({"source": message.source_arn, **message.attributes}.items()):
        if value and name not in (REASON, FIRST_SEEN):
            table.add_row(name, Text(value))
    table.add_row("Body", Text())
    return table
