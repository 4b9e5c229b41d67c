"""doctor names what is broken in an AWS account, with what mends it, and is silent about a whole one."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from moto.ec2.utils import generate_instance_identity_document

from fakes.account_bed import READING, AccountBed
from fakes.aws import aws_in_process
from fakes.broken_accounts import BROKEN, is_named, look, names, whole_account
from fakes.cli_session import flat, invoke
from relaunch_cli.account_checks.network import ENDPOINTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _aws() -> Iterator[None]:
    with aws_in_process():
        yield


@pytest.fixture(scope="module")
def _whole(_aws: None) -> Iterator[AccountBed]:
    """An account for all tests: to make one takes longer than what most of them do with it."""
    with whole_account() as made:
        yield made


@pytest.fixture
def bed(_whole: AccountBed) -> AccountBed:
    _whole.restore()
    return _whole


def test_a_whole_account_has_no_problem_and_nothing_unknown(bed: AccountBed) -> None:
    result = look(bed)

    assert (names(result, "problem"), names(result, "unknown"), result.exit_code) == ([], [], 0)
    assert len(result.document["checks"]) == 24


def test_nothing_is_changed(bed: AccountBed) -> None:
    bed.calls.clear()
    look(bed)

    assert len(bed.calls) > 20
    assert [call for call in bed.calls if not call.partition(":")[2].startswith(READING)] == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_account_is_named_right(bed: AccountBed, case: str) -> None:
    assert is_named(bed, BROKEN[case])


def test_the_page_has_what_to_do_and_a_summary(bed: AccountBed) -> None:
    bed.quotas["L-DB2E81BA"] = 0.0

    result = invoke("doctor", session=bed.connection, columns=200)

    assert "quota L-DB2E81BA: aws service-quotas request-service-quota-increase" in flat(result.stdout)
    assert flat(result.stdout).endswith("1 problem in 24 checks")
    assert result.exit_code == 2


# Each call, the check that needs it, and the permission to grant.
DENIED = {
    "cloudformation:DescribeStackResource": ("Lambda concurrency", "cloudformation:DescribeStackResource"),
    "lambda:GetAccountSettings": ("Lambda concurrency", "lambda:GetAccountSettings"),
    "lambda:GetFunctionConcurrency": ("Lambda concurrency", "lambda:GetFunctionConcurrency"),
    "ecs:DescribeClusters": ("cluster relaunch", "ecs:DescribeClusters"),
    "ecs:DescribeCapacityProviders": ("capacity providers", "ecs:DescribeCapacityProviders"),
    "auto-scaling:DescribeAutoScalingGroups": (
        "capacity provider g5",
        "autoscaling:DescribeAutoScalingGroups",
    ),
    "service-quotas:GetServiceQuota": ("vCPU quotas", "servicequotas:GetServiceQuota"),
    "service-quotas:ListRequestedServiceQuotaChangeHistory": (
        "requests for quotas",
        "servicequotas:ListRequestedServiceQuotaChangeHistory",
    ),
    "ec2:DescribeLaunchTemplateVersions": ("launch template gpu", "ec2:DescribeLaunchTemplateVersions"),
    "ssm:GetParameter": ("launch template gpu", "ssm:GetParameter"),
    "ec2:DescribeImages": ("launch template gpu", "ec2:DescribeImages"),
    "ec2:DescribeRouteTables": ("subnet {subnet}", "ec2:DescribeRouteTables"),
    "ec2:DescribeInstances": ("instances", "ec2:DescribeInstances"),
    "iam:GetRole": ("resnet: task role", "iam:GetRole"),
    "iam:ListAttachedRolePolicies": ("roles", "iam:ListAttachedRolePolicies"),
    "iam:ListRolePolicies": ("roles", "iam:ListRolePolicies"),
    "cloudformation:ListStackResources": ("roles", "cloudformation:ListStackResources"),
    "iam:ListRoles": ("service-linked role of spot.amazonaws.com", "iam:ListRoles"),
    "s3:ListObjectsV2": ("checkpoint bucket acme-checkpoints", "s3:ListBucket"),
    "s3:GetBucketEncryption": ("checkpoint bucket acme-checkpoints", "s3:GetEncryptionConfiguration"),
    "s3:GetBucketLocation": ("checkpoint bucket acme-checkpoints", "s3:GetBucketLocation"),
    "s3:GetBucketNotificationConfiguration": ("uploads to acme-data", "s3:GetBucketNotification"),
    "eventbridge:ListRules": ("rules of triggers", "ListRules"),
    "sqs:GetQueueAttributes": ("queue IntakeDeadLetterQueue", "sqs:GetQueueAttributes"),
    "cloudwatch:DescribeAlarms": ("alarms", "cloudwatch:DescribeAlarms"),
    "dynamodb:Query": ("job definitions", "Query"),
}


@pytest.mark.parametrize("call", DENIED)
def test_what_may_not_be_read_is_unknown_and_ends_no_other_check(bed: AccountBed, call: str) -> None:
    name, permission = DENIED[call]
    bed.denied = {call}

    result = look(bed)

    unknown = {each["name"]: each["to_do"] for each in result.document["checks"] if each["verdict"] == "unknown"}
    assert names(result, "problem") == []
    assert permission in unknown[name.format(subnet=bed.subnet)]
    assert "alarm" in str(names(result, "ok") + list(unknown))
    assert result.exit_code == 0


def test_of_definitions_that_cannot_be_read_nothing_follows(bed: AccountBed) -> None:
    bed.denied.add("dynamodb:Query")

    result = look(bed)

    assert names(result, "unknown") == ["job definitions"]
    assert {"vCPU quotas", "rules of triggers"}.isdisjoint(names(result, "ok"))


def test_without_a_definition_it_is_said_how_to_register_one(bed: AccountBed) -> None:
    definitions = bed.connection.deps.definitions
    for each in definitions.list_definitions():
        definitions.delete_definition(each.name)

    checks = {each["name"]: each for each in look(bed).document["checks"]}

    assert checks["job definitions"]["text"].startswith("none is registered: `relaunch init` writes one")
    assert checks["job definitions"]["verdict"] == "ok"
    assert "vCPU quotas" not in checks


def test_definitions_that_cannot_be_planned_still_have_buckets(bed: AccountBed) -> None:
    bed.throttled.add("ecs:DescribeTaskDefinition")

    result = look(bed)

    assert names(result, "unknown") == ["job definitions"]
    assert {"checkpoint bucket acme-checkpoints", "rules of triggers"} <= set(names(result, "ok"))
    assert "vCPU quotas" not in names(result, "ok")


def test_who_may_read_nothing_is_told_what_to_grant(bed: AccountBed) -> None:
    bed.denies_all = True

    result = look(bed)

    assert names(result, "problem") == []
    assert result.exit_code == 0
    assert set(names(result, "unknown")) >= {"stack relaunch", "Lambda concurrency"}


def test_alarms_of_a_stack_with_a_longer_name_are_not_this_ones(bed: AccountBed) -> None:
    name = "relaunch-vision-WebhookFailuresAlarm-1ABC"
    bed.cloudwatch.put_metric_alarm(
        AlarmName=name, MetricName="Url5xxCount", Namespace="AWS/Lambda", Period=300, EvaluationPeriods=1,
        Threshold=0, ComparisonOperator="GreaterThanThreshold", Statistic="Sum",
    )  # fmt: skip
    bed.cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="1 datapoint was above 0")

    assert names(look(bed), "problem") == []


def test_a_time_out_makes_a_check_unknown(bed: AccountBed) -> None:
    bed.failures["cloudwatch:DescribeAlarms"] = ReadTimeoutError(endpoint_url="https://example.com")

    result = look(bed)

    assert names(result, "unknown") == ["alarms"]
    assert result.exit_code == 0


def test_throttling_makes_a_check_unknown_and_says_to_try_again(bed: AccountBed) -> None:
    bed.throttled.add("ec2:DescribeInstances")

    (check,) = (each for each in look(bed).document["checks"] if each["verdict"] == "unknown")

    assert (check["name"], check["to_do"]) == ("instances", "try again")
    assert "ec2:DescribeInstances: ThrottlingException" in check["text"]


def test_without_a_stack_the_account_is_checked_and_the_stack_is_the_problem(bed: AccountBed) -> None:
    bed.cloudformation.delete_stack(StackName="relaunch")

    result = look(bed)

    assert names(result, "problem") == ["stack relaunch"]
    assert "service-linked role of spot.amazonaws.com" in names(result, "ok")
    assert result.exit_code == 2


def test_a_stack_of_something_else_is_named(bed: AccountBed) -> None:
    bed.cloudformation.delete_stack(StackName="relaunch")
    bed.create_other_stack()

    assert names(look(bed), "problem") == ["outputs of relaunch"]


def test_options_of_clusters_are_refused(bed: AccountBed) -> None:
    result = invoke("doctor", "--scheduler", "1.28", session=bed.connection)

    assert result.exit_code == 2
    assert "add --target kubernetes, ack or acs" in result.stderr


def test_without_credentials_nothing_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    result = invoke("doctor", "--region", "us-east-1")

    assert (result.exit_code, result.stdout) == (5, "")
    assert "no AWS credentials" in result.stderr


def test_a_region_that_does_not_exist_is_refused() -> None:
    result = invoke("doctor", "--region", "us-east-9")

    assert result.exit_code == 2
    assert "there is no region 'us-east-9'" in result.stderr


def test_an_instance_that_has_joined_is_no_problem(bed: AccountBed) -> None:
    instance = boto3.resource("ec2", "us-east-1").Instance(bed.run_instance())
    document = json.dumps(generate_instance_identity_document(instance))
    bed.ecs.register_container_instance(cluster="relaunch", instanceIdentityDocument=document)

    result = look(bed)

    assert names(result, "problem") == []
    (check,) = (each for each in result.document["checks"] if each["name"] == "instances")
    assert check["text"] == "1 run, and all are in the cluster"


def test_an_instance_that_starts_is_no_problem(bed: AccountBed) -> None:
    bed.later = timedelta(minutes=1)
    instance = bed.run_instance(has_profile=False)

    assert f"instance {instance}" in names(look(bed), "ok")


def test_a_machine_whose_facts_may_not_be_read_is_judged_by_its_console(bed: AccountBed) -> None:
    bed.denied |= {"ec2:DescribeInstanceAttribute", "iam:GetInstanceProfile"}
    instance = bed.run_instance("curl: (28) Connection timed out", user_data="", has_profile=True)

    assert names(look(bed), "problem") == [f"instance {instance}"]


def test_endpoints_of_all_services_are_a_way_out(bed: AccountBed) -> None:
    bed.ec2.delete_route(RouteTableId=bed.route_table, DestinationCidrBlock="0.0.0.0/0")
    for service in set(ENDPOINTS) - {"s3"}:
        bed.ec2.create_vpc_endpoint(
            VpcId=bed.vpc,
            ServiceName=f"com.amazonaws.us-east-1.{service}",
            VpcEndpointType="Interface",
            SubnetIds=[bed.subnet],
            PrivateDnsEnabled=True,
        )
    gateway = {"VpcId": bed.vpc, "ServiceName": "com.amazonaws.us-east-1.s3", "VpcEndpointType": "Gateway"}
    elsewhere = bed.ec2.create_route_table(VpcId=bed.vpc)["RouteTable"]["RouteTableId"]
    bed.ec2.create_vpc_endpoint(**gateway, RouteTableIds=[elsewhere])

    # One that is in no route table of the subnet leads nowhere.
    (check,) = (each for each in look(bed).document["checks"] if each["verdict"] == "problem")
    assert "its VPC no endpoints of s3:" in check["text"]
    bed.ec2.create_vpc_endpoint(**gateway, RouteTableIds=[bed.route_table])
    assert f"subnet {bed.subnet}" in names(look(bed), "ok")


def test_the_route_table_of_the_subnet_goes_before_the_main_one(bed: AccountBed) -> None:
    table = bed.ec2.create_route_table(VpcId=bed.vpc)["RouteTable"]["RouteTableId"]
    bed.ec2.associate_route_table(RouteTableId=table, SubnetId=bed.subnet)

    assert names(look(bed), "problem") == [f"subnet {bed.subnet}"]


def test_functions_that_a_removal_has_closed_start_no_job(bed: AccountBed) -> None:
    bed.reserved |= {"JobApiFunction": 0, "GithubWebhookFunction": 0}

    result = invoke("doctor", session=bed.connection, columns=200)

    assert "GithubWebhookFunction and JobApiFunction may not run" in flat(result.stdout)
    assert "Lambda concurrency: relaunch deploy" in flat(result.stdout)


def test_the_doctor_of_the_local_world_is_silent_about_what_it_does_not_have(
    bed: AccountBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaunch_cli.commands.doctor.is_loopback", lambda _: True)
    bed.concurrency = (573, 573)
    bed.reserved = dict.fromkeys(bed.reserved)

    result = look(bed)

    assert (names(result, "problem"), result.exit_code) == ([], 0)
    assert "the local world cannot tell: Lambda concurrency" in result.stderr
