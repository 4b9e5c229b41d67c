"""Sending notices: what is saved when, and what happens where something fails."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.metrics import ListMetrics
from fakes.notices import FakeReceiver, FakeReceivers, make_event
from fakes.sources import ListLog
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.record import CLAIM
from relaunch.ports import NoticeDependencies, NotYetError, StaleWriteError, TransientError
from relaunch.ports.notices import Delivered, Held, NoReceivers, Outcome, Postponed, ReceiverPause, Refused
from relaunch.usecases.send_notices import send_notices
from relaunch_local.in_memory.notices import InMemoryNotices

END = make_event(5, state=JobState.FAILED, state_before=JobState.RUNNING)
TEAM = Subscription(name="team")


class World:
    """Dependencies of fakes, at the time of the event."""

    def __init__(self, *receivers: Any, records: InMemoryNotices | None = None) -> None:
        self.clock = FakeClock(END.time)
        self.log = ListLog()
        self.metrics = ListMetrics()
        self.records = records or InMemoryNotices()
        self.deps = NoticeDependencies(
            notice_records=self.records,
            receivers=FakeReceivers(receivers),
            clock=self.clock,
            log=self.log,
            metrics=self.metrics,
        )

    def send(self, event: JobStateChange = END) -> int:
        """Send an event; return after how many seconds it is to be looked at again, 0 if it is settled."""
        try:
            send_notices(event, self.deps)
        except NotYetError as early:
            return early.seconds
        return 0


def answering(outcome: Outcome) -> FakeReceiver:
    return FakeReceiver(TEAM, lambda _: outcome)


def test_without_receivers_an_event_is_settled() -> None:
    world = World()
    assert world.send() == 0
    assert world.log.decisions == ["no receivers"]
    assert NoReceivers().receivers_for(END) == ()


def test_two_functions_that_have_the_same_event_at_once_send_it_once() -> None:
    other_waits = []

    def answer(_: Notice) -> Outcome:
        other_waits.append(world.send())
        return Delivered("thread")

    receiver = FakeReceiver(TEAM, answer)
    world = World(receiver)

    assert world.send() == 0
    assert len(receiver.delivered) == 1
    assert other_waits == [CLAIM.total_seconds()]
    assert world.send() == 0
    assert len(receiver.delivered) == 1


def test_what_others_note_during_a_delivery_is_kept_and_sent_after_it() -> None:
    running = make_event(3, state=JobState.RUNNING, state_before=JobState.LAUNCHING)
    status = FakeReceiver(Subscription(name="status", wants_states=True))
    world = World(status)

    def answer(notice: Notice) -> Outcome:
        if notice.event == running:
            assert world.send(END) > 0
        return Delivered("thread")

    status.answer = answer
    assert world.send(running) == 0
    assert world.send(END) == 0
    assert [each.event.sequence for each in status.delivered] == [3, 5]
    assert status.threads == ["", "thread"]


def test_a_receiver_that_takes_nothing_is_left_alone_by_every_function_and_asked_again() -> None:
    asked = END.time + timedelta(seconds=40)
    receiver = answering(Postponed("busy", asked))
    world = World(receiver)

    assert world.send() == 40
    assert world.send(make_event(7, state=JobState.FAILED, job_id="another-1")) == 40
    assert receiver.tries == 1
    world.clock.set(asked)
    receiver.answer = lambda _: Delivered()
    assert world.send() == 0
    assert world.records.load_pause("team") is None


IN_FIVE_MINUTES = END.time + timedelta(minutes=5)
IN_TEN_MINUTES = END.time + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("outcome", "seconds", "kept_until"),
    [
        (Delivered(), 0, IN_FIVE_MINUTES),
        (Postponed("HTTP 502"), 300, IN_FIVE_MINUTES),
        (Postponed("HTTP 429", IN_TEN_MINUTES), 600, IN_TEN_MINUTES),
    ],
)
def test_of_the_pauses_that_functions_are_asked_for_at_once_the_longest_is_kept(
    outcome: Outcome, seconds: int, kept_until: datetime
) -> None:
    def answer(_: Notice) -> Outcome:
        before = world.records.load_pause("team")
        world.records.save_pause("team", ReceiverPause(END.time, IN_FIVE_MINUTES, "HTTP 429"), before)
        return outcome

    world = World(FakeReceiver(TEAM, answer))
    world.records.save_pause("team", ReceiverPause(END.time, END.time, "HTTP 502"), None)

    assert world.send() == seconds
    pause = world.records.load_pause("team")
    assert pause is not None
    assert pause.until == kept_until


def test_a_pause_that_others_change_again_and_again_is_tried_later() -> None:
    class Contended(InMemoryNotices):
        def save_pause(self, receiver: str, pause: ReceiverPause | None, replaced: ReceiverPause | None) -> None:
            raise StaleWriteError(f"{receiver} {pause} {replaced}")

    world = World(answering(Postponed("no answer")), records=Contended())

    with pytest.raises(TransientError, match="again and again"):
        world.send()


def test_a_receiver_that_is_away_for_an_hour_is_an_alert_once() -> None:
    world = World(answering(Postponed("no answer")))
    for _ in range(40):
        world.clock.advance(world.send())

    alerts = [facts for _, facts in world.log.lines if facts.get("is_alert")]
    assert len(alerts) == 1
    assert alerts[0]["reason"] == "no answer"
    pause = world.records.load_pause("team")
    assert pause is not None
    assert pause.since == END.time


def test_what_is_refused_is_given_up_at_once_with_an_alert_and_a_metric() -> None:
    receiver = answering(Refused("Slack answers msg_too_long"))
    world = World(receiver)

    assert world.send() == world.send() == 0
    assert receiver.tries == 1
    assert world.log.decisions == ["notice given up"]
    assert world.metrics.values(Metric.NOTICES_GIVEN_UP) == [1]


def test_what_is_refused_for_a_reason_that_somebody_knows_is_no_second_alert() -> None:
    world = World(answering(Refused("no right", is_known=True)))

    assert world.send() == 0
    assert [decision for decision, facts in world.log.lines if not facts["is_alert"]] == ["notice given up"]
    assert world.metrics.values(Metric.NOTICES_GIVEN_UP) == []
    assert world.send() == 0


def test_what_is_held_comes_again_then_and_holds_up_no_other_notice() -> None:
    until = END.time + timedelta(minutes=7)
    running = make_event(3, job_id="resnet-2", state=JobState.RUNNING)
    receiver = FakeReceiver(TEAM, lambda notice: Held(until) if notice.event == END else Delivered())
    receiver.subscription = Subscription(name="status", wants_states=True)
    world = World(receiver)

    assert world.send() == 7 * 60
    assert world.send(running) == 0
    assert world.records.load_pause("status") is None
    world.clock.set(until)
    receiver.answer = lambda _: Delivered()
    assert world.send() == 0
    assert [each.event for each in receiver.delivered] == [running, END]


def test_why_a_notice_is_held_is_an_alert_if_somebody_should_look_at_it() -> None:
    until = END.time + timedelta(minutes=7)
    world = World(answering(Held(until, "a right is missing", is_alert=True)))

    assert world.send() == 7 * 60
    assert [(decision, facts["is_alert"]) for decision, facts in world.log.lines] == [("notice held", True)]


def test_a_receiver_that_takes_nothing_is_left_alone_before_others_may_deliver() -> None:
    class WithoutPauses(InMemoryNotices):
        def save_pause(self, receiver: str, pause: ReceiverPause | None, replaced: ReceiverPause | None) -> None:
            raise TransientError(f"throttled: {receiver} {pause} {replaced}")

    world = World(answering(Postponed("no answer")), records=WithoutPauses())

    with pytest.raises(TransientError):
        world.send()

    assert world.records.load_record(END.job_id, "team").record.claimed_until == END.time + CLAIM


def test_what_was_tried_for_a_day_is_given_up_though_the_receiver_is_left_alone() -> None:
    world = World(answering(Postponed("no answer")))
    world.send()
    world.clock.advance(timedelta(hours=24, seconds=1))

    assert world.send() == 0
    assert world.metrics.values(Metric.NOTICES_GIVEN_UP) == [1]


def test_a_bug_in_one_receiver_keeps_no_other_one_away_and_shows_no_secret() -> None:
    def fail(_: Notice) -> Outcome:
        raise RuntimeError("https://hooks.example.com/secret")

    healthy = FakeReceiver(Subscription(name="up"))
    world = World(FakeReceiver(TEAM, fail), healthy)

    assert world.send() > 0
    assert len(healthy.delivered) == 1
    assert "secret" not in str(world.log.lines)


class Failing(InMemoryNotices):
    """A table whose loads fail for one receiver, or whose saves after a delivery conflict."""

    conflicts = 0

    def load_record(self, job_id: str, receiver: str) -> Any:
        if receiver == "unreadable":
            raise TransientError("throttled")
        return super().load_record(job_id, receiver)

    def save_record(self, job_id: str, receiver: str, stored: Any, now: Any) -> Any:
        if self.conflicts > 0 and (stored.record.said or stored.record.claimed_until is None):
            self.conflicts -= 1
            raise StaleWriteError("changed")
        return super().save_record(job_id, receiver, stored, now)


def test_what_cannot_be_read_for_one_receiver_keeps_no_other_one_away() -> None:
    healthy = FakeReceiver(TEAM)
    world = World(FakeReceiver(Subscription(name="unreadable")), healthy, records=Failing())

    with pytest.raises(TransientError):
        world.send()
    assert len(healthy.delivered) == 1


@pytest.mark.parametrize("conflicts", [1, 4])
def test_a_delivery_is_saved_over_what_others_saved_meanwhile(conflicts: int) -> None:
    records = Failing()
    receiver = FakeReceiver(TEAM)
    world = World(receiver, records=records)
    records.conflicts = conflicts

    assert world.send() == 0
    assert world.send() == 0
    assert len(receiver.delivered) == 1


def test_a_delivery_that_cannot_be_saved_comes_again_with_the_same_identity() -> None:
    records = Failing()
    receiver = FakeReceiver(TEAM)
    world = World(receiver, records=records)
    records.conflicts = 5

    with pytest.raises(TransientError):
        world.send()
    assert world.send() == CLAIM.total_seconds()
    world.clock.advance(CLAIM)
    assert world.send() == 0
    first, second = receiver.delivered
    assert first.notice_id == second.notice_id


def test_a_claim_that_cannot_be_ended_ends_by_itself() -> None:
    records = Failing()
    receiver = answering(Postponed("busy"))
    world = World(receiver, records=records)
    records.conflicts = 1

    assert world.send() > 0
    assert "claim left to end by itself" in world.log.decisions


def test_a_record_that_always_conflicts_is_tried_again_later() -> None:
    class Conflicting(InMemoryNotices):
        def save_record(self, job_id: str, receiver: str, stored: Any, now: Any) -> Any:
            del job_id, receiver, stored, now
            raise StaleWriteError("changed")

    assert World(FakeReceiver(TEAM), records=Conflicting()).send() == 5
