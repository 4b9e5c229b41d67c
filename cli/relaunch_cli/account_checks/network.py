"""Whether a machine in a subnet reaches ECS, ECR and S3.

Sources: "Route tables" and "Internet gateways" (Amazon VPC User Guide); "Amazon ECS interface VPC endpoints", and the
same of Amazon ECR and CloudWatch Logs.
"""

from dataclasses import dataclass

from relaunch.core.checks import Check, is_ok, problem

# What the ECS agent and Docker call. Images' layers are in S3, and a task that logs by awslogs starts only with `logs`.
ENDPOINTS = ("ecs", "ecs-agent", "ecs-telemetry", "ecr.api", "ecr.dkr", "logs", "s3")


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A route to 0.0.0.0/0: the ID of its target; a blackhole's target is gone."""

    target: str
    is_blackhole: bool = False


@dataclass(frozen=True, slots=True)
class SubnetFacts:
    """A subnet that machines are launched in; `endpoints` are the services of its VPC's endpoints, like `ecr.api`."""

    subnet_id: str
    zone: str = ""
    gives_public_addresses: bool = False
    default_route: DefaultRoute | None = None
    endpoints: frozenset[str] = frozenset()

    @property
    def barrier(self) -> str:
        """Why a machine here never reaches ECS; empty if nothing is known to be in its way."""
        if self.endpoints.issuperset(ENDPOINTS):
            return ""
        route = self.default_route
        if route is None:
            missing = ", ".join(each for each in ENDPOINTS if each not in self.endpoints)
            return f"it has no route to 0.0.0.0/0, and its VPC no endpoints of {missing}"
        if route.is_blackhole:
            return f"its route to 0.0.0.0/0 leads to {route.target}, which is gone"
        if route.target.startswith("igw-") and not self.gives_public_addresses:
            return f"it gives no public addresses, which its way through {route.target} needs"
        return ""


def check_subnet(subnet_id: str, zone: str, facts: SubnetFacts | None) -> Check:
    """Check a subnet of the parameter MachineSubnets; without facts there is no such subnet."""
    name = f"subnet {subnet_id}"
    again = "relaunch deploy MachineSubnets=ZONE=SUBNET,..., with a subnet that has a way to ECS"
    if facts is None:
        return problem(name, "it does not exist, and MachineSubnets names it", again)
    if facts.zone != zone:
        text = f"it is in {facts.zone}, and MachineSubnets names it for {zone}"
        return problem(name, text, f"relaunch deploy MachineSubnets={facts.zone}={subnet_id},...")
    if not facts.barrier:
        return is_ok(name, f"in {zone}, with a way to ECS")
    if facts.default_route is not None and facts.default_route.target.startswith("igw-"):
        again = f"aws ec2 modify-subnet-attribute --subnet-id {subnet_id} --map-public-ip-on-launch"
        if facts.default_route.is_blackhole:
            again = "aws ec2 replace-route --destination-cidr-block 0.0.0.0/0 --gateway-id IGW --route-table-id TABLE"
    elif facts.default_route is None:
        again = f"give its VPC a NAT gateway and {subnet_id} a route to it; or: {again}"
    return problem(name, f"{facts.barrier}: machines there never register, and are ended", again)
