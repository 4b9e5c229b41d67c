"""What parameters name is looked up before anything is made."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from fakes.aws import REGION, aws_in_process, make_client
from relaunch_cli.deployment.named_resources import check_resources
from relaunch_cli.deployment.refusals import RefusedError


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with aws_in_process():
        yield


def check(**given: str) -> list[str]:
    return list(check_resources(given, make_client, REGION))


def arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:{REGION}:123456789012:{name}"


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("VpcId", "vpc-0bad", "VpcId=vpc-0bad: there is no such VPC in this account and us-east-1"),
        ("CheckpointBucket", "nosuch-xx", "CheckpointBucket=nosuch-xx: there is no such bucket"),
        ("CheckpointBuckets", "nosuch-xx,nosuch-yy", "CheckpointBuckets=nosuch-xx: there is no such bucket"),
        ("DiskKmsKeyArn", arn("kms", "key/0f0f"), "there is no such key"),
        ("GithubTokenSecretArn", arn("secretsmanager", "secret:token-AbCdEf"), "there is no such secret"),
        ("KubernetesKubeconfigSecretArn", arn("secretsmanager", "secret:eks-AbCdEf"), "there is no such secret"),
        ("AlarmTopicArn", arn("sns", "pager"), "there is no such topic"),
        ("GpuImageId", "ami-0123456789abcdef0", "there is no such image"),
        (
            "Zones",
            "us-east-1a,eu-central-1a",
            "eu-central-1a is no zone of us-east-1, which has us-east-1a, us-east-1b",
        ),
        ("SubnetIds", "subnet-0bad", "SubnetIds=subnet-0bad: .*subnet-0bad"),
        ("SecurityGroupIds", "sg-0bad", "SecurityGroupIds=sg-0bad: .*sg-0bad"),
        ("MachineSubnets", "us-east-1a=subnet-0bad", "MachineSubnets: .*subnet-0bad"),
    ],
)
def test_what_is_not_there_is_refused_with_its_parameter(parameter: str, value: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        check(**{parameter: value})


def test_what_is_there_is_taken_and_nothing_is_looked_up_without_a_name() -> None:
    ec2 = make_client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    make_client("s3").create_bucket(Bucket="acme-checkpoints")
    topic = make_client("sns").create_topic(Name="pager")["TopicArn"]
    subnet = ec2.describe_subnets()["Subnets"][0]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]

    assert check(VpcId=vpc, CheckpointBucket="acme-checkpoints", AlarmTopicArn=topic, Zones="us-east-1b") == []
    assert check(SubnetIds=subnet["SubnetId"], SecurityGroupIds=group) == []
    assert check(MachineSubnets=f"{subnet['AvailabilityZone']}={subnet['SubnetId']}", VpcId=vpc) == []
    assert list(check_resources({}, lambda _: None, REGION)) == []


def test_an_image_of_another_account_is_refused() -> None:
    own = make_client("ec2").register_image(Name="trained", Architecture="x86_64")["ImageId"]
    amazons = make_client("ec2").describe_images()["Images"][0]["ImageId"]
    assert check(GpuImageId=own, NeuronImageId=amazons) == []
    other = Mock(**{"get_caller_identity.return_value": {"Account": "444455556666"}})

    with pytest.raises(RefusedError, match=f"GpuImageId={own} is of another account: .*copy-image"):
        list(check_resources({"GpuImageId": own}, lambda name: other if name == "sts" else make_client(name), REGION))


def test_subnets_and_security_groups_of_two_vpcs_are_refused() -> None:
    ec2 = make_client("ec2")
    other = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=other)["GroupId"]
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]

    with pytest.raises(RefusedError, match=f"must be of one VPC, and are of .*{other} .SecurityGroupIds"):
        check(SubnetIds=subnet, SecurityGroupIds=group)


def test_what_may_not_be_read_is_a_note() -> None:
    class Denied:
        def __getattr__(self, name: str) -> Any:
            def call(**_: Any) -> None:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, name)

            return call

    given = {"CheckpointBucket": "acme", "SubnetIds": "subnet-0a"}

    assert list(check_resources(given, lambda _: Denied(), REGION)) == [
        "CheckpointBucket: whether acme is there cannot be read (AccessDenied)",
        "SubnetIds: cannot be read (AccessDenied)",
    ]
