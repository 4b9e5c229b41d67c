"""Which subnets let a machine reach ECS."""

import pytest

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.network import ENDPOINTS, DefaultRoute, SubnetFacts, check_subnet

OF_AN_AGENT = frozenset({"ecs", "ecs-agent", "ecs-telemetry", "ecr.api", "ecr.dkr", "s3"})


def facts(route: DefaultRoute | None = None, *, is_public: bool = False, endpoints: frozenset[str] = frozenset()):
    return SubnetFacts("subnet-1", "us-east-1a", is_public, route, endpoints)


@pytest.mark.parametrize(
    "subnet",
    [
        facts(DefaultRoute("igw-1"), is_public=True),
        facts(DefaultRoute("nat-1")),
        facts(DefaultRoute("tgw-1")),
        facts(endpoints=frozenset(ENDPOINTS)),
    ],
)
def test_a_subnet_with_a_way_out_is_ok(subnet: SubnetFacts) -> None:
    assert check_subnet("subnet-1", "us-east-1a", subnet).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("subnet", "text", "to_do"),
    [
        (facts(DefaultRoute("igw-1")), "gives no public addresses", "--map-public-ip-on-launch"),
        (facts(DefaultRoute("nat-1", is_blackhole=True)), "nat-1, which is gone", "relaunch deploy MachineSubnets="),
        (facts(DefaultRoute("igw-1", is_blackhole=True)), "igw-1, which is gone", "aws ec2 replace-route"),
        (facts(), "no route to 0.0.0.0/0", "NAT gateway"),
        (facts(endpoints=frozenset(ENDPOINTS) - {"ecr.dkr"}), "no endpoints of ecr.dkr", "NAT gateway"),
        # The awslogs driver of a task asks CloudWatch Logs for its stream before the container starts.
        (facts(endpoints=OF_AN_AGENT), "no endpoints of logs", "NAT gateway"),
        (None, "does not exist", "relaunch deploy MachineSubnets="),
    ],
)
def test_a_subnet_without_a_way_out_is_a_problem(subnet: SubnetFacts | None, text: str, to_do: str) -> None:
    check = check_subnet("subnet-1", "us-east-1a", subnet)

    assert check.verdict is Verdict.PROBLEM
    assert (text in check.text, to_do in check.to_do) == (True, True)


def test_a_subnet_of_another_zone_is_named_with_its_own() -> None:
    check = check_subnet("subnet-1", "us-east-1b", facts(DefaultRoute("nat-1")))

    assert check.to_do == "relaunch deploy MachineSubnets=us-east-1a=subnet-1,..."
