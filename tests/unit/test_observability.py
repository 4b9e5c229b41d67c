"""Metrics as CloudWatch reads them from a function's log."""

import json
from typing import Any

import pytest

from relaunch.bootstrap import emf_measures, measured
from relaunch.core.lifecycle.metrics import Measure, Metric
from relaunch.observability import EmfMeasures


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> EmfMeasures:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "observe_task")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Other")
    return EmfMeasures()


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
    measures: EmfMeasures, capsys: pytest.CaptureFixture[str]
) -> None:
    measures.record(Measure(Metric.TASKS_LAUNCHED), Measure(Metric.STOPS, label="unknown"))
    measures.record(Measure(Metric.EVENT_TO_RUN_TASK, 2.71828), Measure(Metric.TASKS_LAUNCHED))
    measures.record(Measure(Metric.STOPS, label="success"))
    measures.flush()
    measures.flush()

    assert lines(capsys) == [
        {
            "_aws": directive([], ("TasksLaunched", "Count"), ("EventToRunTask", "Seconds")),
            "TasksLaunched": [1.0, 1.0],
            "EventToRunTask": [2.718],
        },
        {"_aws": directive(["kind"], ("Stops", "Count")), "kind": "unknown", "Stops": [1.0]},
        {"_aws": directive(["kind"], ("Stops", "Count")), "kind": "success", "Stops": [1.0]},
    ]


def test_nothing_recorded_is_nothing_written(measures: EmfMeasures, capsys: pytest.CaptureFixture[str]) -> None:
    measures.flush()

    assert capsys.readouterr().out == ""


def test_no_line_has_more_values_than_cloudwatch_takes(
    measures: EmfMeasures, capsys: pytest.CaptureFixture[str]
) -> None:
    measures.record(*[Measure(Metric.QUEUE_AGE, number, "intake") for number in range(250)])
    measures.flush()

    written = [line["QueueAge"] for line in lines(capsys)]
    assert max(len(values) for values in written) <= 100
    assert [value for values in written for value in values] == list(range(250))


def test_a_handler_writes_its_metrics_also_when_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    @measured
    def handle(event: dict[str, bool], _context: object) -> str:
        emf_measures().record(Measure(Metric.JOBS_ACCEPTED))
        if event["fails"]:
            raise RuntimeError("a bug")
        return "answer"

    assert handle({"fails": False}, None) == "answer"
    with pytest.raises(RuntimeError):
        handle({"fails": True}, None)

    assert [line["JobsAccepted"] for line in lines(capsys)] == [[1.0], [1.0]]
    assert handle.__name__ == "handle"
