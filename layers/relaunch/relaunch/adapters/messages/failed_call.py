"""Reads the records of asynchronous calls that failed, which Lambda sends to an on-failure destination.

See "Capturing records of Lambda asynchronous invocations" (AWS Lambda Developer Guide).
"""

from collections.abc import Mapping
from typing import NamedTuple


class FailedCall(NamedTuple):
    """A call that Lambda gave up: its payload, and the ID of the request, which its tries had in common."""

    request: object
    request_id: str


def find_failed_call(message: Mapping[str, object]) -> FailedCall | None:
    """Return the call in a message, None if the message is something else."""
    context = message.get("requestContext")
    if not isinstance(context, Mapping) or "condition" not in context or "requestPayload" not in message:
        return None
    return FailedCall(message["requestPayload"], str(context.get("requestId", "")))
