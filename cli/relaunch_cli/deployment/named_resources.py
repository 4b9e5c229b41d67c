"""Whether what parameters name is in the account, before anything is made."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli.deployment.machine_network import find_network
from relaunch_cli.deployment.machine_parameters import SUBNETS
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.shared_images import COPY_IMAGE, is_shared


@dataclass(frozen=True)
class _Lookup:
    """Which parameters name what, and the call that reads one of it; `absent` are the codes for what is not there."""

    parameters: Collection[str]
    what: str
    service: str
    read: Callable[[Any, str], object]
    absent: Collection[str]


# Codes are those of the API references of these services; HeadBucket's answer has no body, and its status as the code.
_LOOKUPS = (
    _Lookup(("VpcId",), "VPC", "ec2", lambda ec2, value: ec2.describe_vpcs(VpcIds=[value]), ("InvalidVpcID.NotFound",)),
    _Lookup(
        ("CapacityReservations",),
        "capacity reservation",
        "ec2",
        lambda ec2, value: ec2.describe_capacity_reservations(CapacityReservationIds=[value]),
        ("InvalidCapacityReservationId.NotFound",),
    ),
    _Lookup(
        ("GpuImageId", "NeuronImageId"),
        "image",
        "ec2",
        lambda ec2, value: value.startswith("resolve:") or ec2.describe_images(ImageIds=[value]),
        ("InvalidAMIID.NotFound",),
    ),
    _Lookup(
        ("CheckpointBucket", "DataBucket", "CheckpointBuckets"),
        "bucket",
        "s3",
        lambda s3, value: s3.head_bucket(Bucket=value),
        ("404", "NoSuchBucket"),
    ),
    _Lookup(
        ("DiskKmsKeyArn", "MachineDiskKeyArn", "CheckpointKeyArns"),
        "key",
        "kms",
        lambda kms, value: kms.describe_key(KeyId=value),
        ("NotFoundException",),
    ),
    _Lookup(
        (
            *("AckKubeconfigSecretArn", "AcsKubeconfigSecretArn", "KubernetesKubeconfigSecretArn"),
            *("GithubTokenSecretArn", "GithubStatusTokenSecretArn"),
        ),
        "secret",
        "secretsmanager",
        lambda secrets, value: secrets.describe_secret(SecretId=value),
        ("ResourceNotFoundException",),
    ),
    _Lookup(
        ("AlarmTopicArn", "NoticeTopicArns", "SnsTopicArns"),
        "topic",
        "sns",
        lambda sns, value: sns.get_topic_attributes(TopicArn=value),
        ("NotFound", "NotFoundException"),
    ),
)


def check_resources(given: Mapping[str, str], client: Callable[[str], Any], region: str) -> Iterator[str]:
    """Check that there is what parameters name, and yield what could not be read.

    Raises:
        RefusedError: something is not there, or not where it must be; the message names the parameter and the value.
        ClientError, BotoCoreError: a call failed otherwise.
    """
    for lookup in _LOOKUPS:
        for parameter in lookup.parameters:
            for value in filter(None, given.get(parameter, "").split(",")):
                yield from _read(lookup, parameter, value, client(lookup.service), region)
    _check_images(given, client)
    ec2 = client("ec2")
    if given.get(SUBNETS):
        find_network(given.get("VpcId", ""), given[SUBNETS], ec2)
    _check_zones(given.get("Zones", ""), ec2, region)
    yield from _check_network_of_tasks(given, ec2)


def _read(lookup: _Lookup, parameter: str, value: str, client: Any, region: str) -> Iterator[str]:
    try:
        lookup.read(client, value)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in lookup.absent:
            raise RefusedError(
                f"{parameter}={value}: there is no such {lookup.what} in this account and {region}"
            ) from error
        # Who deploys may not be allowed to read it, and it may be another account's.
        yield f"{parameter}: whether {value} is there cannot be read ({code})"


def _check_images(given: Mapping[str, str], client: Callable[[str], Any]) -> None:
    for parameter in ("GpuImageId", "NeuronImageId"):
        image_id = given.get(parameter, "")
        if not image_id.startswith("ami-"):
            continue
        with suppress(ClientError):
            # What cannot be read is noted already.
            account_id = client("sts").get_caller_identity()["Account"]
            for image in client("ec2").describe_images(ImageIds=[image_id])["Images"]:
                if is_shared(image, account_id):
                    raise RefusedError(f"{parameter}={image_id} is of another account: {COPY_IMAGE.format(image_id)}")


def _check_zones(named: str, ec2: Any, region: str) -> None:
    zones = [each for each in named.split(",") if each]
    if not zones:
        return
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    there = sorted(
        str(each["ZoneName"]) for each in ec2.describe_availability_zones(Filters=filters)["AvailabilityZones"]
    )
    unknown = [each for each in zones if each not in there]
    if unknown:
        raise RefusedError(f"Zones={named}: {', '.join(unknown)} is no zone of {region}, which has {', '.join(there)}")


def _check_network_of_tasks(given: Mapping[str, str], ec2: Any) -> Iterator[str]:
    """Check that subnets and security groups of tasks in awsvpc mode are there, and of one VPC."""
    vpcs: dict[str, str] = {}
    for parameter in ("SubnetIds", "SecurityGroupIds"):
        values = [each for each in given.get(parameter, "").split(",") if each]
        try:
            found = _read_network(parameter, values, ec2) if values else []
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if not code.startswith("Invalid"):
                yield f"{parameter}: cannot be read ({code})"
                continue
            raise RefusedError(f"{parameter}={given[parameter]}: {error.response['Error']['Message']}") from error
        vpcs |= {str(each["VpcId"]): parameter for each in found}
    if len(vpcs) > 1:
        where = ", ".join(f"{vpc} ({parameter})" for vpc, parameter in sorted(vpcs.items()))
        raise RefusedError(f"SubnetIds and SecurityGroupIds must be of one VPC, and are of {where}")


def _read_network(parameter: str, values: Sequence[str], ec2: Any) -> Sequence[Mapping[str, Any]]:
    if parameter == "SubnetIds":
        return list(ec2.describe_subnets(SubnetIds=values)["Subnets"])
    return list(ec2.describe_security_groups(GroupIds=values)["SecurityGroups"])
