"""Instances that have not joined, and endpoints that a subnet uses."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from relaunch.core.machines.settings import MachineSettings
from relaunch_cli.account_checks.network import ENDPOINTS
from relaunch_cli.account_readers.calls import UnreadError
from relaunch_cli.account_readers.machines import check_joined, read_subnet

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


class Account:
    """Answers lists by operation; what has no answer may not be read."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self.answers = answers

    def list(self, _service: str, operation: str, _member: str, **_: Any) -> list[dict[str, Any]]:
        if operation not in self.answers:
            raise UnreadError(operation, "AccessDenied")
        return self.answers[operation]

    def call(self, _service: str, operation: str, *_: str, **__: Any) -> Any:
        if operation != "describe_subnets":
            raise UnreadError(operation, "AccessDenied")
        return {"Subnets": [{"VpcId": "vpc-1", "AvailabilityZone": "us-east-1a"}]}


def member(instance_id: str, state: str) -> dict[str, str]:
    return {"InstanceId": instance_id, "LifecycleState": state}


@pytest.mark.parametrize(
    ("groups", "missing"),
    [
        pytest.param([{"Instances": [member("i-1", "InService")]}], {"i-1", "i-2"}, id="no pool"),
        pytest.param(
            [{"Instances": [member("i-1", "InService")], "WarmPoolConfiguration": {}}], {"i-1", "i-2"}, id="empty"
        ),
        pytest.param(
            [{"Instances": [member("i-1", "InService")], "WarmPoolConfiguration": {"MinSize": 1}}], {"i-1"}, id="pool"
        ),
        pytest.param(
            [
                {
                    "Instances": [member("i-1", "InService"), member("i-2", "Warmed:Running")],
                    "WarmPoolConfiguration": {"MinSize": 1},
                }
            ],
            {"i-1"},
            id="listed",
        ),
    ],
)
def test_an_instance_in_a_warm_pool_need_not_have_joined(groups: list[dict[str, Any]], missing: set[str]) -> None:
    running = [{"InstanceId": each, "LaunchTime": NOW - timedelta(hours=1)} for each in ("i-1", "i-2")]
    account: Any = Account(
        describe_instances=[{"Instances": running}], describe_auto_scaling_groups=groups, list_container_instances=[]
    )

    checks = list(check_joined(MachineSettings(), "training", ["g5"], NOW, account))

    assert {each.name for each in checks} == {f"instance {each}" for each in missing}


HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}


@pytest.mark.parametrize(
    ("rules", "is_used"),
    [
        ([HTTPS], True),
        ([{"IpProtocol": "-1"}], True),
        ([{"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535}], True),
        ([], False),
        ([{**HTTPS, "FromPort": 22, "ToPort": 22}], False),
        ([{**HTTPS, "IpProtocol": "udp"}], False),
        (None, True),
    ],
)
def test_an_endpoint_that_lets_no_https_in_is_none(rules: list[dict[str, Any]] | None, *, is_used: bool) -> None:
    endpoint = {
        "ServiceName": "com.amazonaws.us-east-1.ecs",
        "PrivateDnsEnabled": True,
        "Groups": [{"GroupId": "sg-1"}],
    }
    lists = {"describe_route_tables": [], "describe_vpc_endpoints": [endpoint]}
    if rules is not None:
        lists["describe_security_groups"] = [{"GroupId": "sg-1", "IpPermissions": rules}]
    account: Any = Account(**lists)

    subnet = read_subnet("subnet-1", account)

    assert subnet is not None
    assert subnet.endpoints == ({"ecs"} if is_used else set())


@pytest.mark.parametrize(
    "route",
    [{"NatGatewayId": "nat-1", "State": "blackhole"}, {"GatewayId": "igw-1", "State": "active"}],
    ids=["its target is gone", "without public addresses"],
)
def test_endpoints_of_all_services_are_a_way_whatever_the_default_route_leads_to(route: dict[str, str]) -> None:
    table = {
        "RouteTableId": "rtb-1",
        "Associations": [{"Main": True}],
        "Routes": [{"DestinationCidrBlock": "0.0.0.0/0", **route}],
    }
    endpoints = [
        {"ServiceName": f"com.amazonaws.us-east-1.{each}", "PrivateDnsEnabled": True, "Groups": []}
        for each in ENDPOINTS
    ]
    account: Any = Account(describe_route_tables=[table], describe_vpc_endpoints=endpoints, describe_security_groups=[])
    without: Any = Account(describe_route_tables=[table], describe_vpc_endpoints=[])

    reached = read_subnet("subnet-1", account)
    unreached = read_subnet("subnet-1", without)

    assert reached is not None
    assert unreached is not None
    assert reached.barrier == ""
    assert unreached.barrier != ""
