"""Receivers of notices over hours: one is down, events come twice and in any order, functions die."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.metrics import ListMetrics
from fakes.notices import FakeReceiver, FakeReceivers, make_life
from fakes.sources import ListLog
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.ports import NoticeDependencies, NotYetError, TransientError
from relaunch.ports.notices import Delivered, Outcome, Postponed, StoredRecord
from relaunch.usecases.send_notices import send_notices
from relaunch_local.in_memory.notices import InMemoryNotices

JOBS = 50
DOWN = timedelta(hours=6)
ENDS = frozenset({NoticeKind.FINISHED, NoticeKind.FAILED})
EVERYTHING = frozenset(NoticeKind)


@dataclass
class Queue:
    """The queue `notices` and its function: messages come back when they are to, and are handled in any order."""

    receivers: list[FakeReceiver]
    chance: random.Random
    clock: FakeClock = field(default_factory=FakeClock)
    records: InMemoryNotices = field(default_factory=InMemoryNotices)
    log: ListLog = field(default_factory=ListLog)
    metrics: ListMetrics = field(default_factory=ListMetrics)
    waiting: list[tuple[datetime, JobStateChange]] = field(default_factory=list)
    handled: int = 0

    def put(self, event: JobStateChange, *, late: timedelta = timedelta()) -> None:
        """Put a message, which is delivered so late."""
        self.waiting.append((event.time + late, event))

    def run(self) -> None:
        """Handle messages until there are none."""
        while self.waiting:
            now = min(at for at, _ in self.waiting)
            self.clock.set(max(now, self.clock.now()))
            due = [each for each in self.waiting if each[0] <= self.clock.now()]
            message = self.chance.choice(due)
            self.waiting.remove(message)
            self.handle(message[1])

    def handle(self, event: JobStateChange) -> None:
        """Hand an event to the function, which may be asked again later."""
        self.handled += 1
        assert self.handled < 50_000, "messages go round for ever"
        deps = NoticeDependencies(
            notice_records=self.records,
            receivers=FakeReceivers(self.receivers),
            clock=self.clock,
            log=self.log,
            metrics=self.metrics,
        )
        try:
            send_notices(event, deps)
        except NotYetError as early:
            # SQS delays a message by 15 minutes at most.
            self.waiting.append((self.clock.now() + timedelta(seconds=min(early.seconds, 900)), event))
        except TransientError:
            self.waiting.append((self.clock.now() + timedelta(seconds=5), event))


def down_until(clock: FakeClock, end: datetime) -> FakeReceiver:
    def answer(_: Notice) -> Outcome:
        return Delivered() if clock.now() >= end else Postponed("no answer from hooks.example.com")

    return FakeReceiver(Subscription(name="down", kinds=EVERYTHING), answer)


def settled(receiver: FakeReceiver, job_id: str) -> list[Notice]:
    """What a receiver was sent about a job, but for its waits."""
    return [each for each in receiver.about(job_id) if each.kind is not NoticeKind.WAITS_TOO_LONG]


def assert_never_backwards(receiver: FakeReceiver, job_id: str) -> None:
    sequences = [each.event.sequence for each in settled(receiver, job_id)]
    assert all(before < after for before, after in pairwise(sequences)), job_id


def test_a_receiver_that_was_down_for_six_hours_gets_the_end_of_each_of_50_jobs_once() -> None:
    chance = random.Random(20261127)  # noqa: S311 - no secret
    clock = FakeClock(NOW)
    down = down_until(clock, NOW + DOWN)
    up = FakeReceiver(Subscription(name="up", kinds=EVERYTHING))
    dead = FakeReceiver(Subscription(name="dead"), lambda _: Postponed("no answer from dead.example.com"))
    queue = Queue([dead, down, up], chance, clock)
    lives = {}
    for number in range(JOBS):
        job_id = f"resnet-{number:08x}"
        end = chance.choice([JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT])
        start = NOW + timedelta(minutes=chance.randrange(60))
        lives[job_id] = make_life(job_id, chance.randrange(4), end, start)
        for event in lives[job_id]:
            # EventBridge delivers at least once and in any order.
            for _ in range(chance.choice([1, 1, 2, 3])):
                queue.put(event, late=timedelta(seconds=chance.randrange(400)))

    queue.run()

    for job_id, life in lives.items():
        for receiver in (up, down):
            ends = [each for each in receiver.about(job_id) if each.kind in ENDS]
            assert [each.event for each in ends] == [life[-1]], (receiver.subscription.name, job_id)
            assert receiver.about(job_id)[-1] == ends[0]
            assert_never_backwards(receiver, job_id)
    # What was between is a number in the end.
    interrupted = sum(each.kind is NoticeKind.INTERRUPTED for each in down.delivered)
    assert interrupted < sum(each.kind is NoticeKind.INTERRUPTED for each in up.delivered)
    # The dead one is asked seldom, gets nothing, and somebody is alerted once for it, and for each end.
    assert dead.delivered == []
    assert dead.tries < 400
    postponed = [facts for decision, facts in queue.log.lines if decision == "notice postponed"]
    assert sum(facts["receiver"] == "dead" and facts["is_alert"] is True for facts in postponed) == 1
    given_up = [facts for decision, facts in queue.log.lines if decision == "notice given up"]
    assert {facts["receiver"] for facts in given_up} == {"dead"}
    assert {facts["job_id"] for facts in given_up} == set(lives)
    assert len(queue.metrics.of(Metric.NOTICES_GIVEN_UP)) == len(given_up)


def test_a_dead_receiver_delays_no_other_one() -> None:
    dead = FakeReceiver(Subscription(name="a-dead"), lambda _: Postponed("no answer from dead.example.com"))
    up = FakeReceiver(Subscription(name="up"))
    queue = Queue([dead, up], random.Random(1))  # noqa: S311 - no secret
    (*_, end) = make_life("resnet-00000001", 0, JobState.FAILED)
    queue.clock.set(end.time)

    queue.handle(end)

    assert [each.kind for each in up.delivered] == [NoticeKind.FAILED]


class DyingRecords(InMemoryNotices):
    """A table that fails now and then, before or after it took a write."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def save_record(self, job_id: str, receiver: str, stored: StoredRecord, now: datetime) -> StoredRecord:
        fate = self.chance.random()
        if fate < 0.05:
            raise TransientError("throttled")
        saved = super().save_record(job_id, receiver, stored, now)
        if fate < 0.1:
            raise TransientError("the answer was lost")
        return saved


@pytest.mark.parametrize("seed", range(40))
def test_in_any_order_with_duplicates_and_failures_nothing_goes_backwards_and_the_end_comes(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    is_failing = bool(seed % 2)

    def answer(_: Notice) -> Outcome:
        fate = chance.random()
        if fate < 0.15:
            return Postponed("busy")
        if is_failing and fate < 0.2:
            raise RuntimeError("a bug")
        return Delivered("thread")

    kinds = frozenset(chance.sample(sorted(NoticeKind), 4)) | ENDS
    person = FakeReceiver(Subscription(name="person", kinds=kinds), answer)
    status = FakeReceiver(Subscription(name="status", wants_states=True), answer)
    records = DyingRecords(chance) if is_failing else InMemoryNotices()
    queue = Queue([person, status], chance, records=records)
    lives = [
        make_life(f"resnet-{number:08x}", chance.randrange(5), chance.choice([JobState.SUCCEEDED, JobState.FAILED]))
        for number in range(4)
    ]
    for life in lives:
        for event in life:
            for _ in range(chance.choice([1, 1, 2, 4])):
                queue.put(event, late=timedelta(seconds=chance.choice([0, 1, 60, 4_000])))

    queue.run()

    for life in lives:
        assert_kept(person, life, is_failing=is_failing)
        assert_kept(status, life, is_failing=is_failing)
        assert {each.notice_id for each in status.about(life[0].job_id)} <= {f"{each.id}:state" for each in life}


def assert_kept(receiver: FakeReceiver, life: list[JobStateChange], *, is_failing: bool) -> None:
    about = settled(receiver, life[0].job_id)
    assert about[-1].event == life[-1]
    sequences = [each.event.sequence for each in about]
    # A notice whose delivery could not be saved comes twice; nothing older follows.
    assert sequences == sorted(sequences)
    ids = [each.notice_id for each in receiver.about(life[0].job_id)]
    assert is_failing or len(ids) == len(set(ids))
