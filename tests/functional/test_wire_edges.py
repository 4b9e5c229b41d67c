"""Whatever comes over the wire: a message is handled or buried with its reason, a request is answered."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.busy import BusyStack, sample_messages
from fakes.functions import QUEUE_FUNCTIONS, can_be_sent
from fakes.json_values import JSON, mutated, write
from fakes.webhook import load_event

REQUESTS = [load_event(f"job_api.{action}") for action in ("submit", "show", "cancel")]


def bury_or_handle(function: str, body: str) -> BusyStack:
    """Deliver one message; whatever it is, trying it again is never what is wanted."""
    stack = BusyStack()

    left = stack.functions.deliver(function, body)

    assert (left, stack.functions.failures) == ([], [])
    letters = stack.functions.dead_letters.letters
    assert [letter.body for letter in letters] in ([], [body])
    assert all(letter.attributes["reason"] and letter.attributes["first_seen"] for letter in letters)
    return stack


@pytest.mark.parametrize("function", QUEUE_FUNCTIONS)
@given(data=st.data())
def test_a_sample_with_anything_wrong_is_handled_or_buried(function: str, data: st.DataObject) -> None:
    bury_or_handle(function, write(data.draw(mutated(sample_messages(function)))))


@pytest.mark.parametrize("function", QUEUE_FUNCTIONS)
@given(body=JSON.map(write) | st.text().filter(can_be_sent))
def test_any_message_at_all_is_handled_or_buried(function: str, body: str) -> None:
    bury_or_handle(function, body)


@given(mutated(REQUESTS) | JSON)
def test_any_request_to_job_api_is_answered(request: Any) -> None:
    answer = BusyStack().functions.invoke("job_api", request)

    assert set(answer) in ({"job"}, {"job", "is_new", "note"}, {"error"})


@pytest.mark.parametrize("function", ["reconcile", "refresh_offerings"])
@given(event=JSON)
def test_what_the_schedule_says_does_not_matter(function: str, event: Any) -> None:
    quiet = BusyStack().functions.invoke(function, load_event(f"schedule.{function.replace('_', '-')}"))

    assert BusyStack().functions.invoke(function, event) == quiet
