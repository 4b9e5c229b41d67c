"""The policy of docs/doctor.md has what `relaunch doctor` calls, and reads only."""

import json
import re

from architecture.conftest import Template, as_list
from fakes.aws import aws_in_process
from fakes.broken_accounts import BROKEN, look, whole_account
from fakes.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
STATEMENTS = json.loads(re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)[0])["Statement"]
PREFIXES = {"auto-scaling": "autoscaling", "eventbridge": "events", "service-quotas": "servicequotas"}
# Where the action is not named like the operation (Service Authorization Reference); the last needs no permission.
ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketNotificationConfiguration": "s3:GetBucketNotification",
    "sts:GetCallerIdentity": "",
}


def action_of(call: str) -> str:
    service, _, operation = call.partition(":")
    return ACTIONS.get(call, f"{PREFIXES.get(service, service)}:{operation}")


def resources_of(action: str) -> list[str]:
    """The resources for which the policy allows an action."""
    return [arn for each in STATEMENTS if action in as_list(each["Action"]) for arn in as_list(each["Resource"])]


def test_the_policy_reads_every_role_and_dead_letter_queue_of_the_application(template: Template) -> None:
    for kind, action in (("AWS::IAM::Role", "iam:GetRole"), ("AWS::SQS::Queue", "sqs:GetQueueAttributes")):
        there = [name for name, each in template.resources.items() if each["Type"] == kind]
        looked_at = [name for name in there if kind == "AWS::IAM::Role" or name.endswith("DeadLetterQueue")]

        allowed = resources_of(action)
        assert [name for name in looked_at if not any(f"vision-{name}-" in arn for arn in allowed)] == []


def test_the_policy_has_every_call_and_reads_only() -> None:
    called: set[str] = set()
    with aws_in_process():
        for case in ("no way out", "instance that does not say"):
            with whole_account() as bed:
                BROKEN[case].breaks(bed)
                bed.calls.clear()
                look(bed)
                called |= {action_of(call) for call in bed.calls} - {""}

    allowed = {action for each in STATEMENTS for action in as_list(each["Action"])}
    assert called - allowed == set()
    # Images in ECR, schedules, interface endpoints, and what follows from a revision that is not the latest, are not in
    # this account.
    assert allowed - called == {
        "ec2:DescribeSecurityGroups",
        "ecr:BatchGetImage",
        "ecr:GetDownloadUrlForLayer",
        "ecs:DescribeContainerInstances",
        "ecs:ListTaskDefinitions",
        "scheduler:GetSchedule",
        "scheduler:ListSchedules",
    }
    assert {action for action in allowed if not re.search(r":(?:Describe|Get|List|Query|BatchGet)", action)} == set()
