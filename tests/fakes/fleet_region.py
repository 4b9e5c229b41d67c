"""A simulated region with EC2 Fleet, for tests."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import (
    NO_WATCHDOG,
    FleetSettings,
    HostPlan,
    InProcessClient,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    Timing,
    Watchdog,
)
from relaunch_local.iam.permission import Authorize

ZONES = ("us-east-1a", "us-east-1b")
SUBNETS = {"subnet-a": "us-east-1a", "subnet-a2": "us-east-1a", "subnet-b": "us-east-1b"}
ROLE = "arn:aws:iam::111122223333:role/relaunch/host"
PROFILE = "arn:aws:iam::111122223333:instance-profile/relaunch/host"
OLD = LaunchTemplateVersion(cluster="c", image_id="ami-00000000000000001")
NEW = LaunchTemplateVersion(
    cluster="c",
    image_id="ami-00000000000000002",
    attributes={"stack": "relaunch"},
    instance_profile_arn=PROFILE,
    instance_role_arn=ROLE,
    tags={"instance": {"stack": "relaunch", "own": "template"}, "volume": {"stack": "relaunch"}},
)
PRICES = {("g5.xlarge", "us-east-1a"): 0.5, ("g5.xlarge", "us-east-1b"): 0.4, ("g5.12xlarge", "us-east-1a"): 2.0}
INSTANCE_CHANGE = "ECS Container Instance State Change"


def override(instance_type: str = "g5.xlarge", subnet: str = "subnet-a", **members: Any) -> dict[str, Any]:
    """Return an override."""
    return {"InstanceType": instance_type, "SubnetId": subnet, **members}


def fleet_request(*overrides: dict[str, Any], market: str = "on-demand", **members: Any) -> dict[str, Any]:
    """Return the parameters of CreateFleet; without overrides, one of g5.xlarge in us-east-1a."""
    template = {"LaunchTemplateId": "lt-1", "Version": "2"}
    config = {"LaunchTemplateSpecification": template, "Overrides": list(overrides) or [override()]}
    target = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": market}
    return {"Type": "instant", "LaunchTemplateConfigs": [config], "TargetCapacitySpecification": target, **members}


def price_of(instance_type: str, zone: str, _purchase: Purchase) -> float | None:
    """Return a price, None if it is unknown."""
    return PRICES.get((instance_type, zone))


class FleetRegion(SimulatedRegion):
    """A region with the launch template `lt-1` of two versions, whose hosts join the cluster `c`."""

    def __init__(
        self,
        *,
        timing: Timing | None = None,
        authorize: Authorize | None = None,
        watchdog: Watchdog = NO_WATCHDOG,
        **fleet: Any,
    ) -> None:
        templates = [LaunchTemplate("lt-1", "hosts", (OLD, NEW))]
        chosen = {"launch_templates": templates, "subnets": SUBNETS, "watchdog": watchdog, **fleet}
        settings = FleetSettings(**chosen)
        offerings = {"us-east-1a": ["g5.xlarge", "g5.12xlarge", "inf2.24xlarge"], "us-east-1b": ["g5.xlarge"]}
        super().__init__(timing=timing, authorize=authorize, fleet=settings, offerings=offerings, price_of=price_of)
        self.ec2: Any = InProcessClient(self.simulator, "ec2", access_key="AKIATEST")

    def create(self, *overrides: dict[str, Any], **members: Any) -> dict[str, Any]:
        """Call CreateFleet."""
        answer: dict[str, Any] = self.ec2.create_fleet(**fleet_request(*overrides, **members))
        return answer

    def launch(self, *overrides: dict[str, Any], plan: HostPlan | None = None, **members: Any) -> str:
        """Call CreateFleet, which launches an instance with this plan; return its ID."""
        if plan is not None:
            self.simulator.fleets.plans.append(plan)
        answer = self.create(*overrides, **members)
        assert answer["Errors"] == []
        return str(answer["Instances"][0]["InstanceIds"][0])

    def ready(self, *overrides: dict[str, Any], plan: HostPlan | None = None, **members: Any) -> str:
        """Launch an instance, wait until it is registered, and return its ID."""
        instance_id = self.launch(*overrides, plan=plan, **members)
        assert self.clock.run_until(lambda: self.simulator.instance(instance_id).is_registered, 600.0)
        return instance_id

    def refused(self, *overrides: dict[str, Any], **members: Any) -> list[str]:
        """Call CreateFleet, which launches nothing; return its error codes."""
        answer = self.create(*overrides, **members)
        assert answer["Instances"] == []
        return [each["ErrorCode"] for each in answer["Errors"]]

    def raised(self, method: str, **request: Any) -> str:
        """Return the code of the error that an EC2 call raises."""
        with pytest.raises(ClientError) as caught:
            getattr(self.ec2, method)(**request)
        return str(caught.value.response["Error"]["Code"])

    def described(self, instance_id: str) -> dict[str, Any]:
        """Return an instance as DescribeInstances returns it."""
        reservations = self.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
        found: dict[str, Any] = reservations[0]["Instances"][0]
        return found

    def state(self, instance_id: str) -> str:
        """Return the state of an instance, as DescribeInstances returns it."""
        return str(self.described(instance_id)["State"]["Name"])

    def registrations(self) -> list[dict[str, Any]]:
        """Return the details of the state changes of container instances."""
        return self.details(INSTANCE_CHANGE)

    def living(self) -> int:
        """Return how many instances are billed."""
        return sum(line.billing_ended_at is None for line in self.simulator.instances.bill)
