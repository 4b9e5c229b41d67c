"""What changed of a job is sent, and holds the job up nowhere."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.metrics import ListMetrics
from fakes.story import Story, machine
from relaunch.core.jobs.changes import KEPT_UNSENT, MAX_UNSENT
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import due_at
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import Sent
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.reconcile_jobs import reconcile_jobs

AWAY = Sent(postponed="EventBridge is away")


@pytest.fixture
def story() -> Story:
    return Story()


def sent(story: Story) -> list[tuple[int, str]]:
    return [(each.sequence, each.state.value) for each in story.job_events.sent]


def counted(metrics: ListMetrics, metric: Metric) -> float:
    return sum(each.value for each in metrics.recorded if each.metric is metric)


def test_every_state_of_a_life_is_one_event(story: Story) -> None:
    job_id = story.launch()
    story.clock.advance(timedelta(hours=1))
    story.end(job_id)

    assert sent(story) == [(1, "WAITING"), (2, "LAUNCHING"), (3, "RUNNING"), (4, "SUCCEEDED")]
    assert story.job(job_id).outbox.unsent == ()
    assert due_at(story.job(job_id)) is None


def test_a_job_goes_on_while_eventbridge_is_away_and_its_end_is_sent_after_it_has_ended(story: Story) -> None:
    story.job_events.answer = AWAY
    job_id = story.launch()
    story.clock.advance(timedelta(hours=1))
    story.end(job_id)
    ended = story.job(job_id)

    assert ended.state is JobState.SUCCEEDED
    assert [each.sequence for each in ended.outbox.unsent] == [1, 2, 3, 4]
    assert due_at(ended) is not None

    story.job_events.answer = None
    story.clock.advance(timedelta(hours=1))
    assert reconcile_jobs(story.deps) == 1

    assert sent(story) == [(1, "WAITING"), (2, "LAUNCHING"), (3, "RUNNING"), (4, "SUCCEEDED")]
    assert due_at(story.job(job_id)) is None
    assert reconcile_jobs(story.deps) == 0


@pytest.mark.parametrize("answer", [None, AWAY])
def test_who_gets_a_launch_request_finds_a_job_that_nobody_saves_any_more(story: Story, answer: Sent | None) -> None:
    story.job_events.answer = answer
    found: list[int] = []
    ask = story.launches.request_launch

    def request_launch(job_id: str, delay_seconds: int = 0) -> None:
        found.append(story.job(job_id).version)
        ask(job_id, delay_seconds)

    story.launches.request_launch = request_launch  # type: ignore[method-assign]
    job_id = story.submit()

    assert found == [story.job(job_id).version]
    assert story.job(job_id).pending == (RequestLaunch(),)


def test_a_stop_is_asked_for_before_anything_is_sent(story: Story) -> None:
    job_id = story.launch()
    story.run(job_id, machine())
    order: list[str] = []
    stop = story.tasks.stop
    send = story.job_events.send
    story.tasks.stop = lambda *parts: (order.append("stop"), stop(*parts))[1]  # type: ignore[method-assign]
    story.job_events.send = lambda events: (order.append("send"), send(events))[1]  # type: ignore[method-assign]

    story.warn(machine().instance_id)

    assert story.job(job_id).state is JobState.STOPPING
    assert order == ["stop", "send"]


def test_what_is_taken_in_part_keeps_the_rest(story: Story) -> None:
    story.job_events.answer = AWAY
    job_id = story.launch()
    story.job_events.answer = Sent(frozenset({1, 3}), postponed="throttled")
    story.clock.advance(timedelta(minutes=2))

    reconcile_jobs(story.deps)

    assert [each.sequence for each in story.job(job_id).outbox.unsent] == [2]


def test_each_failed_try_waits_longer_and_is_counted(story: Story) -> None:
    story.job_events.answer = AWAY
    job_id = story.submit()
    tries = []
    for _ in range(30):
        story.clock.advance(timedelta(minutes=1))
        before = story.job_events.calls
        advance_job(job_id, lambda _job: None, story.deps)
        tries.append(story.job_events.calls - before)

    assert sum(tries) == 5  # after 1, 2, 4, 8 and 16 minutes
    assert counted(story.metrics, Metric.EVENTS_POSTPONED) == 6


def test_what_never_can_be_sent_is_given_up_with_an_alert(story: Story) -> None:
    story.job_events.answer = Sent(refused={1: "MalformedDetail"})
    job_id = story.submit()

    assert story.job(job_id).outbox.unsent == ()
    assert counted(story.metrics, Metric.EVENTS_GIVEN_UP) == 1
    (facts,) = [facts for decision, facts in story.log.lines if decision == "event given up"]
    assert (facts["job_id"], facts["sequence"], facts["is_alert"]) == (job_id, 1, True)

    story.job_events.answer = None
    cancel_job(job_id, "no more", story.deps)
    assert sent(story) == [(2, "CANCELLED")]


def test_what_was_not_taken_for_a_day_is_given_up(story: Story) -> None:
    story.job_events.answer = AWAY
    job_id = story.submit()
    cancel_job(job_id, "no more", story.deps)
    story.clock.advance(KEPT_UNSENT + timedelta(minutes=1))

    advance_job(job_id, lambda _job: None, story.deps)

    assert due_at(story.job(job_id)) is None
    assert counted(story.metrics, Metric.EVENTS_GIVEN_UP) == 2


def test_what_a_job_drops_because_it_keeps_too_many_is_said(story: Story) -> None:
    story.job_events.answer = AWAY
    job_id = story.submit()
    job = story.job(job_id)
    (first,) = job.outbox.unsent
    full = replace(job.outbox, sequence=MAX_UNSENT, unsent=tuple(replace(first, sequence=n + 1) for n in range(100)))
    story.jobs._records[job_id].job = replace(job, outbox=full)

    cancel_job(job_id, "no more", story.deps)

    assert [each.sequence for each in story.job(job_id).outbox.unsent] == list(range(2, MAX_UNSENT + 2))
    assert counted(story.metrics, Metric.EVENTS_GIVEN_UP) == 1


def test_a_function_that_died_before_it_sent_is_followed_by_the_schedule(story: Story) -> None:
    job_id = story.submit()
    job = story.job(job_id)
    story.job_events.answer = AWAY
    cancel_job(job_id, "no more", story.deps)
    story.job_events.answer = None
    story.job_events.sent.clear()

    story.clock.advance(timedelta(minutes=1))
    reconcile_jobs(story.deps)

    assert sent(story) == [(2, "CANCELLED")]
    assert story.job(job_id).version > job.version
