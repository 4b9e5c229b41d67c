"""Records of asynchronous calls that failed."""

import pytest

from relaunch.adapters.messages.failed_call import FailedCall, find_failed_call

CONTEXT = {"requestId": "e4b46cbf", "condition": "RetriesExhausted", "approximateInvokeCount": 3}


def test_a_record_has_the_request_and_its_id() -> None:
    record = {"version": "1.0", "requestContext": CONTEXT, "requestPayload": {"action": "show"}}

    assert find_failed_call(record) == FailedCall({"action": "show"}, "e4b46cbf")


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"requestContext": "none", "requestPayload": {}},
        {"requestContext": {"http": {}}, "requestPayload": {}},
        {"requestContext": CONTEXT},
        {"source": "github", "event": "push"},
    ],
)
def test_anything_else_is_none(message: dict[str, object]) -> None:
    assert find_failed_call(message) is None
