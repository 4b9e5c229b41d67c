"""What the handlers themselves count."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.dependencies import make_dependencies
from fakes.functions import FakeContext, Functions
from fakes.metrics import ListMetrics
from relaunch.core.lifecycle.metrics import Metric, MetricDatum

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


def test_messages_that_fail_are_counted_under_the_name_of_their_queue() -> None:
    metrics = ListMetrics()
    deps = make_dependencies(metrics=metrics)
    deps.jobs.load_job = None  # type: ignore[assignment]  # a bug: it cannot be called

    assert Functions(deps).deliver("launch_attempt", '{"job_id": "resnet-1"}') == ['{"job_id": "resnet-1"}']
    assert metrics.of(Metric.MESSAGES_FAILED) == [MetricDatum(Metric.MESSAGES_FAILED, label="attempts")]
