"""The cluster, the subnets and EC2's role for spot, as an account has them."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fakes.aws import aws_in_process, make_client
from relaunch_cli.deployment.machine_network import check_cluster, find_network
from relaunch_cli.deployment.refusals import RefusedError

ZONES = tuple(f"us-east-1{letter}" for letter in "abcdef")


@pytest.fixture(autouse=True)
def account() -> Iterator[None]:
    """Let there be an account with a default VPC, as moto makes one."""
    with aws_in_process():
        yield


@pytest.fixture
def ec2() -> Any:
    return make_client("ec2")


def make_vpc(ec2: Any, *subnets: tuple[str, str], **attributes: bool) -> tuple[str, list[str]]:
    """Make a VPC with subnets in these zones and address ranges."""
    vpc_id = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc_id, AvailabilityZone=zone, CidrBlock=block)["Subnet"]["SubnetId"]
        for zone, block in subnets
    ]
    for subnet_id in made:
        for name, value in attributes.items():
            ec2.modify_subnet_attribute(SubnetId=subnet_id, **{name: {"Value": value}})
    return vpc_id, made


class TestCluster:
    def test_one_that_is_active_is_taken(self) -> None:
        ecs = make_client("ecs")
        ecs.create_cluster(clusterName="training")

        check_cluster("training", ecs)

    @pytest.mark.parametrize("clusters", [[], [{"clusterName": "training", "status": "INACTIVE"}]], ids=["no", "gone"])
    def test_one_that_is_not_there_is_refused_with_the_command_that_makes_it(self, clusters: list[Any]) -> None:
        ecs = make_client("ecs")
        with Stubber(ecs) as stubber:
            stubber.add_response("describe_clusters", {"clusters": clusters}, {"clusters": ["training"]})
            with pytest.raises(RefusedError) as refused:
                check_cluster("training", ecs)

        assert str(refused.value) == (
            "the ECS cluster training does not exist in us-east-1: `aws ecs create-cluster --cluster-name training` "
            "creates it, and costs nothing; or name yours: ClusterName=..."
        )


class TestChoice:
    def test_the_default_vpc_has_one_subnet_for_each_zone(self, ec2: Any) -> None:
        network = find_network("", "", ec2)

        (default,) = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
        assert network.vpc_id == default["VpcId"]
        assert tuple(network.subnets) == ZONES
        assert network.parameter.startswith(f"us-east-1a={network.subnets['us-east-1a']},us-east-1b=subnet-")
        assert network.notes == ()

    def test_the_choice_is_always_the_same(self, ec2: Any) -> None:
        vpc_id, _ = make_vpc(ec2, ("us-east-1b", "10.9.0.0/24"), ("us-east-1a", "10.9.1.0/24"))

        assert find_network(vpc_id, "", ec2) == find_network(vpc_id, "", ec2)
        assert tuple(find_network(vpc_id, "", ec2).subnets) == ("us-east-1a", "us-east-1b")

    def test_in_a_vpc_of_ones_own_the_largest_subnet_of_a_zone_is_taken(self, ec2: Any) -> None:
        vpc_id, (_, large) = make_vpc(
            ec2, ("us-east-1a", "10.9.0.0/28"), ("us-east-1a", "10.9.16.0/20"), MapPublicIpOnLaunch=True
        )

        assert find_network(vpc_id, "", ec2).subnets == {"us-east-1a": large}

    def test_a_subnet_that_gives_public_addresses_is_preferred(self, ec2: Any) -> None:
        vpc_id, (_, public) = make_vpc(ec2, ("us-east-1a", "10.9.16.0/20"), ("us-east-1a", "10.9.0.0/28"))
        ec2.modify_subnet_attribute(SubnetId=public, MapPublicIpOnLaunch={"Value": True})

        assert find_network(vpc_id, "", ec2).subnets == {"us-east-1a": public}

    def test_subnets_without_public_addresses_are_taken_with_a_warning(self, ec2: Any) -> None:
        vpc_id, (private,) = make_vpc(ec2, ("us-east-1a", "10.9.0.0/24"))

        assert find_network(vpc_id, "", ec2).notes == (
            f"{private} give no public address: machines there need a NAT gateway or VPC endpoints for ECS, ECR, "
            "CloudWatch Logs and S3, else they never register, and are ended",
        )

    def test_subnets_of_outposts_and_without_ipv4_are_left_out(self, ec2: Any) -> None:
        usual = {"AvailabilityZone": "us-east-1a", "VpcId": "vpc-0a", "MapPublicIpOnLaunch": True}
        outpost = "arn:aws:outposts:us-east-1:111122223333:outpost/op-0a"
        found = [
            {**usual, "SubnetId": "subnet-0a", "OutpostArn": outpost, "AvailableIpAddressCount": 900},
            {**usual, "SubnetId": "subnet-0b", "Ipv6Native": True, "AvailableIpAddressCount": 800},
            {**usual, "SubnetId": "subnet-0c", "AvailableIpAddressCount": 3},
        ]
        with Stubber(ec2) as stubber:
            stubber.add_response("describe_subnets", {"Subnets": found[:1], "NextToken": "more"})
            stubber.add_response("describe_subnets", {"Subnets": found[1:]})
            assert find_network("vpc-0a", "", ec2).subnets == {"us-east-1a": "subnet-0c"}

    def test_zones_with_other_prices_or_without_public_addresses_are_left_out_with_a_note(self, ec2: Any) -> None:
        usual = {"VpcId": "vpc-0a", "MapPublicIpOnLaunch": True, "AvailableIpAddressCount": 9}
        zones = ("us-east-1-wl1-bos-wlz-1", "us-east-1-atl-2a", "us-east-1b")
        found = [{**usual, "AvailabilityZone": zone, "SubnetId": f"subnet-0{zone[-1]}"} for zone in zones]
        with Stubber(ec2) as stubber:
            stubber.add_response("describe_subnets", {"Subnets": found})
            network = find_network("vpc-0a", "", ec2)
            stubber.add_response("describe_subnets", {"Subnets": found[:2]})
            with pytest.raises(RefusedError, match="vpc-0a has subnets in us-east-1-atl-2a, us-east-1-wl1-bos-wlz-1 a"):
                find_network("vpc-0a", "", ec2)

        assert network.parameter == "us-east-1b=subnet-0b"
        assert network.notes == (
            "us-east-1-atl-2a, us-east-1-wl1-bos-wlz-1 are left out: Local Zones have other on-demand prices than "
            "their region, which are not known, and machines in Wavelength Zones no address but their carrier's; to "
            "launch machines there all the same name a subnet for each zone: MachineSubnets=...",
        )

    def test_an_account_without_a_default_vpc_is_told_what_to_do(self, ec2: Any) -> None:
        with Stubber(ec2) as stubber:
            stubber.add_response("describe_vpcs", {"Vpcs": []})
            with pytest.raises(RefusedError) as refused:
                find_network("", "", ec2)

        assert str(refused.value) == (
            "the account has no default VPC in us-east-1 to launch machines in: name one of yours, VpcId=vpc-..., or "
            "make one by `aws ec2 create-default-vpc`; without machines of our own: Machines=off"
        )

    def test_a_vpc_without_subnets_is_refused_with_the_command_that_makes_one(self, ec2: Any) -> None:
        vpc_id, _ = make_vpc(ec2)

        with pytest.raises(RefusedError) as refused:
            find_network(vpc_id, "", ec2)

        assert str(refused.value) == (
            f"the VPC {vpc_id} has no subnet to launch machines in: `aws ec2 create-default-subnet --availability-zone "
            "us-east-1a` makes one in a default VPC, once for each zone; or name another: VpcId=vpc-..."
        )


class TestNamed:
    def test_subnets_that_are_named_are_taken_and_tell_their_vpc(self, ec2: Any) -> None:
        vpc_id, (a, b) = make_vpc(ec2, ("us-east-1a", "10.9.0.0/24"), ("us-east-1b", "10.9.1.0/24"))

        network = find_network("", f"us-east-1b={b},us-east-1a={a}", ec2)

        assert (network.vpc_id, network.parameter) == (vpc_id, f"us-east-1b={b},us-east-1a={a}")

    @pytest.mark.parametrize("text", ["subnet-0a", "us-east-1a=", "us-east-1a=subnet-0a,us-east-1a=subnet-0b", ","])
    def test_what_is_not_one_subnet_for_each_zone_is_refused(self, ec2: Any, text: str) -> None:
        with pytest.raises(RefusedError, match="is not zone=subnet,zone=subnet with each zone once"):
            find_network("", text, ec2)

    def test_a_subnet_of_another_zone_is_refused(self, ec2: Any) -> None:
        _, (subnet,) = make_vpc(ec2, ("us-east-1a", "10.9.0.0/24"))

        with pytest.raises(RefusedError, match=f"MachineSubnets: {subnet} is in us-east-1a, not in us-east-1b"):
            find_network("", f"us-east-1b={subnet}", ec2)

    def test_subnets_of_two_vpcs_are_refused(self, ec2: Any) -> None:
        (first, (a,)), (second, _) = make_vpc(ec2, ("us-east-1a", "10.9.0.0/24")), make_vpc(ec2)

        with pytest.raises(
            RefusedError, match="MachineSubnets and VpcId must be of one VPC, and are of vpc-"
        ) as refused:
            find_network(second, f"us-east-1a={a}", ec2)
        assert first in str(refused.value)

    def test_a_subnet_that_was_deleted_is_named(self, ec2: Any) -> None:
        with pytest.raises(RefusedError, match=r"subnet-0badbad.*: name subnets that are there, .* VpcId=vpc-"):
            find_network("", "us-east-1a=subnet-0badbad", ec2)

    def test_another_error_is_not_taken_for_a_missing_subnet(self, ec2: Any) -> None:
        with Stubber(ec2) as stubber:
            stubber.add_client_error("describe_subnets", "UnauthorizedOperation", "not you", 403)
            with pytest.raises(ClientError, match="UnauthorizedOperation"):
                find_network("", "us-east-1a=subnet-0a", ec2)
