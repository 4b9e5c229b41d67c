"""Queues, event sources and rules of the translated template."""

import json
import re
from collections import Counter
from typing import Any

import pytest
from moto.events.models import EventPattern

from architecture.conftest import CONSUMERS, REPOSITORY, Template, as_list, referred
from relaunch.core.messages.handling_order import LEAST_TRIES
from relaunch.core.triggers.upload_rules import NAME_HASH_LENGTH

WHOSE_NEXT_PASS_IS_THE_RETRY = {"ReconcileFunctionSchedule", "RefreshOfferingsFunctionDeliveries"}
"""The rules whose events may be lost: the next one does what was left."""

COMMON_TIMEOUT_FACTOR = 6


def matching(template: Template, event: dict[str, Any]) -> list[str]:
    """The rules whose pattern an event of this account satisfies."""
    found = []
    for name, rule in template.rules.items():
        if "EventPattern" in rule:
            pattern = json.dumps(rule["EventPattern"]).replace('{"Ref": "AWS::AccountId"}', f'"{event["account"]}"')
            if EventPattern.load(pattern).matches_event(event):
                found.append(name)
    return found


class TestQueues:
    def test_each_has_exactly_the_consumer_it_is_for(self, template: Template) -> None:
        consumed = [
            (referred(each["EventSourceArn"]), referred(each["FunctionName"])) for each in template.sources.values()
        ]

        assert sorted(consumed) == sorted(CONSUMERS.items())

    def test_a_message_stays_invisible_for_six_time_outs_of_its_consumer(self, template: Template) -> None:
        for queue, function in CONSUMERS.items():
            visibility = template.queues[queue]["VisibilityTimeout"]
            assert visibility >= COMMON_TIMEOUT_FACTOR * template.functions[function]["Timeout"], queue

    def test_a_message_that_functions_die_of_leaves_the_others_a_try(self, template: Template) -> None:
        assert template.parameters["MaxReceiveCount"]["MinValue"] == LEAST_TRIES

    def test_a_warning_is_tried_again_within_its_two_minutes(self, template: Template) -> None:
        queue, source = template.queues["WarningsQueue"], template.sources["ObserveCapacityFunctionWarnings"]

        assert queue["VisibilityTimeout"] <= 60
        assert source["BatchSize"] == 1
        assert "MaximumBatchingWindowInSeconds" not in source
        assert queue.get("DelaySeconds", 0) == 0

    def test_each_consumer_has_a_dead_letter_queue_of_its_own(self, template: Template) -> None:
        # What topics deliver has one apart: it must not be sent to the queue intake.
        by_consumer = {
            (queue if queue == "SnsQueue" else function, template.dead_letter_queue_of(queue))
            for queue, function in CONSUMERS.items()
        }
        dead_letters = [queue for _, queue in by_consumer]

        assert None not in dead_letters
        assert max(Counter(dead_letters).values()) == 1
        assert not set(dead_letters) & set(CONSUMERS)

    def test_dead_letters_are_kept_as_long_as_sqs_can_and_longer_than_they_waited(self, template: Template) -> None:
        # A dead letter keeps the age that it had in its queue.
        for name in template.dead_letter_queues:
            assert template.queues[name]["MessageRetentionPeriod"] == 1_209_600, name

    def test_all_are_encrypted_with_a_key_that_eventbridge_can_use(self, template: Template) -> None:
        for name, queue in template.queues.items():
            assert queue["SqsManagedSseEnabled"] is True, name
            assert "KmsMasterKeyId" not in queue, name

    def test_none_is_left_without_use(self, template: Template) -> None:
        named = json.dumps([template.functions, template.sources, template.of_type("Lambda::EventInvokeConfig")])

        assert [queue for queue in template.queues if f'"{queue}"' not in named] == []


class TestSources:
    def test_report_the_items_that_failed_and_limit_how_many_run_at_once(self, template: Template) -> None:
        for name, source in template.sources.items():
            assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
            # Lambda's smallest is 2.
            assert source["ScalingConfig"]["MaximumConcurrency"] >= 2, name

    def test_filter_nothing(self, template: Template) -> None:
        # A filter deletes what it does not match; nothing may be lost without a trace.
        assert [name for name, source in template.sources.items() if "FilterCriteria" in source] == []

    def test_a_function_that_feeds_its_own_queue_is_not_cut_off(self, template: Template) -> None:
        for name in template.functions:
            queue = template.queue_of(name)
            feeds_itself = queue in template.named_for("sqs:SendMessage", name)
            assert (template.functions[name].get("RecursiveLoop") == "Allow") == feeds_itself, name


class TestRules:
    @pytest.mark.parametrize(
        ("changed", "rule"),
        [
            ({}, "RetirementRule"),
            ({"eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED"}, "RetirementRule"),
            ({"eventTypeCode": "AWS_EC2_INSTANCE_POWER_MAINTENANCE_SCHEDULED"}, "RetirementRule"),
            ({"eventTypeCode": "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"}, "RetirementRule"),
            ({"eventTypeCode": "AWS_EC2_DEDICATED_HOST_RETIREMENT_SCHEDULED"}, None),
            ({"eventTypeCategory": "issue"}, None),
            ({"service": "EBS"}, None),
        ],
    )
    def test_what_aws_schedules_for_instances_comes_to_the_warnings(
        self, template: Template, changed: dict[str, str], rule: str | None
    ) -> None:
        event = json.loads((REPOSITORY / "events" / "aws.health.instance-retirement.json").read_text())

        assert matching(template, {**event, "detail": {**event["detail"], **changed}}) == ([rule] if rule else [])

    def test_the_owner_of_an_interruptible_reservation_warns_as_the_spot_market_does(self, template: Template) -> None:
        event = json.loads((REPOSITORY / "events" / "aws.ec2.spot-interruption-warning.json").read_text())

        for name in (
            "EC2 Spot Instance Interruption Warning",
            "EC2 Capacity Reservation Instance Interruption Warning",
        ):
            assert matching(template, {**event, "detail-type": name}) == ["SpotWarningRule"]

    def test_every_target_may_be_sent_to_and_has_a_dead_letter_queue_that_may_be_too(self, template: Template) -> None:
        allowed = {
            (referred(resource), referred(rule))
            for policy in template.of_type("SQS::QueuePolicy").values()
            for statement in policy["PolicyDocument"]["Statement"]
            for resource in as_list(statement["Resource"])
            for rule in as_list(statement["Condition"].get("ArnEquals", {}).get("aws:SourceArn", []))
            if statement["Principal"] == {"Service": "events.amazonaws.com"}
        }

        needed = set()
        for name, target in template.targets:
            if name in WHOSE_NEXT_PASS_IS_THE_RETRY:
                continue
            needed.add((referred(target["DeadLetterConfig"]["Arn"]), name))
            if "ScheduleExpression" not in template.rules[name]:
                needed.add((referred(target["Arn"]), name))
        assert allowed == needed

    def test_topics_may_send_to_their_queue_alone(self, template: Template) -> None:
        policies = template.of_type("SQS::QueuePolicy")
        (statement,) = policies["SnsQueuePolicy"]["PolicyDocument"]["Statement"]

        assert statement == {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": {"Fn::GetAtt": ["SnsQueue", "Arn"]},
            "Condition": {"ArnEquals": {"aws:SourceArn": {"Fn::Split": [",", {"Ref": "SnsTopicArns"}]}}},
        }
        assert [name for name, each in policies.items() if "sns.amazonaws.com" in json.dumps(each)] == [
            "SnsQueuePolicy"
        ]

    def test_what_topics_deliver_never_comes_to_the_queue_of_deliveries(self, template: Template) -> None:
        variables = template.functions["SubmitJobFunction"]["Environment"]["Variables"]

        assert template.dead_letter_queue_of("SnsQueue") == "SnsDeadLetterQueue"
        assert variables["RELAUNCH_SNS_QUEUE_ARN"]["Fn::If"] == [
            "TakesTopics",
            {"Fn::GetAtt": ["SnsQueue", "Arn"]},
            "",
        ]
        assert referred(variables["RELAUNCH_SNS_DEAD_LETTER_QUEUE_URL"]) == "SnsDeadLetterQueue"
        others = [name for name in template.queues if template.dead_letter_queue_of(name) == "SnsDeadLetterQueue"]
        assert others == ["SnsQueue"]

    def test_submit_job_knows_what_comes_from_rules_and_schedules(self, template: Template) -> None:
        variables = template.functions["SubmitJobFunction"]["Environment"]["Variables"]

        assert variables["RELAUNCH_UPLOADS_QUEUE_ARN"]["Fn::If"] == [
            "TakesUploads",
            {"Fn::GetAtt": ["UploadsQueue", "Arn"]},
            "",
        ]

    def test_queue_policies_let_in_eventbridge_and_nobody_else(self, template: Template) -> None:
        for name, policy in template.of_type("SQS::QueuePolicy").items():
            if name == "SnsQueuePolicy":
                continue
            (queue,) = policy["Queues"]
            assert name == f"{referred(queue)}Policy"
            for statement in policy["PolicyDocument"]["Statement"]:
                assert statement["Principal"] == {"Service": "events.amazonaws.com"}, name
                assert statement["Action"] == "sqs:SendMessage", name
                assert statement["Resource"] == {"Fn::GetAtt": [referred(queue), "Arn"]}, name

    def test_rules_that_apply_makes_may_send_uploads_to_their_queue_alone(self, template: Template) -> None:
        policies = template.of_type("SQS::QueuePolicy")
        statements = {
            name: statement
            for name, policy in policies.items()
            for statement in policy["PolicyDocument"]["Statement"]
            if "ArnLike" in statement["Condition"]
        }

        assert sorted(statements) == ["IntakeDeadLetterQueuePolicy", "UploadsQueuePolicy"]
        arns = [each["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Sub"] for each in statements.values()]
        (arn,) = set(arns)
        prefix = template.outputs["UploadRulePrefix"]["Value"]["Fn::Sub"]
        assert arn.endswith(f":${{AWS::AccountId}}:rule/{prefix}{'?' * NAME_HASH_LENGTH}")

    def test_pushes_find_concurrency_during_a_storm_of_uploads(self, template: Template) -> None:
        most = {name: source["ScalingConfig"]["MaximumConcurrency"] for name, source in template.sources.items()}

        assert template.rules.keys().isdisjoint({"ObjectCreatedRule"})
        assert most["SubmitJobFunctionUploads"] * 4 <= most["SubmitJobFunctionIntake"]

    def test_what_cannot_be_delivered_goes_to_the_dead_letter_queue_of_the_target(self, template: Template) -> None:
        for name, target in template.targets:
            if name in WHOSE_NEXT_PASS_IS_THE_RETRY:
                continue
            dead_letters = referred(target["DeadLetterConfig"]["Arn"])
            if "ScheduleExpression" not in template.rules[name]:
                assert dead_letters == template.dead_letter_queue_of(referred(target["Arn"])), name

    def test_every_sample_event_matches_exactly_one(self, template: Template) -> None:
        # Rules of triggers are written by `apply`.
        samples = sorted(
            {*(REPOSITORY / "events").glob("aws.*.json"), *(REPOSITORY / "events").glob("relaunch.*.json")}
            - set((REPOSITORY / "events").glob("aws.s3.*"))
            # Of which whoever wants to hear makes a rule.
            - {REPOSITORY / "events" / "relaunch.budget-reached.json"}
        )
        patterns = {name: rule["EventPattern"] for name, rule in template.rules.items() if "EventPattern" in rule}

        matched = {
            sample.name: [
                name for name, pattern in patterns.items() if matches(pattern, json.loads(sample.read_text()))
            ]
            for sample in samples
        }
        assert {name: rules for name, rules in matched.items() if len(rules) != 1} == {}
        assert {rule for rules in matched.values() for rule in rules} == set(patterns), "a rule has no sample"

    def test_events_of_other_accounts_are_not_ours(self, template: Template) -> None:
        samples = sorted((REPOSITORY / "events").glob("aws.*.json"))
        patterns = [rule["EventPattern"] for rule in template.rules.values() if "EventPattern" in rule]

        for sample in samples:
            # Another account's event bus may send it to ours; all else in it may be the same.
            event = {**json.loads(sample.read_text()), "account": "444455556666"}
            assert not any(matches(pattern, event) for pattern in patterns), sample.name

    def test_tasks_of_other_clusters_are_not_ours(self, template: Template) -> None:
        sample = json.loads((REPOSITORY / "events" / "aws.ecs.task-state-change.running.json").read_text())
        pattern = template.rules["TaskStateRule"]["EventPattern"]

        assert matches(pattern, sample)
        sample["detail"]["clusterArn"] = sample["detail"]["clusterArn"].replace("cluster/", "cluster/other-")
        assert not matches(pattern, sample)

    @pytest.mark.parametrize(
        ("changed", "is_ours"),
        [
            ({}, True),
            ({"runningTasksCount": None, "pendingTasksCount": None}, True),
            ({"runningTasksCount": 1}, False),
            ({"pendingTasksCount": 1}, False),
            ({"agentConnected": False}, False),
            ({"status": "DRAINING"}, False),
            ({"clusterArn": "arn:aws:ecs:us-east-1:111122223333:cluster/other"}, False),
        ],
    )
    def test_only_machines_without_a_task_are_told_of(
        self, template: Template, changed: dict[str, object], is_ours: bool
    ) -> None:
        sample = json.loads((REPOSITORY / "events" / "aws.ecs.container-instance-state-change.json").read_text())
        detail = {name: value for name, value in {**sample["detail"], **changed}.items() if value is not None}

        assert matches(template.rules["MachineStateRule"]["EventPattern"], {**sample, "detail": detail}) is is_ours

    @pytest.mark.parametrize(
        ("changed", "rules"),
        [
            pytest.param({}, ["MachineStateRule"], id="registered"),
            pytest.param({"registeredResources": []}, ["MachineStateRule"], id="registered, its GPUs come later"),
            pytest.param({"status": "DRAINING"}, ["MachineClosedRule"], id="draining"),
            pytest.param(
                {"status": "DRAINING", "runningTasksCount": 1}, ["MachineClosedRule"], id="draining with a task"
            ),
            pytest.param({"status": "INACTIVE", "agentConnected": False}, ["MachineClosedRule"], id="deregistered"),
            pytest.param({"runningTasksCount": 1}, [], id="a task started"),
            pytest.param({"agentConnected": False}, [], id="the agent disconnected, as it does several times a day"),
            pytest.param({"status": "INACTIVE", "attributes": []}, [], id="of a capacity provider"),
            pytest.param(
                {"status": "INACTIVE", "clusterArn": "arn:aws:ecs:us-east-1:111122223333:cluster/other"}, [], id="other"
            ),
        ],
    )
    def test_of_machines_of_our_own_each_event_that_matters_comes_once(
        self, template: Template, changed: dict[str, object], rules: list[str]
    ) -> None:
        name = "aws.ecs.container-instance-state-change.machine-registered.json"
        sample = json.loads((REPOSITORY / "events" / name).read_text())
        event = {**sample, "detail": {**sample["detail"], **changed}}
        patterns = {name: rule["EventPattern"] for name, rule in template.rules.items() if "EventPattern" in rule}

        assert [name for name, pattern in patterns.items() if matches(pattern, event)] == rules


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    """EventBridge's matching of literal values ("Amazon EventBridge event patterns")."""
    for key, wanted in pattern.items():
        actual = event.get(key)
        if not any(member_matches(wanted, each) for each in (actual if isinstance(actual, list) else [actual])):
            return False
    return True


def member_matches(wanted: Any, actual: Any) -> bool:
    """Whether a value, or one member of an array, is as wanted."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and matches(wanted, actual)
    return any(literal_matches(each, actual) for each in wanted)


def literal_matches(wanted: Any, actual: Any) -> bool:
    """Whether a value is the one wanted; an ARN made by Sub may have any partition, region and account."""
    if not isinstance(wanted, dict):
        return bool(actual == wanted)
    if wanted == {"Ref": "AWS::AccountId"}:
        return bool(actual == "111122223333")
    if "exists" in wanted:
        return (actual is not None) is wanted["exists"]
    if "prefix" in wanted:
        return isinstance(actual, str) and actual.startswith(wanted["prefix"])
    made = wanted["Fn::Sub"].replace("${ClusterName}", "relaunch")
    return re.fullmatch(re.sub(r"\$\{AWS::\w+\}", "[a-z0-9-]+", made), actual or "") is not None
