"""The receivers of a stack, made of what is stored."""

import json
from collections.abc import Mapping
from datetime import timedelta

import pytest

from fakes.clock import FakeClock
from fakes.notice_receivers import ADDRESSES, ENDPOINT, SECRET
from fakes.notices import make_event
from fakes.sources import ListLog
from relaunch.adapters.notices.receivers import HELD, ReceiverMaker, StoredReceivers
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.ports import NotGrantedError, TransientError

TOPIC = "arn:aws:sns:us-east-1:111122223333:training"


class Parameters:
    """Implements ReceiverParameters; fails while `error` is set."""

    def __init__(self, **stored: object) -> None:
        self.stored = {name.replace("_", "-"): json.dumps(each) for name, each in stored.items()}
        self.error: Exception | None = None
        self.reads = 0

    def load(self) -> Mapping[str, str]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.stored


class Stack:
    """The receivers of a stack, over these parameters."""

    def __init__(self, **stored: object) -> None:
        self.parameters = Parameters(**stored)
        self.clock = FakeClock()
        self.log = ListLog()
        maker = ReceiverMaker(("hooks.example.com",), (TOPIC,), None, self.clock)
        self.receivers = StoredReceivers(self.parameters, maker, self.clock, self.log)

    def names(self, **notices: tuple[NoticeKind, ...]) -> dict[str, set[NoticeKind]]:
        """Return the receivers of an event whose definition names these, with their kinds."""
        event = make_event(notices={name.replace("_", "-"): kinds for name, kinds in notices.items()} or None)
        found = self.receivers.receivers_for(event)
        return {each.subscription.name: set(each.subscription.kinds) for each in found}


def discord(**members: object) -> dict[str, object]:
    return {"kind": "discord", "url": ADDRESSES["discord"], "kinds": ["failed"], **members}


def test_those_of_the_stack_get_everything_and_the_others_what_a_definition_names_them_for() -> None:
    stack = Stack(everyone=discord(), team_ml=discord(is_for_all=False))

    assert stack.names() == {"everyone": {NoticeKind.FAILED}}
    assert stack.names(team_ml=()) == {"everyone": {NoticeKind.FAILED}, "team-ml": {NoticeKind.FAILED}}
    assert stack.names(team_ml=(NoticeKind.STARTED,), everyone=(NoticeKind.FINISHED,)) == {
        "everyone": {NoticeKind.FINISHED},
        "team-ml": {NoticeKind.STARTED},
    }


def test_one_that_is_named_and_missing_is_in_the_log() -> None:
    stack = Stack()

    assert stack.names(gone=()) == {}
    assert stack.log.lines == [("receivers missing", {"definition": "resnet", "receivers": ["gone"]})]


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "pigeon"},
        {"kind": "webhook", "url": ENDPOINT, "secret": "no secret"},
        {"kind": "sns", "topic_arn": "arn:aws:sns:us-east-1:111122223333:other"},
    ],
)
def test_one_that_cannot_be_used_keeps_no_other_one_away(stored: object) -> None:
    stack = Stack(bad=stored, good=discord())

    assert set(stack.names()) == {"good"}
    (line,) = stack.log.lines
    assert line[0] == "receiver unusable"
    assert (line[1]["receiver"], line[1]["is_alert"]) == ("bad", True)


def test_every_kind_is_made() -> None:
    stack = Stack(
        slack={"kind": "slack", "url": ADDRESSES["slack"]},
        thread={"kind": "slack", "token": "t", "channel": "c"},
        teams={"kind": "teams", "url": ADDRESSES["teams"]},
        webhook={"kind": "webhook", "url": ENDPOINT, "secret": SECRET},
        sns={"kind": "sns", "topic_arn": TOPIC},
    )

    assert set(stack.names()) == {"slack", "sns", "teams", "thread", "webhook"}


def test_there_are_ten_at_most_and_somebody_is_alerted() -> None:
    stack = Stack(**{f"r{number:02}": discord() for number in range(12)})

    assert len(stack.names()) == 10
    assert stack.log.lines[0][1]["left_out"] == ["r10", "r11"]


def test_they_are_read_again_after_a_minute_and_used_while_they_cannot_be() -> None:
    stack = Stack(team=discord())
    stack.names()
    stack.names()
    assert stack.parameters.reads == 1

    stack.clock.advance(HELD + timedelta(seconds=1))
    stack.parameters.error = TransientError("throttled")
    assert set(stack.names()) == {"team"}
    stack.parameters.error = None
    stack.parameters.stored = {}
    assert stack.names() == {}


def test_while_they_were_never_read_events_stay_in_their_queue() -> None:
    stack = Stack(team=discord())
    stack.parameters.error = NotGrantedError("no permission")

    with pytest.raises(TransientError):
        stack.names()
