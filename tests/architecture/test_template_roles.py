"""What the roles of the translated template allow, and to whom."""

from typing import Any

import pytest

from architecture.conftest import CONSUMERS, Template, as_list, referred
from fakes.repository import FUNCTIONS
from relaunch_local.templates.document import read_template
from relaunch_local.templates.roles import roles_of_functions

# They load no job.
WITHOUT_JOBS = {
    *("GithubWebhookFunction", "PlanApiFunction", "RefreshOfferingsFunction", "RequestMachineFunction"),
    "SendNoticesFunction",
}
# Service Authorization Reference: these actions name no resource, or none before it is known.
ACTIONS_WITHOUT_RESOURCE = {
    "ecs:DescribeTaskDefinition",
    "ecs:ListTaskDefinitions",
    "ecs:ListTaskDefinitionFamilies",
    "ecs:DeregisterTaskDefinition",
    "ecs:ListTasks",
    "ecs:ListServices",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:GetSpotPlacementScores",
    "pricing:GetProducts",
    "servicequotas:GetServiceQuota",
    "sts:GetWebIdentityToken",
}


def actions_of(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in as_list(statement["Action"])}


def test_every_function_has_its_own_made_for_lambda_alone(template: Template) -> None:
    roles = [referred(function["Role"]) for function in template.functions.values()]

    others = {"SchedulesRole": "scheduler.amazonaws.com"}
    assert sorted([*roles, *others]) == sorted(template.of_type("IAM::Role"))
    for name, role in template.of_type("IAM::Role").items():
        assert "ManagedPolicyArns" not in role, name
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": others.get(name, "lambda.amazonaws.com")}, name


def test_scheduler_sends_to_one_queue_and_its_dead_letters_for_schedules_of_the_stack_alone(template: Template) -> None:
    role = template.of_type("IAM::Role")["SchedulesRole"]
    (statement,) = role["Policies"][0]["PolicyDocument"]["Statement"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]

    assert statement["Action"] == "sqs:SendMessage"
    assert [referred(each) for each in statement["Resource"]] == ["UploadsQueue", "IntakeDeadLetterQueue"]
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    source = trust["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Sub"]
    assert source.endswith(":schedule-group/${AWS::StackName}-Schedules-*")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_action_is_a_wildcard(template: Template, function: str) -> None:
    assert [action for action in actions_of(template.statements_of(function)) if "*" in action] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_resources_are_allowed_only_where_aws_knows_no_resource(template: Template, function: str) -> None:
    for statement in template.statements_of(function):
        assert statement["Effect"] == "Allow"
        if "*" in as_list(statement["Resource"]):
            assert set(as_list(statement["Action"])) <= ACTIONS_WITHOUT_RESOURCE


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_writes_into_its_own_log_group(template: Template, function: str) -> None:
    group = referred(template.functions[function]["LoggingConfig"]["LogGroup"])

    assert template.named_for("logs:PutLogEvents", function) == {group}
    assert template.of_type("Logs::LogGroup")[group]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize(("queue", "function"), CONSUMERS.items())
def test_a_consumer_may_consume_its_queue_and_fill_its_dead_letter_queue(
    template: Template, queue: str, function: str
) -> None:
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"):
        consumed = {name for name, consumer in CONSUMERS.items() if consumer == function}
        assert template.named_for(action, function) == consumed >= {queue}
    assert template.dead_letter_queue_of(queue) in template.named_for("sqs:SendMessage", function)


def test_roles_are_passed_only_to_tasks_only_under_our_path_only_when_launching(template: Template) -> None:
    # Beside the one of machines, which test_template_machines.py is about.
    assert set(template.allowing("iam:PassRole")) == {"LaunchAttemptFunction", "RequestMachineFunction"}
    (statement,) = template.allowing("iam:PassRole")["LaunchAttemptFunction"]

    assert as_list(statement["Action"]) == ["iam:PassRole"]
    assert statement["Resource"]["Fn::Sub"].endswith(":role/${TaskRolePath}*")
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def test_tasks_are_run_only_in_our_cluster_and_only_when_launching(template: Template) -> None:
    ((function, (statement,)),) = template.allowing("ecs:RunTask").items()

    assert function == "LaunchAttemptFunction"
    assert statement["Condition"]["ArnEquals"]["ecs:cluster"]["Fn::Sub"].endswith(":cluster/${ClusterName}")


def test_tags_are_given_only_to_what_is_made(template: Template) -> None:
    for statements in template.allowing("ecs:TagResource").values():
        for statement in statements:
            actions = statement["Condition"]["StringEquals"]["ecs:CreateAction"]
            assert set(actions) == {"RegisterTaskDefinition", "RunTask"}


@pytest.mark.parametrize(
    ("actions", "function"),
    [
        pytest.param(["ecs:DeregisterTaskDefinition"], "ReconcileFunction", id="cleaning deregisters"),
        pytest.param(
            ["servicequotas:GetServiceQuota", "ec2:GetSpotPlacementScores"],
            "RefreshOfferingsFunction",
            id="not launching but refreshing asks for quotas and odds",
        ),
    ],
)
def test_only_one_function_may(template: Template, actions: list[str], function: str) -> None:
    for action in actions:
        assert list(template.allowing(action)) == [function]


def test_whoever_selects_or_plans_may_read_prices(template: Template) -> None:
    reading = set(template.allowing("ec2:DescribeSpotPriceHistory"))

    # A machine that is gone is charged by them.
    others = {"RefreshOfferingsFunction", "RequestMachineFunction"}
    assert reading == {"JobApiFunction", "LaunchAttemptFunction", "PlanApiFunction", *others}


def test_only_the_webhook_reads_its_secret_and_others_the_kubeconfigs_that_are_given(template: Template) -> None:
    reading = {
        name: [each for statement in statements for each in as_list(statement["Resource"])]
        for name, statements in template.allowing("secretsmanager:GetSecretValue").items()
    }

    assert "WebhookSecret" in str(reading.pop("GithubWebhookFunction"))
    assert reading.pop("RefreshOfferingsFunction") == [{"Ref": "GithubTokenSecretArn"}]
    assert reading.pop("SendNoticesFunction") == [{"Ref": "GithubStatusTokenSecretArn"}]
    assert set(reading) == {"SubmitJobFunction", "JobApiFunction", "LaunchAttemptFunction", "ReconcileFunction"}
    for resources in reading.values():
        assert [each["Fn::If"][1] for each in resources] == [
            {"Ref": "KubernetesKubeconfigSecretArn"},
            {"Ref": "AckKubeconfigSecretArn"},
            {"Ref": "AcsKubeconfigSecretArn"},
        ]


def test_tokens_for_others_are_for_alibaba_cloud_alone_and_for_minutes(template: Template) -> None:
    for statements in template.allowing("sts:GetWebIdentityToken").values():
        for statement in statements:
            condition = statement["Condition"]
            assert condition["ForAllValues:StringEquals"] == {"sts:IdentityTokenAudience": "sts.aliyuncs.com"}
            assert condition["Null"] == {"sts:IdentityTokenAudience": "false"}
            assert condition["NumericLessThanEquals"] == {"sts:DurationSeconds": 300}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tasks_are_stopped_only_in_our_cluster(template: Template, function: str) -> None:
    for resource in template.resources_for("ecs:StopTask", function):
        assert resource["Fn::Sub"].endswith(":task/${ClusterName}/*")


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - WITHOUT_JOBS))
def test_whoever_may_load_a_job_may_finish_what_its_last_writer_left_undone(template: Template, function: str) -> None:
    # The effects of core.jobs.job: stop, request a launch, remember capacity, let a waiting job in.
    assert template.resources_for("ecs:StopTask", function)
    assert "AttemptsQueue" in template.named_for("sqs:SendMessage", function)
    assert {"Fn::GetAtt": ["JobsTable", "Arn"]} in template.resources_for("dynamodb:PutItem", function)
    assert {"Fn::Sub": "${JobsTable.Arn}/index/slots"} in template.resources_for("dynamodb:Query", function)


def test_whoever_may_load_a_machine_may_finish_what_its_last_writer_left_undone(template: Template) -> None:
    # The effects of core.machines.machine: ask for attention, request a launch, let a job in that waits for its place.
    loading = set(FUNCTIONS) - WITHOUT_JOBS | {"RequestMachineFunction"}

    for function in loading:
        assert {"MachinesQueue", "AttemptsQueue"} <= set(template.named_for("sqs:SendMessage", function))
        assert {"Fn::Sub": "${JobsTable.Arn}/index/slots"} in template.resources_for("dynamodb:Query", function)


@pytest.mark.parametrize("function", ["SubmitJobFunction", "JobApiFunction"])
def test_whoever_may_start_a_job_may_count_those_that_wait(template: Template, function: str) -> None:
    # Open jobs less those that have a slot.
    indexes = template.resources_for("dynamodb:Query", function)
    assert {"Fn::Sub": "${JobsTable.Arn}/index/due"} in indexes
    assert {"Fn::Sub": "${JobsTable.Arn}/index/slots"} in indexes


def test_refreshing_offerings_touches_no_item_of_the_table_but_its_own_and_with_a_token_those_of_deliveries(
    template: Template,
) -> None:
    own, of_deliveries = template.allowing("dynamodb:PutItem")["RefreshOfferingsFunction"]
    (reading,) = template.allowing("dynamodb:Query")["RefreshOfferingsFunction"]

    for statement, key in ((own, "OFFERINGS"), (of_deliveries, "DELIVERIES"), (reading, "DEFINITION")):
        assert statement["Condition"] == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [key]}}
    for statement in (own, of_deliveries):
        assert as_list(statement["Action"]) == ["dynamodb:GetItem", "dynamodb:PutItem"]
    assert as_list(reading["Action"]) == ["dynamodb:Query"]


def test_sending_notices_touches_no_item_of_the_table_but_its_own(template: Template) -> None:
    actions = {action for each in template.statements_of("SendNoticesFunction") for action in as_list(each["Action"])}
    (own,) = template.allowing("dynamodb:PutItem")["SendNoticesFunction"]

    assert {each for each in actions if each.startswith("dynamodb:")} == {"dynamodb:GetItem", "dynamodb:PutItem"}
    assert own["Condition"]["ForAllValues:StringLike"] == {
        "dynamodb:LeadingKeys": ["NOTICE#*", "RECEIVER#*", "MESSAGE#*", "STATUS#*", "STATUSES"]
    }
    assert {each for each in actions if each.startswith(("ssm:", "sns:", "secretsmanager:"))} == {
        "ssm:GetParametersByPath",
        "sns:Publish",
        "secretsmanager:GetSecretValue",
    }


@pytest.mark.parametrize("function", ["LaunchAttemptFunction", "ReconcileFunction"])
def test_checkpoints_are_decrypted_only_through_s3_and_only_by_who_reads_them(
    template: Template, function: str
) -> None:
    # request_machine has the key of disks.
    decrypting = {"LaunchAttemptFunction", "ReconcileFunction", "RequestMachineFunction"}
    assert set(template.allowing("kms:Decrypt")) == decrypting
    (statement,) = template.allowing("kms:Decrypt")[function]

    assert statement["Resource"] == {"Fn::Split": [",", {"Ref": "CheckpointKeyArns"}]}
    assert statement["Condition"] == {"StringLike": {"kms:ViaService": {"Fn::Sub": "s3.*.${AWS::URLSuffix}"}}}


def test_whoever_plans_a_file_that_is_not_applied_only_reads(template: Template) -> None:
    reading = {"logs:CreateLogStream", "logs:PutLogEvents", "dynamodb:GetItem", "dynamodb:Query"}
    reading |= {"ecs:DescribeTaskDefinition", "ecs:ListTaskDefinitions"}
    reading |= {"ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ec2:DescribeSpotPriceHistory"}

    statements = template.statements_of("PlanApiFunction")
    assert actions_of(statements) == reading | {"ec2:DescribeCapacityReservations"}


def test_the_webhook_may_enqueue_and_nothing_else(template: Template) -> None:
    assert template.named_for("sqs:SendMessage", "GithubWebhookFunction") == {"IntakeQueue"}
    allowed = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage", "secretsmanager:GetSecretValue"}
    assert actions_of(template.statements_of("GithubWebhookFunction")) == allowed


def test_what_is_evaluated_elsewhere_are_the_roles_of_the_translated_template(template: Template) -> None:
    written = read_template()

    assert written.of_type("IAM::Role") == template.of_type("IAM::Role")
    assert written.of_type("IAM::Policy") == template.of_type("IAM::Policy")
    assert roles_of_functions(written) == roles_of_functions(template)
