from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from fakes.aws import refusal
from fakes.builders import make_job
from fakes.clock import FakeClock
from relaunch.adapters.aws.job_events import EventBridgeJobEvents
from relaunch.core.lifecycle.change_events import JobStateChange, event_of
from relaunch.core.lifecycle.job_changes import as_created

JOB = make_job()
FIRST = event_of(JOB, as_created(JOB, "accepted").outbox.unsent[0])


def events(count: int, reason: str = "accepted") -> list[JobStateChange]:
    return [replace(FIRST, sequence=number, reason=reason) for number in range(1, count + 1)]


class Bus:
    """PutEvents, which answers what it is given, or takes all."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[list[dict[str, Any]]] = []

    def put_events(self, **parameters: Any) -> Any:
        self.requests.append(parameters["Entries"])
        answer = self.answers.pop(0) if self.answers else {"FailedEntryCount": 0, "Entries": []}
        if isinstance(answer, Exception):
            raise answer
        return answer


def failed(*codes: str) -> dict[str, Any]:
    results = [{"ErrorCode": code, "ErrorMessage": "so it is"} if code else {"EventId": "e"} for code in codes]
    return {"FailedEntryCount": sum(map(bool, codes)), "Entries": results}


def adapter(bus: Bus, clock: FakeClock | None = None) -> EventBridgeJobEvents:
    client: Any = bus
    return EventBridgeJobEvents(client, "relaunch.relaunch", clock or FakeClock())


def test_an_entry_has_the_source_of_the_stack_and_the_time_of_the_change() -> None:
    bus = Bus()

    assert adapter(bus).send([FIRST]).taken == {1}
    ((entry,),) = bus.requests
    assert (entry["Source"], entry["DetailType"], entry["Time"]) == (
        "relaunch.relaunch",
        "Job State Change",
        FIRST.time,
    )


def test_ten_go_at_once_in_their_order() -> None:
    bus = Bus()

    assert adapter(bus).send(events(23)).taken == set(range(1, 24))
    assert [len(each) for each in bus.requests] == [10, 10, 3]


def test_a_request_is_no_larger_than_eventbridge_takes() -> None:
    bus = Bus()

    adapter(bus).send(events(10, "r" * 60_000))

    assert [len(each) for each in bus.requests] == [4, 4, 2]


def test_of_a_request_that_is_taken_in_part_the_rest_stays_and_nothing_more_is_sent() -> None:
    bus = Bus(failed("", "ThrottlingException", *[""] * 8))

    sent = adapter(bus).send(events(11))

    assert sent.taken == {1, *range(3, 11)}
    assert (sent.refused, sent.postponed) == ({}, "ThrottlingException: so it is")
    assert len(bus.requests) == 1


def test_an_entry_that_never_can_be_taken_is_refused_for_good() -> None:
    sent = adapter(Bus(failed("MalformedDetail", ""))).send(events(2))

    assert (sent.taken, dict(sent.refused)) == ({2}, {1: "MalformedDetail: so it is"})
    assert sent.postponed == ""


def test_of_a_request_that_never_can_be_taken_each_entry_is_sent_by_itself() -> None:
    bus = Bus(refusal("ValidationException"), {"FailedEntryCount": 0}, refusal("ValidationException"))

    sent = adapter(bus).send(events(3))

    assert (sent.taken, sorted(sent.refused), sent.postponed) == ({1, 3}, [2], "")


@pytest.mark.parametrize(
    "error",
    [
        refusal("ThrottlingException"),
        refusal("InternalException"),
        refusal("AccessDeniedException"),
        ReadTimeoutError(endpoint_url="events"),
    ],
)
def test_after_a_failure_nothing_is_sent_for_a_while(error: ClientError) -> None:
    bus = Bus(error)
    clock = FakeClock()
    sender = adapter(bus, clock)

    assert sender.send([FIRST]).postponed
    assert sender.send([FIRST]).postponed
    assert len(bus.requests) == 1

    clock.advance(timedelta(seconds=21))
    assert sender.send([FIRST]).taken == {1}


def test_an_answer_that_does_not_name_every_entry_is_no_proof_that_it_was_taken() -> None:
    sent = adapter(Bus({"FailedEntryCount": 1, "Entries": [{"EventId": "e"}]})).send(events(2))

    assert sent.taken == {1}
    assert sent.postponed
