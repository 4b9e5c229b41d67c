"""Metrics as CloudWatch reads them from a function's log."""

import json
from typing import Any

import pytest

from relaunch import collector
from relaunch.bootstrap import emf_metrics, with_metrics
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.observability import EmfMetrics


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> EmfMetrics:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "observe_task")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Other")
    return EmfMetrics()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return what was written, without the times of writing."""
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in written:
        assert isinstance(line["_aws"].pop("Timestamp"), int)
    return written


def directive(dimensions: list[str], *metrics: tuple[str, str]) -> dict[str, Any]:
    named = [{"Name": name, "Unit": unit} for name, unit in metrics]
    return {"CloudWatchMetrics": [{"Namespace": "Relaunch", "Dimensions": [dimensions], "Metrics": named}]}


def test_measures_are_written_once_in_one_line_per_dimension(
    metrics: EmfMetrics, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics.record(MetricDatum(Metric.TASKS_LAUNCHED), MetricDatum(Metric.STOPS, label="unknown"))
    metrics.record(MetricDatum(Metric.EVENT_TO_RUN_TASK, 2.71828), MetricDatum(Metric.TASKS_LAUNCHED))
    metrics.record(MetricDatum(Metric.STOPS, label="success"))
    metrics.flush()
    metrics.flush()

    assert lines(capsys) == [
        {
            "_aws": directive([], ("TasksLaunched", "Count"), ("EventToRunTask", "Seconds")),
            "TasksLaunched": [1.0, 1.0],
            "EventToRunTask": [2.718],
        },
        {"_aws": directive(["kind"], ("Stops", "Count")), "kind": "unknown", "Stops": [1.0]},
        {"_aws": directive(["kind"], ("Stops", "Count")), "kind": "success", "Stops": [1.0]},
    ]


def test_nothing_recorded_is_nothing_written(metrics: EmfMetrics, capsys: pytest.CaptureFixture[str]) -> None:
    metrics.flush()

    assert capsys.readouterr().out == ""


def test_no_line_has_more_values_than_cloudwatch_takes(metrics: EmfMetrics, capsys: pytest.CaptureFixture[str]) -> None:
    metrics.record(*[MetricDatum(Metric.EVENT_TO_RUN_TASK, number) for number in range(250)])
    metrics.flush()

    written = [line["EventToRunTask"] for line in lines(capsys)]
    assert max(len(values) for values in written) <= 100
    assert [value for values in written for value in values] == list(range(250))


def test_a_handler_writes_its_metrics_and_wakes_the_collector_also_when_it_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[bool] = []
    monkeypatch.setattr(collector, "wake", lambda: woken.append(True))
    # They are those of the process, in which another test may have recorded some.
    emf_metrics().flush()
    capsys.readouterr()

    @with_metrics
    def handle(event: dict[str, bool], _context: object) -> str:
        emf_metrics().record(MetricDatum(Metric.JOBS_ACCEPTED))
        if event["fails"]:
            raise RuntimeError("a bug")
        return "answer"

    assert handle({"fails": False}, None) == "answer"
    with pytest.raises(RuntimeError):
        handle({"fails": True}, None)

    assert [line["JobsAccepted"] for line in lines(capsys)] == [[1.0], [1.0]]
    assert woken == [True, True]
    assert handle.__name__ == "handle"
