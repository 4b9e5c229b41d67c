"""AWS accounts that lack one thing each, and what `relaunch doctor` must name and say; run as a program it counts.

`python -m fakes.broken_accounts` makes them all, lets the command look at each, and prints how many it names right.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from moto.moto_api._internal.models import moto_api_backend

from fakes.account_bed import ACCOUNT, JOINED_CONSOLE, AccountBed
from fakes.aws import aws_in_process
from fakes.cli_session import Outcome, invoke
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import S3Trigger

Break = Callable[[AccountBed], object]


@dataclass(frozen=True)
class Broken:
    """How an account is broken, the check that must find it, alone, and what its text or its remedy must have.

    `{subnet}` and `{instance}` in the name stand for those of the account.
    """

    breaks: Break
    name: str
    says: str


@contextmanager
def whole_account() -> Iterator[AccountBed]:
    """Make an account that has everything; AWS must be in process."""
    moto_api_backend.reset()
    yield AccountBed()


def look(bed: AccountBed, *options: str) -> Outcome:
    """Let the command look at an account."""
    return invoke("doctor", "--json", *options, session=bed.connection)


def names(result: Outcome, verdict: str) -> list[str]:
    """Return the names of the checks with a verdict."""
    return [each["name"] for each in result.document["checks"] if each["verdict"] == verdict]


def is_named(bed: AccountBed, broken: Broken) -> bool:
    """Break an account; return whether the command names that alone, says what to do, and leaves nothing unknown."""
    instance = broken.breaks(bed)
    result = look(bed)
    name = broken.name.format(subnet=bed.subnet, instance=instance)
    said = [f"{each['text']} {each['to_do']}" for each in result.document["checks"] if each["verdict"] == "problem"]
    is_alone = names(result, "problem") == [name] and names(result, "unknown") == []
    return is_alone and broken.says in said[0] and result.exit_code == 2


def _few_gpus(bed: AccountBed) -> None:
    bed.quotas["L-DB2E81BA"] = 0.0


def _no_spot(bed: AccountBed) -> None:
    bed.quotas["L-3819A6DF"] = 0.0
    bed.requested["L-3819A6DF"] = ("CASE_OPENED", 8.0)


def _new_account(bed: AccountBed) -> None:
    bed.concurrency = (10, 10)
    bed.reserved = dict.fromkeys(bed.reserved)


def _reserved_by_others(bed: AccountBed) -> None:
    bed.reserved = dict.fromkeys(bed.reserved)


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


def _no_repository(bed: AccountBed) -> None:
    bed.ecr.delete_repository(repositoryName="relaunch/trainer")


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


def _managed_policy(bed: AccountBed) -> None:
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    made = bed.iam.create_policy(PolicyName="all", PolicyDocument=json.dumps(policy))["Policy"]["Arn"]
    bed.iam.attach_role_policy(RoleName="relaunch-SubmitJobRole", PolicyArn=made)


def _boundary_of_one(bed: AccountBed) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    bed.iam.put_role_permissions_boundary(RoleName="relaunch-RefreshOfferingsRole", PermissionsBoundary=boundary)


BROKEN: dict[str, Broken] = {
    "managed policy attached": Broken(
        _managed_policy,
        "role SubmitJobRole",
        f"detach-role-policy --role-name relaunch-SubmitJobRole --policy-arn arn:aws:iam::{ACCOUNT}:policy/all",
    ),
    "permissions boundary missing": Broken(
        _boundary_of_one, "role SubmitJobRole", "--permissions-boundary arn:aws:iam::123456789012:policy/boundary"
    ),
    "no quota on demand": Broken(_few_gpus, "quota L-DB2E81BA", "--quota-code L-DB2E81BA --desired-value"),
    "spot quota is requested": Broken(_no_spot, "quota L-3819A6DF", "wait for AWS"),
    "ten functions at once": Broken(_new_account, "Lambda concurrency", "--quota-code L-B99A9384 --desired-value 1001"),
    "nothing reserved": Broken(_reserved_by_others, "Lambda concurrency", "relaunch deploy"),
    "no AMI parameter": Broken(_no_parameter, "launch template gpu", "relaunch amis"),
    "no AMI": Broken(_no_image, "launch template gpu", "GpuImageId="),
    "no launch template": Broken(_no_template, "launch template gpu", "relaunch deploy"),
    "no role of Spot": Broken(
        partial(_no_role_of, "spot.amazonaws.com"),
        "service-linked role of spot.amazonaws.com",
        "relaunch deploy, which makes it, or\naws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    ),
    "no role of ECS": Broken(
        partial(_no_role_of, "ecs.amazonaws.com"),
        "service-linked role of ecs.amazonaws.com",
        "aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com",
    ),
    "role under another path": Broken(_role_elsewhere, "resnet: task role", "aws iam create-role --path /relaunch/"),
    "role is gone": Broken(_role_gone, "resnet: execution role", "--role-name execution"),
    "role trusts EC2": Broken(_role_of_machines, "resnet: task role", "update-assume-role-policy --role-name wrong"),
    "no bucket": Broken(_no_bucket, "checkpoint bucket acme-checkpoints", "aws s3api create-bucket"),
    "bucket not granted": Broken(_bucket_not_granted, "checkpoint bucket acme-others", "CheckpointBuckets=acme-"),
    "bucket in another region": Broken(_bucket_elsewhere, "checkpoint bucket acme-checkpoints", "in us-east-1 as"),
    "key not granted": Broken(_own_key, "checkpoint bucket acme-checkpoints", "CheckpointKeyArns=arn:aws:kms:"),
    "never fits": Broken(_never_fits, "resnet: placement", "relaunch plan resnet"),
    "no ACTIVE revision": Broken(_no_revision, "resnet: placement", "relaunch plan resnet"),
    "too little time to save": Broken(_no_time, "resnet: stopTimeout", "without `stopTimeout`"),
    "shell swallows SIGTERM": Broken(_shell, "resnet: SIGTERM", "exec python"),
    "EventBridge is off": Broken(_events_off, "uploads to acme-data", """'{"EventBridgeConfiguration": {}}'"""),
    "EventBridge is off, others on": Broken(_events_off_beside_others, "uploads to acme-data", "jq"),
    "no repository": Broken(
        _no_repository, "images of relaunch/trainer", "create-repository --repository-name relaunch/trainer"
    ),
    "no rule": Broken(_no_rule, "rules of triggers", "relaunch apply"),
    "dead letter": Broken(_dead_letter, "queue IntakeDeadLetterQueue", "relaunch dead-letters list"),
    "webhook failed": Broken(_alarm, "alarm WebhookFailuresAlarm", "docs/operations.md"),
    "no managed scaling": Broken(_no_scaling, "capacity provider g5", "'managedScaling={status=ENABLED}'"),
    "no termination protection": Broken(
        partial(_replace_provider, managedTerminationProtection="DISABLED"),
        "capacity provider g5",
        "managedTerminationProtection=ENABLED",
    ),
    "no scale-in protection": Broken(
        partial(_group, NewInstancesProtectedFromScaleIn=False),
        "capacity provider g5",
        "--new-instances-protected-from-scale-in",
    ),
    "group of size 0": Broken(partial(_group, MaxSize=0), "capacity provider g5", "--max-size 1"),
    "two instance types": Broken(_two_types, "capacity provider g5", "for each instance type"),
    "another instance type": Broken(_other_type, "capacity provider g5", "CapacityProviders=g5=g5.2xlarge/on-demand"),
    "not in the cluster": Broken(_not_in_cluster, "capacity provider g5", "put-cluster-capacity-providers"),
    "no capacity provider": Broken(_no_provider, "capacity provider g5", "relaunch deploy CapacityProviders="),
    "no cluster": Broken(_no_cluster, "cluster relaunch", "aws ecs create-cluster --cluster-name relaunch"),
    "no way out": Broken(_no_way_out, "subnet {subnet}", "NAT gateway"),
    "no public addresses": Broken(_private, "subnet {subnet}", "--map-public-ip-on-launch"),
    "no subnet": Broken(_no_subnet, "subnet {subnet}", "MachineSubnets=ZONE=SUBNET"),
    "instance without a role": Broken(
        lambda bed: bed.run_instance(has_profile=False),
        "instance {instance}",
        "role: it has no instance profile",
    ),
    "instance without a network": Broken(
        lambda bed: bed.run_instance("curl: (28) Connection timed out"),
        "instance {instance}",
        "network: its console says: curl",
    ),
    "instance without user data": Broken(
        lambda bed: bed.run_instance(user_data="#!/bin/bash\n"),
        "instance {instance}",
        "user data: its user data names no cluster",
    ),
    "instance without an agent": Broken(
        lambda bed: bed.run_instance("[FAILED] Failed to start ecs.service - Amazon Elastic Container Service."),
        "instance {instance}",
        "agent: its console says: [FAILED] Failed to start ecs.service",
    ),
    "instance that does not say": Broken(
        lambda bed: bed.run_instance(JOINED_CONSOLE),
        "instance {instance}",
        "unknown: its console does not say",
    ),
}


def main() -> None:
    """Print how many checks a whole account takes, and how many broken ones are named right."""
    with aws_in_process():
        with whole_account() as bed:
            result = look(bed)
        is_silent = not (names(result, "problem") or names(result, "unknown"))
        wrong = []
        for case, broken in BROKEN.items():
            with whole_account() as bed:
                if not is_named(bed, broken):
                    wrong.append(case)
    checks = len(json.loads(result.stdout)["checks"])
    named = len(BROKEN) - len(wrong)
    sys.stdout.write(f"{checks} checks; {named} of {len(BROKEN)} broken accounts named right\n")
    sys.stdout.write(f"a whole account: {'silent' if is_silent else 'not silent'}\n")
    sys.stdout.writelines(f"wrong: {case}\n" for case in wrong)


if __name__ == "__main__":
    main()
