"""The dashboard and the alarms of the template, and what they name, held to what the code emits."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from architecture.conftest import REPOSITORY, Template, referred
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.changes import KEPT_UNSENT, LONGEST_RESEND
from relaunch.core.jobs.state import JobState, Refusal
from relaunch.core.lifecycle.decision import HEARTBEAT
from relaunch.core.lifecycle.metrics import COUNTED_AS, METRICS, NAMESPACE, Metric, Unit
from relaunch.core.lifecycle.refusal_waits import next_try
from relaunch.core.machines.machine import Consequence
from relaunch.core.machines.refusals import delay_before
from relaunch.entrypoints.consumers import CONSUMERS
from relaunch.usecases.reconcile_machines import is_instance_sweep_due
from relaunch.usecases.sweep_cluster import is_sweep_due

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)
PAGE = (REPOSITORY / "docs" / "operations.md").read_text()
QUEUES = set(CONSUMERS.values())
SEARCH = re.compile(r"SEARCH\('\{(\w+),(\w+)\} MetricName=\"(\w+)\"', 'Sum', 300\)")
# What an account has free of each ("Amazon CloudWatch Pricing").
FREE_ALARMS = 10
FREE_DASHBOARDS = 3
FREE_METRICS_OF_A_DASHBOARD = 50
AWS_METRICS = {
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName"),
    ("AWS/Lambda", "Errors", "FunctionName"),
    ("AWS/Lambda", "Throttles", "FunctionName"),
    ("AWS/Lambda", "UrlRequestCount", "FunctionName"),
    ("AWS/Lambda", "Url4xxCount", "FunctionName"),
    ("AWS/Lambda", "Url5xxCount", "FunctionName"),
}


@pytest.fixture(scope="module")
def alarms(template: Template) -> dict[str, dict[str, Any]]:
    return template.of_type("CloudWatch::Alarm")


@pytest.fixture(scope="module")
def dashboards(template: Template) -> dict[str, list[dict[str, Any]]]:
    found = template.of_type("CloudWatch::Dashboard")
    return {name: json.loads(body_of(each["DashboardBody"]["Fn::Sub"]))["widgets"] for name, each in found.items()}


def body_of(substitution: Any) -> str:
    """The text of a dashboard, with all that a condition can leave out of it."""
    if isinstance(substitution, str):
        return substitution
    text, known = substitution
    for name, value in known.items():
        text = text.replace(f"${{{name}}}", value["Fn::If"][1]["Fn::Sub"])
    return str(text)


@pytest.fixture(scope="module")
def widgets(dashboards: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [widget for widgets in dashboards.values() for widget in widgets]


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
    unlabelled = {*COUNTED_AS, StopKind.MOVED, StopKind.OVER_BUDGET}
    return {
        "state": {state.value for state in JobState if state.is_final},
        "kind": {kind.value for kind in StopKind if kind not in unlabelled},
        "queue": QUEUES,
        "consequence": {each.value for each in Consequence},
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


def test_every_metric_is_recorded_somewhere() -> None:
    sources = [path.read_text() for path in (REPOSITORY / "layers" / "relaunch" / "relaunch").rglob("*.py")]
    recorded = {name for source in sources for name in re.findall(r"MetricDatum\(Metric\.(\w+)", source)}

    assert recorded == {metric.name for metric in Metric}


def test_stacks_of_one_name_in_two_regions_have_dashboards_of_their_own(template: Template) -> None:
    """CloudWatch has dashboards once for all regions of an account."""
    for each in template.of_type("CloudWatch::Dashboard").values():
        assert each["DashboardName"]["Fn::Sub"].startswith("${AWS::StackName}-${AWS::Region}")


def test_no_dashboard_has_more_metrics_than_are_free(dashboards: dict[str, list[dict[str, Any]]]) -> None:
    assert len(dashboards) <= FREE_DASHBOARDS
    for name, widgets in dashboards.items():
        # A statistic counts as a metric, and a search as all that it may find.
        counts = [
            1 if label or namespace != NAMESPACE else len(labels_of(Metric(metric)))
            for namespace, metric, _, label in shown(widgets)
        ]
        assert sum(counts) <= FREE_METRICS_OF_A_DASHBOARD, name


def test_the_page_counts_the_metrics_and_what_they_cost_at_most() -> None:
    labels = {metric: len(labels_of(metric)) for metric in Metric}
    total = sum(labels.values())
    plain = sum(not METRICS[metric].dimension for metric in Metric)
    said = " ".join(PAGE.split())

    assert f"There are {total} in all: eleven kinds of `Stops`" in said
    assert f"and {plain} without a dimension" in said
    assert f"more than {(total - 10) * 0.3:.2f} USD cannot be, if all {total} were sent" in said
    assert (labels[Metric.STOPS], labels[Metric.JOBS_ENDED], labels[Metric.MESSAGES_FAILED]) == (11, 4, 6)


def test_queues_and_functions_are_drawn_completely(template: Template, widgets: list[dict[str, Any]]) -> None:
    drawn = set(shown(widgets))

    for queue in set(template.queues) - template.dead_letter_queues:
        assert ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", f"${{{queue}.QueueName}}") in drawn
    for function in template.functions:
        assert ("AWS/Lambda", "Errors", "FunctionName", f"${{{function}}}") in drawn


def test_times_are_drawn_by_percentiles_and_extremes_and_counts_by_sums(widgets: list[dict[str, Any]]) -> None:
    for widget in widgets:
        properties = widget["properties"]
        for metric in properties.get("metrics", ()):
            own = metric[-1] if isinstance(metric[-1], dict) else {}
            if metric[0] == NAMESPACE and METRICS[Metric(metric[1])].unit is Unit.SECONDS:
                assert own.get("stat", properties["stat"]) != "Sum", metric


def test_widgets_overlap_nowhere(dashboards: dict[str, list[dict[str, Any]]]) -> None:
    taken = [
        (column, row, name)
        for name, widgets in dashboards.items()
        for widget in widgets
        for column in range(widget["x"], widget["x"] + widget["width"])
        for row in range(widget["y"], widget["y"] + widget["height"])
    ]

    assert len(taken) == len(set(taken))
    assert max(column for column, *_ in taken) < 24


def test_every_alarm_is_on_a_dashboard(alarms: dict[str, Any], widgets: list[dict[str, Any]]) -> None:
    names = [name for widget in widgets if widget["type"] == "alarm" for name in widget["properties"]["alarms"]]

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


def test_there_are_no_more_alarms_than_are_free_but_six_and_two_with_machines_two_with_a_webhook_and_one_with_notices(
    template: Template, alarms: dict[str, Any]
) -> None:
    paid = {
        condition: [name for name in alarms if template.resources[name]["Condition"] == condition]
        for condition in ("WatchesMachines", "WatchesInstances", "WatchesWebhook", "WatchesNotices")
    }

    assert paid == {
        "WatchesMachines": ["MachinesAgeAlarm"],
        "WatchesInstances": ["MachineAlertsAlarm"],
        "WatchesWebhook": ["WebhookFailuresAlarm", "WebhookThrottlesAlarm"],
        "WatchesNotices": ["NoticesGivenUpAlarm"],
    }
    assert len(alarms) - sum(map(len, paid.values())) <= FREE_ALARMS + 6
    for name, alarm in alarms.items():
        # An alarm on an expression is paid for each of its metrics, and one of high resolution three times.
        assert "Metrics" not in alarm, name
        assert alarm["Period"] >= 60, name


def test_every_queue_has_an_alarm_on_its_age(template: Template, alarms: dict[str, Any]) -> None:
    watched = {
        referred(each["Value"])
        for alarm in alarms.values()
        if alarm["MetricName"] == "ApproximateAgeOfOldestMessage"
        for each in alarm["Dimensions"]
    }

    # Uploads and messages of topics wait while thousands come at once, and events of jobs until a job waits too long;
    # one more alarm would not be free.
    assert watched == set(template.queues) - template.dead_letter_queues - {"UploadsQueue", "NoticesQueue", "SnsQueue"}


def test_reconcile_counts_and_may_count_what_is_in_every_dead_letter_queue(
    template: Template, alarms: dict[str, Any]
) -> None:
    variables = template.functions["ReconcileFunction"]["Environment"]["Variables"]
    separator, urls = variables["RELAUNCH_WATCHED_QUEUE_URLS"]["Fn::Join"]
    allowed = [referred(each) for each in template.resources_for("sqs:GetQueueAttributes", "ReconcileFunction")]

    assert separator == ","
    assert [referred(url) for url in urls] == allowed
    assert set(allowed) == template.dead_letter_queues
    assert alarms["DeadLettersAlarm"]["MetricName"] == Metric.DEAD_LETTERS


def test_a_warning_is_late_when_the_training_has_less_than_its_ninety_seconds(alarms: dict[str, Any]) -> None:
    late = alarms["WarningsLateAlarm"]

    assert (late["MetricName"], late["Statistic"]) == (Metric.WARNING_TO_STOP, "Maximum")
    assert 120 - late["Threshold"] >= 90
    assert alarms["WarningsAgeAlarm"]["Period"] == late["Period"] == 60


def test_jobs_are_overdue_when_ten_passes_in_a_row_left_some_or_did_not_come(
    template: Template, alarms: dict[str, Any]
) -> None:
    overdue = alarms["JobsOverdueAlarm"]

    assert template.rules["ReconcileFunctionSchedule"]["ScheduleExpression"] == "rate(1 minute)"
    assert (overdue["MetricName"], overdue["Period"], overdue["EvaluationPeriods"]) == (Metric.JOBS_OVERDUE, 60, 10)
    assert "DatapointsToAlarm" not in overdue


def test_what_a_sweep_finds_is_looked_at_once_per_sweep(alarms: dict[str, Any]) -> None:
    sweeps = [minute for minute in range(60) if is_sweep_due(datetime(2026, 3, 14, 9, minute, tzinfo=UTC))]

    assert {b - a for a, b in pairwise(sweeps)} == {10}
    assert {alarms[name]["Period"] for name in ("DeadLettersAlarm", "IdleMachinesAlarm")} == {600}


def test_an_alert_of_a_machine_alarms_until_its_cause_is_gone(alarms: dict[str, Any]) -> None:
    alert, hour = alarms["MachineAlertsAlarm"], datetime(2026, 3, 14, 9, tzinfo=UTC)
    sweeps = [minute for minute in range(60) if is_instance_sweep_due(hour.replace(minute=minute))]

    assert (alert["MetricName"], alert["Statistic"], alert["Threshold"]) == (Metric.MACHINE_ALERTS, "Sum", 0)
    assert alert["ComparisonOperator"] == "GreaterThanThreshold"
    # What goes on being refused is asked for again after a pause, and what leaked is found again by each sweep.
    pauses = [delay_before(Consequence.PAUSE, timedelta(hours=1), f"resnet-{number}") for number in range(100)]
    assert alert["Period"] >= max(pauses).total_seconds()
    assert alert["Period"] >= 60 * max(b - a for a, b in pairwise(sweeps))


def test_a_refused_job_alarms_for_as_long_as_its_free_calls_are_repeated(alarms: dict[str, Any]) -> None:
    refused, waited = alarms["JobsRefusedAlarm"], timedelta(hours=9)
    following = next_try(Refusal(NOW, NOW + waited), has_trained=True, is_bought=False)

    assert (refused["MetricName"], refused["Statistic"], refused["Threshold"]) == (Metric.JOBS_REFUSED, "Sum", 0)
    assert following is not None
    assert refused["Period"] >= (following.until - NOW - waited).total_seconds()


def test_a_training_that_stalls_alarms_when_it_is_counted(alarms: dict[str, Any]) -> None:
    stalled = alarms["TrainingStalledAlarm"]

    assert (stalled["MetricName"], stalled["Statistic"], stalled["Threshold"]) == (Metric.TRAININGS_STALLED, "Sum", 0)


def test_a_cluster_that_cannot_be_read_alarms_however_rarely_its_tasks_are_looked_at(alarms: dict[str, Any]) -> None:
    unreadable = alarms["ClusterUnreadableAlarm"]

    assert (unreadable["MetricName"], unreadable["Statistic"]) == (Metric.CLUSTERS_UNREADABLE, "Sum")
    assert unreadable["Period"] >= HEARTBEAT.total_seconds()
    # One look that fails is followed by one that does not.
    assert (unreadable["DatapointsToAlarm"], unreadable["EvaluationPeriods"]) == (2, 3)


def test_postponed_events_alarm_as_long_as_they_are_sent_again_and_before_they_are_given_up(
    alarms: dict[str, Any],
) -> None:
    postponed = alarms["EventsPostponedAlarm"]

    assert (postponed["MetricName"], postponed["Statistic"]) == (Metric.EVENTS_POSTPONED, "Sum")
    assert (postponed["ComparisonOperator"], postponed["Threshold"]) == ("GreaterThanThreshold", 0)
    assert timedelta(seconds=postponed["Period"]) >= LONGEST_RESEND
    assert timedelta(seconds=postponed["Period"] * postponed["EvaluationPeriods"]) < KEPT_UNSENT
    # Some minutes without EventBridge, around the full hour, are no alarm.
    assert postponed["DatapointsToAlarm"] > 2


def test_alarms_tell_the_topic_if_there_is_one_and_nothing_is_alarming_about_silence(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        tells = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
        assert alarm["AlarmActions"] == tells, name
        # Passes and sweeps of reconcile come by the clock: their silence is as bad as what they would say. But a new
        # alarm has no data, and one that treats that as breaching goes off at once; its first state tells nobody.
        is_by_clock = name in ("JobsOverdueAlarm", "IdleMachinesAlarm")
        assert alarm["TreatMissingData"] == ("missing" if is_by_clock else "notBreaching"), name
        assert alarm.get("InsufficientDataActions") == (tells if is_by_clock else None), name


def test_what_is_watched_can_be_left_out(template: Template) -> None:
    watching = {
        name: resource.get("Condition")
        for name, resource in template.resources.items()
        if resource["Type"].startswith("AWS::CloudWatch::")
    }

    assert {watching.pop(name) for name in ("MachinesAgeAlarm", "MachinesDashboard")} == {"WatchesMachines"}
    assert watching.pop("MachineAlertsAlarm") == "WatchesInstances"
    assert template.conditions["WatchesInstances"]["Fn::And"] == [
        template.conditions["HasMonitoring"],
        {"Fn::Or": [{"Condition": "HasMachines"}, {"Condition": "HasCapacityProviders"}]},
    ]
    assert template.conditions["WatchesMachines"]["Fn::And"] == [
        template.conditions[name] for name in ("HasMonitoring", "HasMachines")
    ]
    assert watching.pop("NoticesGivenUpAlarm") == "WatchesNotices"
    assert template.conditions["WatchesNotices"]["Fn::And"] == [
        template.conditions[name] for name in ("HasMonitoring", "SendsNotices")
    ]
    assert {watching.pop(name) for name in ("WebhookFailuresAlarm", "WebhookThrottlesAlarm")} == {"WatchesWebhook"}
    assert template.conditions["WatchesWebhook"]["Fn::And"] == [
        template.conditions[name] for name in ("HasMonitoring", "HasWebhook")
    ]
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


def test_every_metric_and_every_alarm_is_explained(alarms: dict[str, Any]) -> None:
    assert [name for name in (*Metric, *alarms) if f"`{name}`" not in PAGE] == []


def test_every_metric_has_a_row_with_its_unit_and_its_dimension() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (count|seconds)(?:, `(\w+)`)? \| [^|]{10,} \|$", PAGE, re.MULTILINE)

    assert sorted(rows) == sorted((name, kind.unit.lower(), kind.dimension) for name, kind in METRICS.items())


def test_every_alarm_has_a_row_that_says_what_it_means_and_what_to_do(alarms: dict[str, Any]) -> None:
    rows = re.findall(r"^\| `(\w+Alarm)` \| [^|]{20,} \| [^|]{20,} \|$", PAGE, re.MULTILINE)

    assert sorted(rows) == sorted(alarms)


def test_the_page_explains_nothing_that_is_not_there(alarms: dict[str, Any]) -> None:
    explained = set(re.findall(r"^\| `([A-Z]\w+)`", PAGE, re.MULTILINE))

    assert explained <= {*Metric, *alarms}
