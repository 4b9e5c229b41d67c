"""What AWS refuses and the emulator does not, or what only shows after weeks: asserted on the translated template."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from architecture.conftest import REPOSITORY, Template, as_list, referred
from fakes.repository import FUNCTIONS
from relaunch.core.selection.offering_filters import DEFAULT_MAX_PRICE_USD_PER_HOUR
from relaunch.settings import parse_capacity_providers

# They load no job.
WITHOUT_JOBS = {"GithubWebhookFunction", "RefreshOfferingsFunction"}
CONSUMERS = {
    "IntakeQueue": "SubmitJobFunction",
    "UploadsQueue": "SubmitJobFunction",
    "AttemptsQueue": "LaunchAttemptFunction",
    "WarningsQueue": "ObserveCapacityFunction",
    "TaskChangesQueue": "ObserveTaskFunction",
}
# Service Authorization Reference: these actions name no resource, or none before it is known.
ACTIONS_WITHOUT_RESOURCE = {
    "ecs:DescribeTaskDefinition",
    "ecs:ListTaskDefinitions",
    "ecs:ListTaskDefinitionFamilies",
    "ecs:DeregisterTaskDefinition",
    "ecs:ListTasks",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:GetSpotPlacementScores",
    "pricing:GetProducts",
    "servicequotas:GetServiceQuota",
}
COMMON_TIMEOUT_FACTOR = 6


def actions_of(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in as_list(statement["Action"])}


def test_every_function_is_there_under_its_name(template: Template) -> None:
    handlers = {name: function["Handler"] for name, function in template.functions.items()}

    assert handlers == {name: f"{package}.handler.handle" for name, package in FUNCTIONS.items()}
    for name, package in FUNCTIONS.items():
        assert template.functions[name]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == package


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

    def test_a_warning_is_tried_again_within_its_two_minutes(self, template: Template) -> None:
        queue, source = template.queues["WarningsQueue"], template.sources["ObserveCapacityFunctionWarnings"]

        assert queue["VisibilityTimeout"] <= 60
        assert source["BatchSize"] == 1
        assert "MaximumBatchingWindowInSeconds" not in source
        assert queue.get("DelaySeconds", 0) == 0

    def test_each_consumer_has_a_dead_letter_queue_of_its_own(self, template: Template) -> None:
        by_consumer = {(function, template.dead_letter_queue_of(queue)) for queue, function in CONSUMERS.items()}
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
    def test_every_target_may_be_sent_to_and_has_a_dead_letter_queue_that_may_be_too(self, template: Template) -> None:
        allowed = {
            (referred(resource), referred(rule))
            for policy in template.of_type("SQS::QueuePolicy").values()
            for statement in policy["PolicyDocument"]["Statement"]
            for resource in as_list(statement["Resource"])
            for rule in as_list(statement["Condition"].get("ArnEquals", {}).get("aws:SourceArn", []))
        }

        needed = set()
        for name, target in template.targets:
            needed.add((referred(target["DeadLetterConfig"]["Arn"]), name))
            if "ScheduleExpression" not in template.rules[name]:
                needed.add((referred(target["Arn"]), name))
        assert allowed == needed

    def test_queue_policies_let_in_eventbridge_and_nobody_else(self, template: Template) -> None:
        for name, policy in template.of_type("SQS::QueuePolicy").items():
            named = {referred(queue) for queue in policy["Queues"]}
            resources = set()
            for statement in policy["PolicyDocument"]["Statement"]:
                assert statement["Principal"] == {"Service": "events.amazonaws.com"}, name
                assert statement["Action"] == "sqs:SendMessage", name
                resources |= {referred(resource) for resource in as_list(statement["Resource"])}
            assert resources == named, name

    def test_rules_that_apply_makes_may_send_uploads_to_their_queue_alone(self, template: Template) -> None:
        statements = template.of_type("SQS::QueuePolicy")["IntakeQueuePolicy"]["PolicyDocument"]["Statement"]
        (statement,) = [each for each in statements if "ArnLike" in each["Condition"]]

        assert {referred(each) for each in statement["Resource"]} == {"UploadsQueue", "IntakeDeadLetterQueue"}
        arn = statement["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Sub"]
        assert arn.endswith(":${AWS::AccountId}:rule/" + template.outputs["UploadRulePrefix"]["Value"]["Fn::Sub"] + "*")

    def test_pushes_find_concurrency_during_a_storm_of_uploads(self, template: Template) -> None:
        most = {name: source["ScalingConfig"]["MaximumConcurrency"] for name, source in template.sources.items()}

        assert template.rules.keys().isdisjoint({"ObjectCreatedRule"})
        assert most["SubmitJobFunctionUploads"] * 4 <= most["SubmitJobFunctionIntake"]

    def test_what_cannot_be_delivered_goes_to_the_dead_letter_queue_of_the_target(self, template: Template) -> None:
        for name, target in template.targets:
            dead_letters = referred(target["DeadLetterConfig"]["Arn"])
            if "ScheduleExpression" not in template.rules[name]:
                assert dead_letters == template.dead_letter_queue_of(referred(target["Arn"])), name

    def test_every_sample_event_matches_exactly_one(self, template: Template) -> None:
        # Rules for uploads are written by `apply`.
        samples = sorted(
            set((REPOSITORY / "events").glob("aws.*.json")) - set((REPOSITORY / "events").glob("aws.s3.*"))
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


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    """EventBridge's matching of literal values ("Amazon EventBridge event patterns")."""
    for key, wanted in pattern.items():
        actual = event.get(key)
        if isinstance(wanted, dict):
            if not isinstance(actual, dict) or not matches(wanted, actual):
                return False
        elif not any(literal_matches(each, actual) for each in wanted):
            return False
    return True


def literal_matches(wanted: Any, actual: Any) -> bool:
    """Whether a value is the one wanted; an ARN made by Sub may have any partition, region and account."""
    if not isinstance(wanted, dict):
        return bool(actual == wanted)
    if "exists" in wanted:
        return (actual is not None) is wanted["exists"]
    made = wanted["Fn::Sub"].replace("${ClusterName}", "relaunch")
    return re.fullmatch(re.sub(r"\$\{AWS::\w+\}", "[a-z0-9-]+", made), actual or "") is not None


class TestRoles:
    def test_every_function_has_its_own_made_for_lambda_alone(self, template: Template) -> None:
        roles = [referred(function["Role"]) for function in template.functions.values()]

        assert sorted(roles) == sorted(template.of_type("IAM::Role"))
        for name, role in template.of_type("IAM::Role").items():
            assert "ManagedPolicyArns" not in role, name
            (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
            assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}, name

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_no_action_is_a_wildcard(self, template: Template, function: str) -> None:
        assert [action for action in actions_of(template.statements_of(function)) if "*" in action] == []

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_all_resources_are_allowed_only_where_aws_knows_no_resource(
        self, template: Template, function: str
    ) -> None:
        for statement in template.statements_of(function):
            assert statement["Effect"] == "Allow"
            if "*" in as_list(statement["Resource"]):
                assert set(as_list(statement["Action"])) <= ACTIONS_WITHOUT_RESOURCE

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_each_writes_into_its_own_log_group(self, template: Template, function: str) -> None:
        group = referred(template.functions[function]["LoggingConfig"]["LogGroup"])

        assert template.named_for("logs:PutLogEvents", function) == {group}
        assert template.of_type("Logs::LogGroup")[group]["RetentionInDays"] == {"Ref": "LogRetentionDays"}

    @pytest.mark.parametrize(("queue", "function"), CONSUMERS.items())
    def test_a_consumer_may_consume_its_queue_and_fill_its_dead_letter_queue(
        self, template: Template, queue: str, function: str
    ) -> None:
        for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"):
            consumed = {name for name, consumer in CONSUMERS.items() if consumer == function}
            assert template.named_for(action, function) == consumed >= {queue}
        assert template.dead_letter_queue_of(queue) in template.named_for("sqs:SendMessage", function)

    def test_roles_are_passed_only_to_tasks_only_under_our_path_only_when_launching(self, template: Template) -> None:
        ((function, (statement,)),) = template.allowing("iam:PassRole").items()

        assert function == "LaunchAttemptFunction"
        assert as_list(statement["Action"]) == ["iam:PassRole"]
        assert statement["Resource"]["Fn::Sub"].endswith(":role/relaunch/*")
        assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}

    def test_tasks_are_run_only_in_our_cluster_and_only_when_launching(self, template: Template) -> None:
        ((function, (statement,)),) = template.allowing("ecs:RunTask").items()

        assert function == "LaunchAttemptFunction"
        assert statement["Condition"]["ArnEquals"]["ecs:cluster"]["Fn::Sub"].endswith(":cluster/${ClusterName}")

    def test_only_families_of_derived_revisions_are_registered_and_only_when_launching(
        self, template: Template
    ) -> None:
        families = template.resources_for("ecs:RegisterTaskDefinition", "LaunchAttemptFunction")

        assert set(template.allowing("ecs:RegisterTaskDefinition")) == {"LaunchAttemptFunction"}
        assert [each["Fn::Sub"].rpartition("/")[2] for each in families] == ["*--*:*"]

    def test_tags_are_given_only_to_what_is_made(self, template: Template) -> None:
        for statements in template.allowing("ecs:TagResource").values():
            for statement in statements:
                actions = statement["Condition"]["StringEquals"]["ecs:CreateAction"]
                assert set(actions) == {"RegisterTaskDefinition", "RunTask"}

    @pytest.mark.parametrize(
        ("actions", "function"),
        [
            pytest.param(["ecs:DeregisterTaskDefinition"], "ReconcileFunction", id="cleaning deregisters"),
            pytest.param(["secretsmanager:GetSecretValue"], "GithubWebhookFunction", id="the webhook reads the secret"),
            pytest.param(
                ["servicequotas:GetServiceQuota", "ec2:GetSpotPlacementScores"],
                "RefreshOfferingsFunction",
                id="not launching but refreshing asks for quotas and odds",
            ),
        ],
    )
    def test_only_one_function_may(self, template: Template, actions: list[str], function: str) -> None:
        for action in actions:
            assert list(template.allowing(action)) == [function]

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_tasks_are_stopped_only_in_our_cluster(self, template: Template, function: str) -> None:
        for resource in template.resources_for("ecs:StopTask", function):
            assert resource["Fn::Sub"].endswith(":task/${ClusterName}/*")

    @pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - WITHOUT_JOBS))
    def test_whoever_may_load_a_job_may_finish_what_its_last_writer_left_undone(
        self, template: Template, function: str
    ) -> None:
        # The effects of core.jobs.job: stop, request a launch, remember capacity, let a waiting job in.
        assert template.resources_for("ecs:StopTask", function)
        assert "AttemptsQueue" in template.named_for("sqs:SendMessage", function)
        assert {"Fn::GetAtt": ["JobsTable", "Arn"]} in template.resources_for("dynamodb:PutItem", function)
        assert {"Fn::Sub": "${JobsTable.Arn}/index/slots"} in template.resources_for("dynamodb:Query", function)

    def test_refreshing_offerings_touches_no_item_of_the_table_but_its_own(self, template: Template) -> None:
        (statement,) = template.allowing("dynamodb:PutItem")["RefreshOfferingsFunction"]

        assert as_list(statement["Action"]) == ["dynamodb:GetItem", "dynamodb:PutItem"]
        assert statement["Condition"] == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["OFFERINGS"]}}

    def test_checkpoints_are_decrypted_only_through_s3_and_only_when_launching(self, template: Template) -> None:
        assert list(template.allowing("kms:Decrypt")) == ["LaunchAttemptFunction"]
        (statement,) = template.allowing("kms:Decrypt")["LaunchAttemptFunction"]

        assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "CheckpointKeyArns"}]}
        assert statement["Condition"] == {"StringLike": {"kms:ViaService": {"Fn::Sub": "s3.*.${AWS::URLSuffix}"}}}

    def test_the_webhook_may_enqueue_and_nothing_else(self, template: Template) -> None:
        assert template.named_for("sqs:SendMessage", "GithubWebhookFunction") == {"IntakeQueue"}
        allowed = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage", "secretsmanager:GetSecretValue"}
        assert actions_of(template.statements_of("GithubWebhookFunction")) == allowed


class TestFunctions:
    def test_only_the_webhook_can_be_called_by_anyone(self, template: Template) -> None:
        urls = template.of_type("Lambda::Url").values()
        public = [each for each in template.of_type("Lambda::Permission").values() if each["Principal"] == "*"]

        assert [referred(url["TargetFunctionArn"]) for url in urls] == ["GithubWebhookFunction"]
        assert {referred(each["FunctionName"]) for each in public} == {"GithubWebhookFunction"}

    def test_none_is_in_a_network_of_ours(self, template: Template) -> None:
        assert [name for name, function in template.functions.items() if "VpcConfig" in function] == []

    def test_an_asynchronous_call_that_fails_for_good_leaves_a_trace(self, template: Template) -> None:
        destinations = {
            function: referred(settings["DestinationConfig"]["OnFailure"]["Destination"])
            for function, settings in template.asynchronous_calls.items()
        }

        assert destinations == {
            "JobApiFunction": "JobApiDeadLetterQueue",
            "ReconcileFunction": "ReconcileDeadLetterQueue",
            "RefreshOfferingsFunction": "RefreshOfferingsDeadLetterQueue",
        }
        for function, queue in destinations.items():
            assert queue in template.named_for("sqs:SendMessage", function)

    @pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - {"GithubWebhookFunction"}))
    def test_each_is_told_its_own_dead_letter_queue(self, template: Template, function: str) -> None:
        queue = template.queue_of(function)
        told = referred(template.functions[function]["Environment"]["Variables"]["RELAUNCH_DEAD_LETTER_QUEUE_URL"])

        assert told == (
            template.dead_letter_queue_of(queue) if queue else function.replace("Function", "DeadLetterQueue")
        )

    def test_the_webhook_starts_without_third_party_packages(self, template: Template) -> None:
        layers = {
            name: [referred(layer) for layer in function["Layers"]] for name, function in template.functions.items()
        }

        assert [layer for layer in layers.pop("GithubWebhookFunction") if "Dependencies" in layer] == []
        assert all(any("Dependencies" in layer for layer in each) for each in layers.values())

    def test_two_passes_of_reconcile_hardly_ever_meet(self, template: Template) -> None:
        assert template.rules["ReconcileFunctionSchedule"]["ScheduleExpression"] == "rate(1 minute)"
        assert template.functions["ReconcileFunction"]["Timeout"] <= 60

    def test_offerings_are_refreshed_every_hour_and_asked_for_again_when_aws_did_not_answer(
        self, template: Template
    ) -> None:
        assert template.rules["RefreshOfferingsFunctionSchedule"]["ScheduleExpression"] == "rate(1 hour)"
        assert template.asynchronous_calls["RefreshOfferingsFunction"]["MaximumRetryAttempts"] == 2


class TestTable:
    def test_has_the_keys_and_the_sparse_indexes(self, template: Template) -> None:
        table = template.of_type("DynamoDB::Table")["JobsTable"]
        indexes = {
            index["IndexName"]: (
                [key["AttributeName"] for key in index["KeySchema"]],
                index["Projection"]["ProjectionType"],
            )
            for index in table["GlobalSecondaryIndexes"]
        }

        assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
        assert indexes == {
            "due": (["due", "wake_at"], "KEYS_ONLY"),
            "slots": (["slot", "accepted_at"], "KEYS_ONLY"),
            "listing": (["listing", "accepted_at"], "INCLUDE"),
        }
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}

    def test_outlives_the_stack_unless_said_otherwise(self, template: Template) -> None:
        assert template.resources["JobsTable"]["DeletionPolicy"] == {"Ref": "TableDeletionPolicy"}
        assert template.resources["JobsTable"]["UpdateReplacePolicy"] == "Retain"
        assert template.parameters["TableDeletionPolicy"]["Default"] == "Retain"


def test_the_default_price_cap_is_the_one_that_rejections_call_the_default(template: Template) -> None:
    cap = template.parameters["MaxPricePerHour"]

    assert float(cap["Default"]) == DEFAULT_MAX_PRICE_USD_PER_HOUR
    assert [bool(re.fullmatch(cap["AllowedPattern"], each)) for each in ("none", "99.5", "40", "", "-1", "4.")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_the_outputs_are_what_the_command_reads(template: Template) -> None:
    assert set(template.outputs) >= {
        *("WebhookUrl", "WebhookSecretArn", "TableName", "ClusterName", "CapacityProviders", "JobApiFunctionName"),
        *("IntakeQueueUrl", "UploadRulePrefix", "UploadsQueueArn", "IntakeDeadLetterQueueArn", "AttemptsQueueUrl"),
        *(f"{queue}Url" for queue in template.dead_letter_queues),
    }


def test_keys_of_checkpoints_are_arns_of_keys_because_aliases_grant_nothing(template: Template) -> None:
    pattern = template.parameters["CheckpointKeyArns"]["AllowedPattern"]
    key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    for taken in ("", key, f"{key},{key.replace('aws', 'aws-us-gov')}", key.replace("1234abcd", "mrk-1234abcd")):
        assert re.fullmatch(pattern, taken)
    for refused in ("1234abcd", f"{key},", f"{key}, {key}", key.replace("key/", "alias/"), "*"):
        assert not re.fullmatch(pattern, refused)


@pytest.mark.parametrize(
    ("providers", "is_taken"),
    [
        ("g5-spot=g5.xlarge/spot", True),
        ("g5-spot=g5.xlarge/spot,trn=trn1.2xlarge/on-demand/managed-instances", True),
        ("g5=g5.xlarge/spot/200GiB,trn=trn1.2xlarge/spot/managed-instances/1000GiB", True),
        ("g5=g5.xlarge/spot/0GiB", False),
        ("g5=g5.xlarge/spot/200GiB/managed-instances", False),
        ("g5=g5.xlarge", False),
        ("g5=g5.xlarge/spot/managed", False),
        ("g5=g5.xlarge/spot,", False),
    ],
)
def test_the_parameter_takes_what_the_settings_can_read(template: Template, providers: str, is_taken: bool) -> None:
    pattern = template.parameters["CapacityProviders"]["AllowedPattern"]

    assert bool(re.fullmatch(pattern, providers)) is is_taken
    if is_taken:
        assert len(parse_capacity_providers(providers)) == providers.count("=")
