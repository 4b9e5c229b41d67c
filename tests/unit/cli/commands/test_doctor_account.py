"""doctor names what is broken in an AWS account, with what mends it, and is silent about a whole one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from moto.moto_api._internal.models import moto_api_backend

from fakes.account_bed import ACCOUNT, JOINED_CONSOLE, AccountBed
from fakes.aws import aws_in_process
from fakes.cli_session import Outcome, invoke
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import S3Trigger

Break = Callable[[AccountBed], object]


@pytest.fixture
def bed() -> Iterator[AccountBed]:
    with aws_in_process():
        moto_api_backend.reset()
        yield AccountBed()


def look(bed: AccountBed, *options: str) -> Outcome:
    return invoke("doctor", "--json", *options, session=bed.connection)


def names(result: Outcome, verdict: str) -> list[str]:
    return [each["name"] for each in result.document["checks"] if each["verdict"] == verdict]


def test_a_whole_account_has_no_problem_and_nothing_unknown(bed: AccountBed) -> None:
    result = look(bed)

    assert (names(result, "problem"), names(result, "unknown"), result.exit_code) == ([], [], 0)
    assert len(result.document["checks"]) == 20


def test_nothing_is_changed(bed: AccountBed) -> None:
    bed.calls.clear()
    look(bed)

    reading = ("Describe", "Get", "List", "Head", "Query")
    assert len(bed.calls) > 20
    assert [call for call in bed.calls if not call.partition(":")[2].startswith(reading)] == []


def _few_gpus(bed: AccountBed) -> None:
    bed.quotas["L-DB2E81BA"] = 0.0


def _no_spot(bed: AccountBed) -> None:
    bed.quotas["L-3819A6DF"] = 0.0
    bed.requested["L-3819A6DF"] = ("CASE_OPENED", 8.0)


def _new_account(bed: AccountBed) -> None:
    bed.concurrency = (10, 10)
    bed.reserved = dict.fromkeys(bed.reserved, 0)


def _reserved_by_others(bed: AccountBed) -> None:
    bed.reserved = dict.fromkeys(bed.reserved, 0)


def _no_parameter(bed: AccountBed) -> None:
    bed.ssm.delete_parameter(Name="/acme/ami")


def _no_image(bed: AccountBed) -> None:
    bed.ssm.put_parameter(Name="/acme/ami", Value="ami-0123456789abcdef0", Type="String", Overwrite=True)


def _no_template(bed: AccountBed) -> None:
    bed.ec2.delete_launch_template(LaunchTemplateId=bed.template)


def _no_role_of(service: str, bed: AccountBed) -> None:
    role = bed.iam.list_roles(PathPrefix=f"/aws-service-role/{service}/")["Roles"][0]["RoleName"]
    for policy in bed.iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        bed.iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    bed.iam.delete_role(RoleName=role)


def _role_elsewhere(bed: AccountBed) -> None:
    bed.register(task_role=bed.create_role("other", "/vision/"))


def _role_gone(bed: AccountBed) -> None:
    bed.iam.delete_role(RoleName="execution")


def _role_of_machines(bed: AccountBed) -> None:
    bed.register(task_role=bed.create_role("wrong", Principal={"Service": "ec2.amazonaws.com"}))


def _no_bucket(bed: AccountBed) -> None:
    bed.s3.delete_bucket(Bucket="acme-checkpoints")


def _bucket_not_granted(bed: AccountBed) -> None:
    bed.s3.create_bucket(Bucket="acme-others")
    bed.save(replace(bed.definition, checkpoint_uri="s3://acme-others/"))


def _bucket_elsewhere(bed: AccountBed) -> None:
    bed.s3.delete_bucket(Bucket="acme-checkpoints")
    bed.s3.create_bucket(Bucket="acme-checkpoints", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})


def _own_key(bed: AccountBed) -> None:
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1234abcd"
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    bed.s3.put_bucket_encryption(Bucket="acme-checkpoints", ServerSideEncryptionConfiguration={"Rules": [rule]})


def _never_fits(bed: AccountBed) -> None:
    gpu = GpuRequirement(count=1, memory_mib=1024 * 1024)
    bed.save(replace(bed.definition, accelerator=AcceleratorRequirement(gpu=gpu)))


def _no_revision(bed: AccountBed) -> None:
    bed.ecs.deregister_task_definition(taskDefinition="relaunch-trainer:1")


def _no_time(bed: AccountBed) -> None:
    bed.register(stopTimeout=10)


def _shell(bed: AccountBed) -> None:
    bed.register(entryPoint=["sh", "-c"], command=["cd /work && python -m train"])


def _events_off(bed: AccountBed) -> None:
    bed.notifications["acme-data"] = {}


def _events_off_beside_others(bed: AccountBed) -> None:
    queue = {"QueueArn": "arn:aws:sqs:us-east-1:1:q", "Events": ["s3:ObjectCreated:*"]}
    bed.notifications["acme-data"] = {"QueueConfigurations": [queue]}


def _no_rule(bed: AccountBed) -> None:
    bed.save(replace(bed.definition, triggers=(S3Trigger("acme-data", "other/"),)))


def _dead_letter(bed: AccountBed) -> None:
    bed.sqs.send_message(QueueUrl=bed.dead_letters, MessageBody="{}")


def _alarm(bed: AccountBed) -> None:
    name = "relaunch-WebhookFailuresAlarm-1ABC"
    bed.cloudwatch.put_metric_alarm(
        AlarmName=name, MetricName="Url5xxCount", Namespace="AWS/Lambda", Period=300, EvaluationPeriods=1,
        Threshold=0, ComparisonOperator="GreaterThanThreshold", Statistic="Sum",
    )  # fmt: skip
    bed.cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="1 datapoint was above 0")


def _no_scaling(bed: AccountBed) -> None:
    _replace_provider(bed, managedScaling={"status": "DISABLED"}, managedTerminationProtection="DISABLED")


def _replace_provider(bed: AccountBed, **settings: object) -> None:
    bed.ecs.delete_capacity_provider(capacityProvider="g5")
    bed.create_provider(**settings)


def _group(bed: AccountBed, **changes: object) -> None:
    bed.autoscaling.update_auto_scaling_group(AutoScalingGroupName="g5", **changes)


def _two_types(bed: AccountBed) -> None:
    template = bed.create_template("two", ImageId=bed.image, InstanceType="g5.xlarge")
    overrides = [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g5.2xlarge"}]
    specification = {"LaunchTemplateId": template, "Version": "1"}
    policy = {"LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": overrides}}
    _group(bed, MixedInstancesPolicy=policy)


def _other_type(bed: AccountBed) -> None:
    template = bed.create_template("other", ImageId=bed.image, InstanceType="g5.2xlarge")
    _group(bed, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})


def _not_in_cluster(bed: AccountBed) -> None:
    bed.ecs.put_cluster_capacity_providers(cluster="relaunch", capacityProviders=[], defaultCapacityProviderStrategy=[])


def _no_provider(bed: AccountBed) -> None:
    bed.ecs.delete_capacity_provider(capacityProvider="g5")


def _no_cluster(bed: AccountBed) -> None:
    bed.ecs.delete_cluster(cluster="relaunch")


def _no_way_out(bed: AccountBed) -> None:
    bed.ec2.delete_route(RouteTableId=bed.route_table, DestinationCidrBlock="0.0.0.0/0")


def _private(bed: AccountBed) -> None:
    bed.ec2.modify_subnet_attribute(SubnetId=bed.subnet, MapPublicIpOnLaunch={"Value": False})


def _no_subnet(bed: AccountBed) -> None:
    bed.ec2.delete_subnet(SubnetId=bed.subnet)


BROKEN: dict[str, tuple[Break, str, str]] = {
    "no quota on demand": (_few_gpus, "quota L-DB2E81BA", "--quota-code L-DB2E81BA --desired-value"),
    "spot quota is requested": (_no_spot, "quota L-3819A6DF", "wait for AWS"),
    "ten functions at once": (_new_account, "Lambda concurrency", "--quota-code L-B99A9384 --desired-value 1000"),
    "nothing reserved": (_reserved_by_others, "Lambda concurrency", "relaunch deploy"),
    "no AMI parameter": (_no_parameter, "launch template gpu", "relaunch amis"),
    "no AMI": (_no_image, "launch template gpu", "GpuImageId="),
    "no launch template": (_no_template, "launch template gpu", "relaunch deploy"),
    "no role of Spot": (
        partial(_no_role_of, "spot.amazonaws.com"),
        "service-linked role of spot.amazonaws.com",
        "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    "no role of ECS": (
        partial(_no_role_of, "ecs.amazonaws.com"),
        "service-linked role of ecs.amazonaws.com",
        "aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com",
    ),
    "role under another path": (_role_elsewhere, "resnet: task role", "aws iam create-role --path /relaunch/"),
    "role is gone": (_role_gone, "resnet: execution role", "--role-name execution"),
    "role trusts EC2": (_role_of_machines, "resnet: task role", "aws iam update-assume-role-policy --role-name wrong"),
    "no bucket": (_no_bucket, "checkpoint bucket acme-checkpoints", "aws s3api create-bucket"),
    "bucket not granted": (_bucket_not_granted, "checkpoint bucket acme-others", "CheckpointBuckets=acme-checkpoints,"),
    "bucket in another region": (_bucket_elsewhere, "checkpoint bucket acme-checkpoints", "a bucket in us-east-1"),
    "key not granted": (_own_key, "checkpoint bucket acme-checkpoints", "CheckpointKeyArns=arn:aws:kms:"),
    "never fits": (_never_fits, "resnet: placement", "relaunch plan resnet"),
    "no ACTIVE revision": (_no_revision, "resnet: placement", "relaunch plan resnet"),
    "too little time to save": (_no_time, "resnet: stopTimeout", "without `stopTimeout`"),
    "shell swallows SIGTERM": (_shell, "resnet: SIGTERM", "exec python"),
    "EventBridge is off": (_events_off, "uploads to acme-data", """'{"EventBridgeConfiguration": {}}'"""),
    "EventBridge is off, others on": (_events_off_beside_others, "uploads to acme-data", "get-bucket-notification-"),
    "no rule": (_no_rule, "rules for uploads", "relaunch apply"),
    "dead letter": (_dead_letter, "queue IntakeDeadLetterQueue", "relaunch dead-letters list"),
    "webhook failed": (_alarm, "alarm WebhookFailuresAlarm", "docs/operations.md"),
    "no managed scaling": (_no_scaling, "capacity provider g5", "'managedScaling={status=ENABLED}'"),
    "no termination protection": (
        partial(_replace_provider, managedTerminationProtection="DISABLED"),
        "capacity provider g5",
        "managedTerminationProtection=ENABLED",
    ),
    "no scale-in protection": (
        partial(_group, NewInstancesProtectedFromScaleIn=False),
        "capacity provider g5",
        "--new-instances-protected-from-scale-in",
    ),
    "group of size 0": (partial(_group, MaxSize=0), "capacity provider g5", "--max-size 1"),
    "two instance types": (_two_types, "capacity provider g5", "for each instance type"),
    "another instance type": (_other_type, "capacity provider g5", "CapacityProviders=g5=g5.2xlarge/on-demand"),
    "not in the cluster": (_not_in_cluster, "capacity provider g5", "put-cluster-capacity-providers"),
    "no capacity provider": (_no_provider, "capacity provider g5", "relaunch deploy CapacityProviders="),
    "no cluster": (_no_cluster, "cluster relaunch", "aws ecs create-cluster --cluster-name relaunch"),
}
SUBNETS: dict[str, tuple[Break, str]] = {
    "no way out": (_no_way_out, "NAT gateway"),
    "no public addresses": (_private, "--map-public-ip-on-launch"),
    "no subnet": (_no_subnet, "MachineSubnets=ZONE=SUBNET"),
}
NOT_JOINED: dict[str, tuple[Callable[[AccountBed], str], str]] = {
    "role": (lambda bed: bed.run_instance(has_profile=False), "role: it has no instance profile"),
    "network": (lambda bed: bed.run_instance("curl: (28) Connection timed out"), "network: its console says: curl"),
    "user data": (lambda bed: bed.run_instance(user_data="#!/bin/bash\n"), "user data: its user data names no cluster"),
    "agent": (
        lambda bed: bed.run_instance("[FAILED] Failed to start ecs.service - Amazon Elastic Container Service."),
        "agent: its console says: [FAILED] Failed to start ecs.service",
    ),
    "unknown": (lambda bed: bed.run_instance(JOINED_CONSOLE), "unknown: its console does not say"),
}


def found(bed: AccountBed) -> dict[str, str]:
    """Return what to do about each problem, by its name; none may be unknown."""
    result = look(bed)
    assert names(result, "unknown") == []
    assert result.exit_code == (2 if names(result, "problem") else 0)
    return {each["name"]: each["to_do"] for each in result.document["checks"] if each["verdict"] == "problem"}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_account_is_named_right(bed: AccountBed, case: str) -> None:
    breaks, name, to_do = BROKEN[case]
    breaks(bed)

    problems = found(bed)

    assert list(problems) == [name]
    assert to_do in problems[name]


@pytest.mark.parametrize("case", SUBNETS)
def test_a_broken_subnet_is_named_right(bed: AccountBed, case: str) -> None:
    breaks, to_do = SUBNETS[case]
    breaks(bed)

    problems = found(bed)

    assert list(problems) == [f"subnet {bed.subnet}"]
    assert to_do in problems[f"subnet {bed.subnet}"]


@pytest.mark.parametrize("case", NOT_JOINED)
def test_why_an_instance_has_not_joined_is_named_right(bed: AccountBed, case: str) -> None:
    run, text = NOT_JOINED[case]
    instance = run(bed)

    result = look(bed)

    assert names(result, "problem") == [f"instance {instance}"]
    assert text in next(each["text"] for each in result.document["checks"] if each["verdict"] == "problem")
