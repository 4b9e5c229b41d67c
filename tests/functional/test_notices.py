"""send_notices from its queue to services on loopback."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.dependencies import make_dependencies
from fakes.functions import Functions
from fakes.notice_receivers import (
    CHANNEL,
    ENDPOINT,
    REFUSALS,
    SECRET,
    TOKEN,
    ReceiverServices,
    is_signed,
    serve_receivers,
)
from fakes.notices import make_life
from fakes.sources import ListLog
from relaunch.adapters.messages.job_change import write_detail
from relaunch.adapters.notices.receivers import ReceiverMaker, StoredReceivers
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import JobStateChange

RECEIVERS: Mapping[str, Any] = {
    "ours": {"kind": "webhook", "url": ENDPOINT, "secret": SECRET, "kinds": ["failed"]},
    "team": {"kind": "slack", "token": TOKEN, "channel": CHANNEL, "kinds": ["started", "interrupted", "failed"]},
}
LIFE = make_life("resnet-1f2e3d4c", 1, JobState.FAILED)


class Stored:
    """Implements ReceiverParameters."""

    def load(self) -> Mapping[str, str]:
        return {name: json.dumps(each) for name, each in RECEIVERS.items()}


class World:
    """The function over services on loopback."""

    def __init__(self, services: ReceiverServices) -> None:
        self.services = services
        self.clock = FakeClock(LIFE[0].time)
        maker = ReceiverMaker(("hooks.example.com",), (), None, self.clock, services.sender)
        receivers = StoredReceivers(Stored(), maker, self.clock, ListLog())
        self.functions = Functions(make_dependencies(clock=self.clock, receivers=receivers))

    def deliver(self, event: JobStateChange) -> list[str]:
        """Hand an event to the function when it happens; return the messages that come back."""
        self.clock.set(max(event.time, self.clock.now()))
        body = json.dumps({"detail-type": "Job State Change", "detail": json.loads(write_detail(event))})
        return self.functions.deliver("send_notices", body)

    def titles(self, host: str) -> list[str]:
        """Return the first lines that a service was sent."""
        texts = [each.document for each in self.services.requests if host in each.target]
        return [str(each.get("text") or each["data"]["title"]).partition("\n")[0] for each in texts]


@pytest.fixture
def world() -> Iterator[World]:
    with serve_receivers() as services:
        yield World(services)


def test_a_life_of_a_job_is_a_thread_in_slack_and_its_end_a_signed_request(world: World) -> None:
    for event in LIFE:
        world.deliver(event)

    assert world.titles("/api/") == [
        "resnet-1f2e3d4c has started",
        "resnet-1f2e3d4c was interrupted",
        "resnet-1f2e3d4c has failed",
    ]
    first, *others = (each.document for each in world.services.requests if "/api/" in each.target)
    assert "thread_ts" not in first
    assert {each["thread_ts"] for each in others} == {"1793709042.000001"}
    (signed,) = (each for each in world.services.requests if "/relaunch" in each.target)
    assert is_signed(signed)
    assert world.functions.failures == []


def test_what_a_service_postpones_comes_back_and_the_other_one_has_its_notice(world: World) -> None:
    # Receivers are asked in the order of their names.
    world.services.refusals = [REFUSALS["webhook"]["too many"]]

    again = world.deliver(LIFE[-1])

    assert len(again) == 1
    assert world.titles("/api/") == ["resnet-1f2e3d4c has failed"]
    world.clock.advance(timedelta(seconds=5))
    assert world.functions.deliver("send_notices", *again) == []
    assert len(world.titles("/relaunch")) == 2
    assert len(world.titles("/api/")) == 1


@pytest.mark.parametrize("body", ["{}", '{"detail": {}}', '{"detail": null}', '{"detail": {"job_id": "resnet"}}'])
def test_what_is_no_event_of_a_job_goes_to_the_dead_letter_queue(world: World, body: str) -> None:
    assert world.functions.deliver("send_notices", body) == []

    (reason,) = world.functions.dead_letters.reasons
    assert reason.startswith("the message is no event of a job: ")
