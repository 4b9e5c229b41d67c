"""The dashboard and the alarms of the template, and what they name, held to what the code emits."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from architecture.conftest import REPOSITORY, Template, referred
from relaunch.core.jobs.job import JobState, StopKind
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.lifecycle.metrics import METRICS, NAMESPACE, Metric, Unit

QUEUES = {"intake", "attempts", "warnings", "task-changes"}
SEARCH = re.compile(r"SEARCH\('\{(\w+),(\w+)\} MetricName=\"(\w+)\"', 'Sum', 300\)")
AWS_METRICS = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName"),
    ("AWS/Lambda", "Errors", "FunctionName"),
    ("AWS/Lambda", "Invocations", "FunctionName"),
    ("AWS/Lambda", "Throttles", "FunctionName"),
    ("AWS/Lambda", "UrlRequestCount", "FunctionName"),
    ("AWS/Lambda", "Url4xxCount", "FunctionName"),
    ("AWS/Lambda", "Url5xxCount", "FunctionName"),
}


@pytest.fixture(scope="module")
def alarms(template: Template) -> dict[str, dict[str, Any]]:
    return template.of_type("CloudWatch::Alarm")


@pytest.fixture(scope="module")
def widgets(template: Template) -> list[dict[str, Any]]:
    (dashboard,) = template.of_type("CloudWatch::Dashboard").values()
    parsed: list[dict[str, Any]] = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    return parsed


def shown(widgets: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (namespace, metric, dimension, its value) of everything the dashboard draws; a search has no value."""
    for widget in widgets:
        for metric in widget["properties"].get("metrics", ()):
            named = [each for each in metric if isinstance(each, str)]
            if named:
                assert len(named) in (2, 4), metric
                yield (*named, "", "")[:4]  # type: ignore[misc]
            else:
                found = SEARCH.fullmatch(metric[0]["expression"])
                assert found is not None, metric
                yield found[1], found[3], found[2], ""


def labels_of(metric: Metric) -> set[str]:
    """Return every value of a metric's dimension that the template may name."""
    return {
        "event": {event.__name__ for event in get_args(JobEvent)},
        "state": {state.value for state in JobState if state.is_final},
        "kind": {kind.value for kind in StopKind},
        "queue": QUEUES,
    }.get(METRICS[metric].dimension, {""})


def assert_emitted(metric: str, dimension: str, label: str) -> None:
    assert metric in set(Metric), metric
    assert dimension == METRICS[Metric(metric)].dimension, metric
    assert not label or label in labels_of(Metric(metric)), (metric, label)


def test_every_metric_on_the_dashboard_is_one_that_is_emitted(widgets: list[dict[str, Any]]) -> None:
    for namespace, metric, dimension, label in shown(widgets):
        if namespace == NAMESPACE:
            assert_emitted(metric, dimension, label)
        else:
            assert (namespace, metric, dimension) in AWS_METRICS


def test_every_metric_that_is_emitted_is_on_the_dashboard(widgets: list[dict[str, Any]]) -> None:
    drawn = {metric for namespace, metric, _, _ in shown(widgets) if namespace == NAMESPACE}

    assert drawn == {metric.value for metric in Metric}


def test_queues_and_functions_are_drawn_completely(template: Template, widgets: list[dict[str, Any]]) -> None:
    drawn = set(shown(widgets))
    dead = {queue for queue in template.queues if "DeadLetter" in queue}

    for queue in template.queues:
        metric = "ApproximateNumberOfMessagesVisible" if queue in dead else "ApproximateAgeOfOldestMessage"
        assert ("AWS/SQS", metric, "QueueName", f"${{{queue}.QueueName}}") in drawn
    for function in template.functions:
        assert ("AWS/Lambda", "Errors", "FunctionName", f"${{{function}}}") in drawn
    ages = {label for _, metric, _, label in drawn if metric == Metric.QUEUE_AGE}
    assert ages == QUEUES


def test_times_are_drawn_by_percentiles_and_extremes_and_counts_by_sums(widgets: list[dict[str, Any]]) -> None:
    for widget in widgets:
        properties = widget["properties"]
        for metric in properties.get("metrics", ()):
            own = metric[-1] if isinstance(metric[-1], dict) else {}
            if metric[0] == NAMESPACE and METRICS[Metric(metric[1])].unit is Unit.SECONDS:
                assert own.get("stat", properties["stat"]) != "Sum", metric


def test_widgets_overlap_nowhere(widgets: list[dict[str, Any]]) -> None:
    taken = [
        (column, row)
        for widget in widgets
        for column in range(widget["x"], widget["x"] + widget["width"])
        for row in range(widget["y"], widget["y"] + widget["height"])
    ]

    assert len(taken) == len(set(taken))
    assert max(column for column, _ in taken) < 24


def test_every_alarm_is_on_the_dashboard(alarms: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    (names,) = (widget["properties"]["alarms"] for widget in widgets if widget["type"] == "alarm")

    assert sorted(names) == sorted(f"${{{name}.Arn}}" for name in alarms)


def test_every_alarm_watches_a_metric_that_there_is(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        dimensions = {each["Name"]: each["Value"] for each in alarm.get("Dimensions", ())}
        if alarm["Namespace"] == NAMESPACE:
            ((dimension, label),) = dimensions.items() or {"": ""}.items()
            assert_emitted(alarm["MetricName"], dimension, label)
        else:
            ((dimension, _),) = dimensions.items()
            assert (alarm["Namespace"], alarm["MetricName"], dimension) in AWS_METRICS, name


def watched(alarms: dict[str, Any], metric: str) -> set[str]:
    """Return the queues or functions that have an alarm on this metric."""
    return {
        referred(each["Value"])
        for alarm in alarms.values()
        if alarm["MetricName"] == metric
        for each in alarm["Dimensions"]
    }


def test_every_queue_and_every_function_has_its_alarm(template: Template, alarms: dict[str, Any]) -> None:
    dead = {queue for queue in template.queues if "DeadLetter" in queue}

    assert watched(alarms, "ApproximateNumberOfMessagesVisible") == dead
    assert watched(alarms, "ApproximateAgeOfOldestMessage") == set(template.queues) - dead
    assert watched(alarms, "Errors") == set(template.functions)


def test_a_warning_is_late_when_the_training_has_less_than_its_ninety_seconds(alarms: dict[str, Any]) -> None:
    late = alarms["WarningsLateAlarm"]

    assert (late["MetricName"], late["Statistic"]) == (Metric.WARNING_TO_STOP, "Maximum")
    assert 120 - late["Threshold"] >= 90
    assert alarms["WarningsAgeAlarm"]["Period"] == late["Period"] == 60


def test_a_refresh_has_failed_when_all_its_tries_have_and_the_alarm_sees_them_together(
    template: Template, alarms: dict[str, Any]
) -> None:
    (retries,) = (
        each["MaximumRetryAttempts"]
        for each in template.of_type("Lambda::EventInvokeConfig").values()
        if each["FunctionName"] == {"Ref": "RefreshOfferingsFunction"}
    )
    failed = alarms["RefreshOfferingsErrorsAlarm"]
    # Lambda waits a minute before the second try, and two before the third.
    longest = (1 + retries) * template.functions["RefreshOfferingsFunction"]["Timeout"] + 60 + 120

    assert (failed["Threshold"], failed["ComparisonOperator"]) == (retries, "GreaterThanThreshold")
    # Periods begin at full hours: shorter ones part what belongs together.
    assert longest < failed["Period"] == 3600


def test_alarms_tell_the_topic_if_there_is_one_and_nothing_is_alarming_about_silence(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        tells = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
        assert alarm["AlarmActions"] == tells, name
        # reconcile is called every minute: its silence is what that alarm is for.
        wanted = "breaching" if name == "ReconcileSilentAlarm" else "notBreaching"
        assert alarm["TreatMissingData"] == wanted, name


def test_what_is_watched_can_be_left_out(template: Template) -> None:
    watching = {
        name: resource.get("Condition")
        for name, resource in template.resources.items()
        if resource["Type"].startswith("AWS::CloudWatch::")
    }

    assert set(watching.values()) == {"HasMonitoring"}
    assert template.parameters["Monitoring"]["Default"] == "true"
    assert template.parameters["AlarmTopicArn"]["Default"] == ""


@pytest.mark.parametrize(
    ("arn", "is_taken"),
    [
        ("", True),
        ("arn:aws:sns:us-east-1:111122223333:alarms", True),
        ("arn:aws-cn:sns:cn-north-1:111122223333:a.fifo", True),
        ("alarms", False),
        ("arn:aws:sqs:us-east-1:111122223333:alarms", False),
    ],
)
def test_only_a_topic_is_taken_for_one(template: Template, arn: str, *, is_taken: bool) -> None:
    pattern = template.parameters["AlarmTopicArn"]["AllowedPattern"]

    assert (re.fullmatch(pattern, arn) is not None) == is_taken


def test_functions_know_how_often_a_message_is_tried(template: Template) -> None:
    for function in template.functions.values():
        variables = function["Environment"]["Variables"]
        assert variables["RELAUNCH_MAX_RECEIVE_COUNT"] == {"Ref": "MaxReceiveCount"}


def test_the_queues_are_named_as_their_functions_name_them() -> None:
    sources = [path.read_text() for path in (REPOSITORY / "functions").glob("*/handler.py")]

    assert {name for source in sources for name in re.findall(r'\.meter\("([^"]+)"\)', source)} == QUEUES


def test_every_metric_and_every_alarm_is_explained(alarms: dict[str, Any]) -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text()

    assert [name for name in (*Metric, *alarms) if f"`{name}`" not in page] == []


def test_the_page_explains_nothing_that_is_not_there(alarms: dict[str, Any]) -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    explained = set(re.findall(r"^\| `([A-Z]\w+)`", page, re.MULTILINE))

    assert explained <= {*Metric, *alarms}
