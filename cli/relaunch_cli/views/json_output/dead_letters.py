"""Messages in dead-letter queues."""

from collections.abc import Sequence

from relaunch.core.messages.dead_letter import DeadLetterMessage, explain_dead_letter
from relaunch.usecases.dead_letters import QueueListing
from relaunch_cli.views.json_output.json_time import JsonObject, json_time


def listings_json(listings: Sequence[QueueListing]) -> JsonObject:
    """Return the document of `list`."""
    return {
        "queues": [{"queue": each.queue.name, "about": each.about, "seen": len(each.messages)} for each in listings],
        "messages": [message_json(message) for each in listings for message in each.messages],
    }


def message_json(message: DeadLetterMessage) -> JsonObject:
    """Return a message of `list`, `redrive` and `drop`."""
    cause = explain_dead_letter(message)
    return {
        "message_id": message.message_id,
        "queue": message.queue.name,
        "given_up_by": cause.given_up_by.value,
        "reason": cause.reason,
        "first_at": json_time(cause.first_at),
        "last_at": json_time(cause.last_at),
    }


def full_message_json(message: DeadLetterMessage) -> JsonObject:
    """Return the message of `show`."""
    return {
        **message_json(message),
        "sent_at": json_time(message.sent_at),
        "first_received_at": json_time(message.first_received_at),
        "receive_count": message.receive_count,
        "source_arn": message.source_arn or None,
        "attributes": dict(message.attributes),
        "body": message.body,
    }
