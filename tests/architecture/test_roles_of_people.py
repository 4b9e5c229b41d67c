"""The roles for people in infrastructure/training.yaml allow what docs/security.md says that each may run."""

import re
from functools import cache

import pytest

from architecture.command_page import actions_of, calls_of, commands, rows
from architecture.conftest import Template
from architecture.role_policies import RolePolicies
from architecture.written_template import written_template
from fakes.repository import REPOSITORY
from relaunch_cli.deployment.findings import github_stack_name, role_stack_name
from relaunch_local.iam.permission import ContextValue

SECURITY_PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
TABLE_OF_PEOPLE = re.compile(r"\| who \| commands \|\n\|---\|---\|\n((?:\|.*\|\n)+)")
ZONES = {"Zone1": "us-east-1a"}
IN_REGION = "us-east-1:111122223333"
# What an action is for; the Service Authorization Reference knows no resource of the others.
RESOURCES = {
    "cloudformation": f"arn:aws:cloudformation:{IN_REGION}:stack/relaunch/0a1b",
    "dynamodb": f"arn:aws:dynamodb:{IN_REGION}:table/relaunch-JobsTable-Z1Y2",
    "ecr": f"arn:aws:ecr:{IN_REGION}:repository/relaunch/trainer",
    "ecs:RegisterTaskDefinition": f"arn:aws:ecs:{IN_REGION}:task-definition/relaunch-vision:*",
    "ecs:StopTask": f"arn:aws:ecs:{IN_REGION}:task/relaunch/0a1b",
    "events": f"arn:aws:events:{IN_REGION}:rule/relaunch-relaunch-0a1b2c3d4e5f",
    "events:ListRules": "*",
    "events:PutEvents": f"arn:aws:events:{IN_REGION}:event-bus/default",
    "iam:PassRole": "TaskRole.Arn",
    "logs": f"arn:aws:logs:{IN_REGION}:log-group:/relaunch/relaunch:log-stream:main/main/0a1b",
    "s3": "arn:aws:s3:::NewCheckpointBucket",
    "s3:GetBucketNotification": "arn:aws:s3:::NewDataBucket",
    "s3:GetObject": "arn:aws:s3:::NewCheckpointBucket/vision/0a1b/attempt-1/step-0000100/manifest.json",
    "scheduler": f"arn:aws:scheduler:{IN_REGION}:schedule/relaunch-Schedules-Z1Y2/abcdefghijkl",
    "scheduler:ListSchedules": "*",
    "sqs": f"arn:aws:sqs:{IN_REGION}:relaunch-AttemptsDeadLetterQueue-Z1Y2",
    "sqs:SendMessage": f"arn:aws:sqs:{IN_REGION}:relaunch-AttemptsQueue-Z1Y2",
    "ssm": "arn:aws:ssm:eu-central-1::parameter/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended",
}
# Of `init` docs/security.md leaves these to whoever deploys.
# What a rule for uploads is put with.
RULE: dict[str, ContextValue] = {
    "iam__PassedToService": "ecs-tasks.amazonaws.com",
    "events__source": ("aws.s3",),
    "events__detail-type": ("Object Created",),
    "events__TargetArn": (f"arn:aws:sqs:{IN_REGION}:relaunch-UploadsQueue-Z1Y2",),
}
# What a change of a job is sent with.
CHANGE: dict[str, ContextValue] = {
    "events__source": ("relaunch.relaunch",),
    "events__detail-type": ("Job State Change",),
}
OF_WHOEVER_DEPLOYS = {"s3:PutBucketNotification", "secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"}


def given_to(who: str) -> list[str]:
    """The commands that docs/security.md names for somebody."""
    (table,) = TABLE_OF_PEOPLE.findall(SECURITY_PAGE)
    (cell,) = (line.split(" | ")[1] for line in table.splitlines() if line.startswith(f"| {who}"))
    before_exceptions = cell.partition(";")[0]
    return [name for name in re.findall(r"`([a-z -]+)`", before_exceptions) if name in commands()]


READER, OPERATOR = given_to("`ReaderRole`"), given_to("`OperatorRole`")


@cache
def policies_of(role: str) -> RolePolicies:
    return RolePolicies(written_template("infrastructure/training.yaml"), role, **ZONES)


def allows(role: str, action: str) -> bool:
    resource = RESOURCES.get(action, RESOURCES.get(action.partition(":")[0], "*"))
    keys = CHANGE if action == "events:PutEvents" else RULE
    return policies_of(role).allows(action, resource, **keys)


def test_every_command_is_given_to_somebody() -> None:
    named = re.findall(r"`([a-z -]+)`", "".join(TABLE_OF_PEOPLE.findall(SECURITY_PAGE)))

    assert commands() <= set(named)
    assert set(READER) & set(OPERATOR) == {"plan"}


def test_the_calls_of_commands_are_read_from_their_page() -> None:
    assert "ecs:StopTask" in calls_of("cancel")
    assert {"sqs:SendMessage", "ecr:BatchGetImage", "ec2:GetSpotPlacementScores"} <= calls_of("retry")
    assert {"sqs:ReceiveMessage", "sqs:DeleteMessage"} <= calls_of("dead-letters drop")
    assert "events:DeleteRule" in calls_of("definitions delete")
    assert "iam:PassRole" in calls_of("init")
    assert set(rows()) == commands()


@pytest.mark.parametrize("command", sorted({*READER} - {"plan"}))
def test_a_reader_may_call_what_the_command_calls(command: str) -> None:
    assert {action for action in actions_of(command) if not allows("ReaderRole", action)} == set()


def test_a_reader_may_plan_what_options_describe() -> None:
    called = {action for action in actions_of("plan") if action.startswith("ec2:")}

    assert len(called) == 4
    assert {action for action in called if not allows("ReaderRole", action)} == set()


@pytest.mark.parametrize("command", sorted({*READER, *OPERATOR}))
def test_an_operator_may_call_what_the_command_calls(command: str) -> None:
    denied = {action for action in actions_of(command) if not allows("OperatorRole", action)}

    assert denied == (OF_WHOEVER_DEPLOYS if command == "init" else set())


@pytest.mark.parametrize(
    "stack",
    [
        "relaunch",
        "relaunch-training",
        role_stack_name("relaunch", "vision"),
        github_stack_name("relaunch", "acme/vision"),
    ],
)
def test_an_operator_reads_every_stack_that_init_looks_for(stack: str) -> None:
    arn = f"arn:aws:cloudformation:{IN_REGION}:stack/{stack}/0a1b"

    assert policies_of("OperatorRole").allows("cloudformation:DescribeStacks", arn)


def test_an_operator_redrives_every_dead_letter_that_has_a_queue_to_go_to(template: Template) -> None:
    policies = policies_of("OperatorRole")
    urls = {output: output.removesuffix("Url") for output in template.outputs if output.endswith("QueueUrl")}
    dead = [name for name in urls.values() if name.endswith("DeadLetterQueue")]
    sources = [name for name in urls.values() if name.replace("Queue", "DeadLetterQueue") in dead]

    assert len(dead) > len(sources) > 5
    for action, names in (("ReceiveMessage", dead), ("DeleteMessage", dead), ("SendMessage", sources)):
        arns = [f"arn:aws:sqs:{IN_REGION}:relaunch-{name}-Z1Y2" for name in names]
        assert [arn for arn in arns if not policies.allows(f"sqs:{action}", arn)] == []


def test_an_operator_stops_the_tasks_of_its_cluster_and_reads_manifests_alone() -> None:
    policies = policies_of("OperatorRole")

    assert not policies.allows("ecs:StopTask", f"arn:aws:ecs:{IN_REGION}:task/payroll/0a1b")
    assert not policies.allows("s3:GetObject", "arn:aws:s3:::NewCheckpointBucket/vision/weights.bin")
    assert not policies.allows("ssm:GetParameters", f"arn:aws:ssm:{IN_REGION}:parameter/password")


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"events__source": ("aws.cloudtrail",)}, id="another source"),
        pytest.param({"events__source": ("aws.s3", "aws.health")}, id="another source beside"),
        pytest.param({"events__source": None}, id="any source"),
        pytest.param({"events__detail-type": ("AWS API Call via CloudTrail",)}, id="other events of S3"),
        pytest.param({"events__detail-type": None}, id="any event of S3"),
    ],
)
def test_an_operators_rules_for_s3_are_for_uploads_alone(rule: dict[str, ContextValue]) -> None:
    policies = policies_of("OperatorRole")

    assert policies.allows("events:PutRule", RESOURCES["events"], **RULE)
    assert not policies.allows("events:PutRule", RESOURCES["events"], **{**RULE, **rule})


@pytest.mark.parametrize(
    ("named", "source", "is_allowed"),
    [
        ("", ("relaunch.relaunch",), True),
        ("", ("relaunch.relaunch-b",), False),
        ("", ("com.acme",), False),
        ("com.acme,com.other", ("relaunch.relaunch", "com.other"), True),
        ("com.acme,com.other", ("com.acme", "aws.health"), False),
        ("com.acme", None, False),
    ],
)
def test_an_operators_rules_are_for_the_stacks_jobs_and_for_sources_that_are_named(
    named: str, source: ContextValue, *, is_allowed: bool
) -> None:
    template = written_template("infrastructure/training.yaml")
    policies = RolePolicies(template, "OperatorRole", **ZONES, EventSources=named)
    rule = {**RULE, "events__source": source, "events__detail-type": ("Job State Change",)}

    assert policies.allows("events:PutRule", RESOURCES["events"], **rule) == is_allowed


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"events__source": ("relaunch.payroll",)}, id="of another stack"),
        pytest.param({"events__source": None}, id="of anybody"),
        pytest.param({"events__detail-type": ("Job Paid",)}, id="of another kind"),
    ],
)
def test_an_operator_sends_changes_of_jobs_alone(entry: dict[str, ContextValue]) -> None:
    policies = policies_of("OperatorRole")
    bus = RESOURCES["events:PutEvents"]

    assert policies.allows("events:PutEvents", bus, **CHANGE)
    assert not policies.allows("events:PutEvents", bus, **{**CHANGE, **entry})
    assert not policies.allows("events:PutEvents", bus.replace("default", "payroll"), **CHANGE)


@pytest.mark.parametrize(
    "target",
    [
        f"arn:aws:sqs:{IN_REGION}:relaunch-IntakeQueue-Z1Y2",
        f"arn:aws:sqs:{IN_REGION}:relaunch-b-UploadsQueue-Z1Y2",
        f"arn:aws:sqs:{IN_REGION}:somebodys",
        f"arn:aws:lambda:{IN_REGION}:function:somebodys",
    ],
)
def test_an_operators_rules_have_the_queue_for_uploads_as_their_one_target(target: str) -> None:
    policies = policies_of("OperatorRole")
    own = RULE["events__TargetArn"]

    assert policies.allows("events:PutTargets", RESOURCES["events"], **RULE)
    for targets in ((target,), (*(own or ()), target), None):
        assert not policies.allows("events:PutTargets", RESOURCES["events"], **{**RULE, "events__TargetArn": targets})


def test_an_operator_makes_schedules_of_the_stack_with_its_one_role() -> None:
    policies = policies_of("OperatorRole")
    role = "arn:aws:iam::111122223333:role/relaunch-SchedulesRole-Z1Y2"
    to_scheduler: dict[str, ContextValue] = {"iam__PassedToService": "scheduler.amazonaws.com"}

    assert policies.allows("scheduler:CreateSchedule", RESOURCES["scheduler"])
    for other in ("default/nightly", "relaunch-b-Schedules-Z1Y2/abcdefghijkl"):
        assert not policies.allows("scheduler:CreateSchedule", f"arn:aws:scheduler:{IN_REGION}:schedule/{other}")
    assert policies.allows("iam:PassRole", role, **to_scheduler)
    assert not policies.allows("iam:PassRole", role, iam__PassedToService="ecs-tasks.amazonaws.com")
    assert not policies.allows("iam:PassRole", role.replace("Schedules", "Reconcile"), **to_scheduler)


def test_an_operator_reads_no_events_before_their_function_does() -> None:
    policies = policies_of("OperatorRole")

    for queue in ("IntakeQueue", "UploadsQueue", "WarningsQueue"):
        assert not policies.allows("sqs:ReceiveMessage", f"arn:aws:sqs:{IN_REGION}:relaunch-{queue}-Z1Y2")
