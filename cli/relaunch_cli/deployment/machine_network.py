"""Where machines of our own are launched: the cluster, the VPC and its subnets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli.deployment.machine_parameters import SUBNETS, SWITCH
from relaunch_cli.deployment.refusals import RefusedError


@dataclass(frozen=True)
class Network:
    """A VPC, one of its subnets for each zone, and what to tell whoever deploys."""

    vpc_id: str
    subnets: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """The value of the application's parameter MachineSubnets."""
        return ",".join(f"{zone}={subnet}" for zone, subnet in self.subnets.items())


def check_cluster(name: str, ecs: Any) -> None:
    """Check that the ECS cluster exists.

    Raises:
        RefusedError: it does not, or is being deleted.
    """
    clusters = ecs.describe_clusters(clusters=[name])["clusters"]
    if any(each["status"] == "ACTIVE" for each in clusters):
        return
    raise RefusedError(
        f"the ECS cluster {name} does not exist in {ecs.meta.region_name}: `aws ecs create-cluster --cluster-name "
        f"{name}` creates it, and costs nothing; or name yours: ClusterName=..."
    )


def find_network(vpc_id: str, subnets: str, ec2: Any) -> Network:
    """Return the subnets that are named, or one for each zone of the VPC; an empty VPC is the account's default one.

    Raises:
        RefusedError: there are none, or they are not of one VPC.
    """
    return _named(subnets, vpc_id, ec2) if subnets else _of_vpc(vpc_id or _default_vpc(ec2), ec2)


def _default_vpc(ec2: Any) -> str:
    found = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    if not found:
        raise RefusedError(
            f"the account has no default VPC in {ec2.meta.region_name} to launch machines in: name one of yours, "
            f"VpcId=vpc-..., or make one by `aws ec2 create-default-vpc`; without machines of our own: {SWITCH}=off"
        )
    return str(found[0]["VpcId"])


def _of_vpc(vpc_id: str, ec2: Any) -> Network:
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "state", "Values": ["available"]}]
    pages = ec2.get_paginator("describe_subnets").paginate(Filters=filters)
    # An Outpost has its own machines, and a subnet without IPv4 no address that the agent could use.
    found = [
        each for page in pages for each in page["Subnets"] if not each.get("OutpostArn") and not each.get("Ipv6Native")
    ]
    if not found:
        raise RefusedError(
            f"the VPC {vpc_id} has no subnet to launch machines in: `aws ec2 create-default-subnet --availability-zone "
            f"{ec2.meta.region_name}a` makes one in a default VPC, once for each zone; or name another: VpcId=vpc-..."
        )
    best: dict[str, Any] = {}
    for each in sorted(found, key=_preference):
        best.setdefault(each["AvailabilityZone"], each)
    edge = [zone for zone in sorted(best) if not _is_availability_zone(zone, ec2.meta.region_name)]
    usual = {zone: best[zone] for zone in sorted(best) if zone not in edge}
    if not usual:
        raise RefusedError(f"the VPC {vpc_id} has subnets in {', '.join(edge)} alone: {_EDGE}")
    network = _network(vpc_id, usual)
    return replace(network, notes=(f"{', '.join(edge)} are left out: {_EDGE}", *network.notes)) if edge else network


_EDGE = (
    "Local Zones have other on-demand prices than their region, which are not known, and machines in Wavelength Zones "
    f"no address but their carrier's; to launch machines there all the same name a subnet for each zone: {SUBNETS}=..."
)


def _is_availability_zone(zone: str, region: str) -> bool:
    """Return whether a zone is none of the Local and Wavelength Zones that somebody has switched on.

    An Availability Zone is called after its region, with a letter ("Regions and Zones", EC2 User Guide).
    """
    return zone[:-1] == region


def _preference(subnet: Mapping[str, Any]) -> tuple[bool, bool, int, str]:
    """Sort default subnets first, then those that give public addresses, then those with most addresses."""
    is_default = bool(subnet.get("DefaultForAz"))
    is_public = bool(subnet.get("MapPublicIpOnLaunch"))
    return not is_default, not is_public, -int(subnet.get("AvailableIpAddressCount", 0)), str(subnet["SubnetId"])


def _named(subnets: str, vpc_id: str, ec2: Any) -> Network:
    named = dict(entry.partition("=")[::2] for entry in subnets.split(","))
    if not all(zone and subnet for zone, subnet in named.items()) or len(named) < subnets.count(",") + 1:
        raise RefusedError(f"{SUBNETS}={subnets} is not zone=subnet,zone=subnet with each zone once")
    try:
        found = ec2.describe_subnets(SubnetIds=list(named.values()))["Subnets"]
    except ClientError as error:
        if not error.response["Error"]["Code"].startswith("InvalidSubnetID"):
            raise
        text = error.response["Error"].get("Message", "a subnet is unknown")
        raise RefusedError(
            f"{SUBNETS}: {text}: name subnets that are there, one for each zone, or only their VPC: VpcId=vpc-..."
        ) from error
    by_id = {each["SubnetId"]: each for each in found}
    for zone, subnet in named.items():
        actual = by_id[subnet]["AvailabilityZone"]
        if actual != zone:
            raise RefusedError(f"{SUBNETS}: {subnet} is in {actual}, not in {zone}")
    vpcs = {each["VpcId"] for each in found} | ({vpc_id} if vpc_id else set())
    if len(vpcs) > 1:
        raise RefusedError(f"{SUBNETS} and VpcId must be of one VPC, and are of {', '.join(sorted(vpcs))}")
    return _network(vpcs.pop(), {zone: by_id[subnet] for zone, subnet in named.items()})


def _network(vpc_id: str, subnets: Mapping[str, Mapping[str, Any]]) -> Network:
    private = [each["SubnetId"] for each in subnets.values() if not each.get("MapPublicIpOnLaunch")]
    return Network(
        vpc_id, {zone: str(each["SubnetId"]) for zone, each in subnets.items()}, tuple(_private_notes(private))
    )


def _private_notes(private: Iterable[str]) -> Iterable[str]:
    names = ", ".join(private)
    if names:
        yield (
            f"{names} give no public address: machines there need a NAT gateway or VPC endpoints for ECS, ECR, "
            "CloudWatch Logs and S3, else they never register, and are ended"
        )
