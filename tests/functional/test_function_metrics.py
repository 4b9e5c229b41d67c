"""What the handlers themselves count."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.dependencies import make_dependencies
from fakes.functions import FakeContext, Functions
from fakes.metrics import ListMetrics
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.ports import NotGrantedError, TransientError

ON_THE_TENTH_MINUTE = NOW + timedelta(minutes=-NOW.minute % 10)


@pytest.mark.parametrize(
    ("minutes", "milliseconds", "counts"), [(0, 60_000, [2]), (1, 60_000, []), (0, 9_000, [])], ids=str
)
def test_reconcile_counts_dead_letters_every_ten_minutes_while_there_is_time(
    minutes: int, milliseconds: int, counts: list[int]
) -> None:
    clock, metrics = FakeClock(ON_THE_TENTH_MINUTE + timedelta(minutes=minutes)), ListMetrics()
    functions = Functions(make_dependencies(clock=clock, metrics=metrics))
    functions.watched.add("intake", "a message")
    functions.watched.add("warnings", "a warning")

    functions.invoke("reconcile", {}, FakeContext(milliseconds=milliseconds))

    assert metrics.values(Metric.DEAD_LETTERS) == counts


@pytest.mark.parametrize(
    ("event", "counts"),
    [
        pytest.param({"time": "2026-03-14T09:10:00Z"}, [1], id="of-the-tenth-minute"),
        pytest.param({"time": "2026-03-14T09:11:00Z"}, [], id="of-the-next"),
        pytest.param({"time": "ten past nine"}, [], id="by-somebody"),
        pytest.param(None, [], id="by-hand"),
    ],
)
def test_a_late_call_does_what_is_due_in_the_minute_of_its_event(event: object, counts: list[int]) -> None:
    # The call of the next minute may come before this one is over, so that none is of the tenth minute by the clock.
    clock = FakeClock(ON_THE_TENTH_MINUTE + timedelta(minutes=1, seconds=2))
    metrics = ListMetrics()
    functions = Functions(make_dependencies(clock=clock, metrics=metrics))
    functions.watched.add("intake", "a message")

    functions.invoke("reconcile", event)

    assert metrics.values(Metric.DEAD_LETTERS) == counts


def test_images_that_jobs_hold_are_read_once_a_week() -> None:
    functions = Functions(make_dependencies())

    assert "images" in functions.invoke("reconcile", {"time": "2026-03-18T03:33:00Z"})
    assert "images" not in functions.invoke("reconcile", {"time": "2026-03-18T03:34:00Z"})


def test_messages_that_fail_are_counted_under_the_name_of_their_queue() -> None:
    metrics = ListMetrics()
    deps = make_dependencies(metrics=metrics)
    deps.jobs.load_job = None  # type: ignore[assignment]  # a bug: it cannot be called

    assert Functions(deps).deliver("launch_attempt", '{"job_id": "resnet-1"}') == ['{"job_id": "resnet-1"}']
    assert metrics.of(Metric.MESSAGES_FAILED) == [MetricDatum(Metric.MESSAGES_FAILED, label="attempts")]


def test_a_message_that_fails_for_a_while_says_for_how_long() -> None:
    metrics = ListMetrics()
    deps = make_dependencies(metrics=metrics)

    def no_answer(_job_id: str) -> None:
        raise TransientError("no answer")

    deps.jobs.load_job = no_answer  # type: ignore[method-assign]

    assert Functions(deps).deliver("launch_attempt", '{"job_id": "resnet-1"}') == ['{"job_id": "resnet-1"}']
    assert metrics.values(Metric.MESSAGE_RETRY_TIME) == [0.0]


@pytest.mark.parametrize("error", [TransientError("no answer"), NotGrantedError("not allowed")])
def test_a_pass_of_reconcile_does_what_it_can_and_leaves_the_rest_to_the_next_one(error: Exception) -> None:
    metrics = ListMetrics()
    functions = Functions(make_dependencies(metrics=metrics))

    def fail(*_arguments: object) -> None:
        raise error

    functions.deps.machines.load_due = fail  # type: ignore[method-assign,assignment]

    answer = functions.invoke("reconcile", {})

    assert (answer["machines"], answer["looked_at"]) == (0, 0)
    assert metrics.values(Metric.JOBS_OVERDUE) == [0]
    assert [facts["part"] for decision, facts in functions.log.lines if decision == "failed"] == ["machines"]


def test_a_bug_in_reconcile_is_raised() -> None:
    functions = Functions()
    functions.deps.machines.load_due = None  # type: ignore[assignment]

    with pytest.raises(TypeError):
        functions.invoke("reconcile", {})
