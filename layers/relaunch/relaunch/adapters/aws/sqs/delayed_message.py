"""Sends messages with a delay (SendMessage, Amazon SQS API Reference)."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relaunch.adapters.messages.body import FORMAT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The maximum of SQS. For longer delays, `reconcile` finds what is due by its `wake_at`.
MAX_DELAY_SECONDS = 900


def send_delayed(client: "SQSClient", queue_url: str, message: Mapping[str, str], delay_seconds: int) -> None:
    """Send a message as JSON with the number of its format; a delay outside of 0 to 900 seconds is cut to that."""
    client.send_message(
        QueueUrl=queue_url,
        MessageBody=json.dumps({**message, "format": FORMAT}),
        DelaySeconds=min(max(delay_seconds, 0), MAX_DELAY_SECONDS),
    )
