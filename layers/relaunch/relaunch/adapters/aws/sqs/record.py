"""A message as Lambda hands it to a function ("Using Lambda with Amazon SQS", AWS Lambda Developer Guide).

powertools has the same class, and a loop over batches; both import the data classes of every service, and asyncio.
"""

import re
from collections.abc import Mapping
from typing import Any


class Record:
    """A message of a batch; samples are in events/sqs.*.json."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @property
    def message_id(self) -> str:
        """The ID, which a message keeps until it is deleted."""
        return str(self.raw["messageId"])

    @property
    def body(self) -> str:
        """The text that was sent."""
        body: str = self.raw["body"]
        return body

    @property
    def receipt_handle(self) -> str:
        """The handle of this receive, which deletes the message."""
        return str(self.raw["receiptHandle"])

    @property
    def queue_url(self) -> str:
        """The URL of the queue, which Lambda gives as an ARN."""
        region, account, name = self.raw["eventSourceARN"].split(":")[3:6]
        return f"https://sqs.{region}.amazonaws.com/{account}/{name}"

    def number(self, name: str) -> int:
        """Return a number that SQS gives a message; 0 if it gives none, or none of the next thousand years."""
        text = str(self.raw["attributes"].get(name) or "")
        return int(text) if re.fullmatch(r"[0-9]{1,13}", text) else 0

    def attribute(self, name: str) -> str:
        """Return the text of an attribute that the sender gave, empty if there is none."""
        attributes = self.raw.get("messageAttributes") or {}
        return str((attributes.get(name) or {}).get("stringValue") or "")
