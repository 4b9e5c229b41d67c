"""Whatever comes over the wire: a message is handled or buried with its reason, a request is answered."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.busy_stack import BusyStack, sample_messages
from fakes.functions import QUEUE_FUNCTIONS, can_be_sent, make_batch
from fakes.json_values import JSON, mutated, write
from fakes.webhook import load_event, make_delivery
from relaunch.ports import PermanentError

REQUESTS = [load_event(f"job_api.{action}") for action in ("submit", "show", "cancel")]


def bury_or_handle(function: str, body: str) -> BusyStack:
    """Deliver one message; whatever it is, only that of a newer release is to be tried again."""
    stack = BusyStack()

    left = stack.functions.deliver(function, body)

    is_newer = "a newer release sent it" in "".join(map(str, stack.functions.failures))
    assert (left, len(stack.functions.failures)) == (([body], 1) if is_newer else ([], 0))
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


TASK = load_event("aws.ecs.task-state-change.running")
WARNING = load_event("aws.ec2.spot-interruption-warning")
DELIVERY = make_delivery("push", load_event("github.push"))


def change(event: dict[str, Any], **detail: Any) -> dict[str, Any]:
    return {**event, "detail": {**event["detail"], **detail}}


@pytest.mark.parametrize(
    ("function", "message", "reason"),
    [
        pytest.param("submit_job", {**DELIVERY, "payload": "\x00", "event": "\x00"}, "\ufffd", id="control-character"),
        pytest.param(
            "submit_job", {**DELIVERY, "payload": [], "event": "\ud800"}, "\ufffd", id="half-a-surrogate-pair"
        ),
        pytest.param("submit_job", {**DELIVERY, "payload": [], "event": "x" * 9_000}, "xxxx", id="very-long-reason"),
        pytest.param("submit_job", {**DELIVERY, "payload": "@deep-list"}, "payload", id="nested"),
        pytest.param("submit_job", {**DELIVERY, "payload": "@endless"}, "not JSON", id="nested-without-end"),
        pytest.param("observe_task", {**TASK, "x": "@huge-integer"}, "not JSON", id="integer-of-5000-digits"),
        pytest.param(
            "observe_task", change(TASK, startedAt="0001-01-01T00:00:00+14:00"), "startedAt", id="before-time"
        ),
        pytest.param("observe_task", change(TASK, stoppedAt="9999-12-31T23:59:59-14:00"), "stoppedAt", id="after-time"),
        pytest.param("observe_task", change(TASK, createdAt="9999-12-31T23:59:59Z"), "createdAt", id="end-of-time"),
        pytest.param("observe_task", change(TASK, version="@huge-float"), "version", id="infinity"),
        pytest.param("observe_capacity", {**WARNING, "time": "0001-01-01T00:00:00+14:00"}, "time", id="warning-of-old"),
        pytest.param("observe_capacity", change(WARNING, **{"instance-id": "i-²"}), "instance-id", id="instance"),
        pytest.param("launch_attempt", {"job_id": ["resnet-1f2e3d4c"]}, "job_id", id="job-in-a-list"),
    ],
)
def test_what_once_broke_a_function_is_buried_with_its_reason(function: str, message: Any, reason: str) -> None:
    stack = bury_or_handle(function, write(message))

    (told,) = stack.functions.dead_letters.reasons
    assert reason in told
    assert len(told) <= 1_000


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param("observe_task", change(TASK, startedBy="resnet-1f2e3d4c/²"), id="digit-that-is-no-number"),
        pytest.param("observe_task", change(TASK, startedBy="\ud800/1"), id="task-of-nobody"),
        pytest.param("observe_task", change(TASK, version=10**300), id="huge-version"),
        pytest.param("launch_attempt", {"job_id": "\ud800"}, id="job-of-nobody"),
    ],
)
def test_what_is_odd_and_concerns_nobody_is_let_go(function: str, message: Any) -> None:
    assert bury_or_handle(function, write(message)).functions.dead_letters.letters == []


MESSAGE = make_batch("{}")["Records"][0]
NO_BATCHES: list[Any] = [
    load_event("aws.s3.object-created"),
    {"Records": []},
    {"Records": {}},
    {"Records": [5]},
    *({"Records": [MESSAGE, {**MESSAGE, name: 5}]} for name in ("messageId", "body", "attributes")),
]


@pytest.mark.parametrize("function", QUEUE_FUNCTIONS)
@given(event=st.sampled_from(NO_BATCHES) | JSON)
def test_an_event_that_is_no_batch_is_refused_in_words(function: str, event: Any) -> None:
    with pytest.raises(PermanentError, match="no batch of messages"):
        BusyStack().functions.invoke(function, event)


@given(mutated(REQUESTS) | JSON)
def test_any_request_to_job_api_is_answered(request: Any) -> None:
    answer = BusyStack().functions.invoke("job_api", request)

    assert set(answer) in ({"job"}, {"job", "is_new", "note"}, {"error"})


@pytest.mark.parametrize("function", ["reconcile", "refresh_offerings"])
@given(event=JSON)
def test_what_the_schedule_says_does_not_matter(function: str, event: Any) -> None:
    quiet = BusyStack().functions.invoke(function, load_event(f"schedule.{function.replace('_', '-')}"))

    assert BusyStack().functions.invoke(function, event) == quiet
