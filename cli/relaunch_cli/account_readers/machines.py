"""Reads what machines of our own are launched with and in, and those that have not joined the cluster."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from relaunch.core.checks import Check, is_ok
from relaunch.core.machines.settings import STACK_TAG, LaunchTemplate, MachineSettings
from relaunch_cli.account_checks.images import PARAMETER_PREFIX, TemplateFacts, check_launch_template
from relaunch_cli.account_checks.joining import STARTING, InstanceFacts, check_instance, cluster_of
from relaunch_cli.account_checks.network import ENDPOINTS, DefaultRoute, SubnetFacts, check_subnet
from relaunch_cli.account_readers.calls import AccountCalls, UnreadError, known
from relaunch_cli.deployment.shared_images import is_shared

_NO_TEMPLATE = (
    "InvalidLaunchTemplateId.NotFound",
    "InvalidLaunchTemplateId.VersionNotFound",
    "InvalidLaunchTemplateName.NotFoundException",
)
_NO_IMAGE = ("InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidAMIID.Malformed")
_NO_SUBNET = ("InvalidSubnetID.NotFound", "InvalidSubnetID.Malformed")
_EVERYWHERE = "0.0.0.0/0"
_HTTPS = 443
_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "NetworkInterfaceId",
    "InstanceId",
    "VpcPeeringConnectionId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "CoreNetworkArn",
)


def check_images(settings: MachineSettings, calls: AccountCalls) -> Iterator[Check]:
    """Check the launch templates of machines, and their images."""
    for kind, template in settings.launch_templates.items():
        yield known(f"launch template {kind}", partial(_check_image, kind, template, calls))


def _check_image(kind: str, template: LaunchTemplate, calls: AccountCalls) -> Check:
    shown = f"{template.template_id}:{template.version}"
    data = read_template(template.template_id, template.version, calls)
    if data is None:
        return check_launch_template(kind, shown, TemplateFacts(exists=False))
    named = str(data.get("ImageId", ""))
    image_id, image = read_image(named, calls)
    facts = TemplateFacts(image=named, image_id=image_id, image_state=str(image.get("State", "")) if image else "")
    if image and named == image_id:
        account_id = str(calls.call("sts", "get_caller_identity")["Account"])
        facts = replace(facts, is_shared=is_shared(image, account_id))
    return check_launch_template(kind, shown, facts)


def read_image(named: str, calls: AccountCalls) -> tuple[str, Mapping[str, Any] | None]:
    """Return the ID of the image that a launch template names, and the image; empty, None if there is none.

    Raises:
        UnreadError: it cannot be read.
    """
    image_id = named
    if named.startswith(PARAMETER_PREFIX):
        name = named.removeprefix(PARAMETER_PREFIX)
        found = calls.call("ssm", "get_parameter", "ParameterNotFound", Name=name)
        image_id = str(found["Parameter"]["Value"]) if found else ""
    images = calls.call("ec2", "describe_images", *_NO_IMAGE, ImageIds=[image_id]) if image_id else None
    return image_id, next(iter((images or {}).get("Images", ())), None)


def read_template(template_id: str, version: str, calls: AccountCalls) -> Mapping[str, Any] | None:
    """Return the data of a version of a launch template; None if there is none.

    Raises:
        UnreadError: it cannot be read.
    """
    answer = calls.call(
        "ec2", "describe_launch_template_versions", *_NO_TEMPLATE, LaunchTemplateId=template_id, Versions=[version]
    )
    versions = answer["LaunchTemplateVersions"] if answer else []
    return versions[0]["LaunchTemplateData"] if versions else None


def check_subnets(settings: MachineSettings, calls: AccountCalls) -> Iterator[Check]:
    """Check the subnets of the parameter MachineSubnets."""
    for zone, subnet in settings.subnets.items():
        yield known(
            f"subnet {subnet}",
            partial(_check_subnet, subnet, zone, calls),
        )


def _check_subnet(subnet: str, zone: str, calls: AccountCalls) -> Check:
    return check_subnet(subnet, zone, read_subnet(subnet, calls))


def read_subnet(subnet_id: str, calls: AccountCalls) -> SubnetFacts | None:
    """Read a subnet and its way out; None if there is no such subnet.

    Raises:
        UnreadError: it cannot be read.
    """
    answer = calls.call("ec2", "describe_subnets", *_NO_SUBNET, SubnetIds=[subnet_id])
    if not answer or not answer["Subnets"]:
        return None
    subnet = answer["Subnets"][0]
    table = _route_table(subnet_id, subnet["VpcId"], calls)
    facts = SubnetFacts(
        subnet_id,
        zone=subnet["AvailabilityZone"],
        gives_public_addresses=bool(subnet.get("MapPublicIpOnLaunch")),
        default_route=_default_route(table),
    )
    return replace(facts, endpoints=_endpoints(subnet["VpcId"], table, calls)) if facts.barrier else facts


def _route_table(subnet_id: str, vpc_id: str, calls: AccountCalls) -> Mapping[str, Any]:
    """Return the subnet's own table, or the VPC's main one if it has none; empty without either."""
    tables = calls.list("ec2", "describe_route_tables", "RouteTables", Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])
    linked = [(link, table) for table in tables for link in table.get("Associations", ())]
    own = [table for link, table in linked if link.get("SubnetId") == subnet_id]
    main = [table for link, table in linked if link.get("Main")]
    return next(iter(own or main), {})


def _default_route(table: Mapping[str, Any]) -> DefaultRoute | None:
    for route in table.get("Routes", ()):
        if route.get("DestinationCidrBlock") == _EVERYWHERE:
            target = next((str(route[key]) for key in _TARGETS if route.get(key)), "nothing")
            return DefaultRoute(target, is_blackhole=route.get("State") == "blackhole")
    return None


def _endpoints(vpc_id: str, table: Mapping[str, Any], calls: AccountCalls) -> frozenset[str]:
    """Return the services whose endpoints a subnet with this route table uses without being set up for it.

    A gateway endpoint is for its route tables; the service's own name leads to an interface endpoint only with private
    DNS, from every subnet of the VPC, and its security groups must let HTTPS in ("Gateway endpoints" and "Access an AWS
    service using an interface VPC endpoint", AWS PrivateLink). From where they do is not compared.
    """
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "vpc-endpoint-state", "Values": ["available"]}]
    found = calls.list("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=filters)
    open_groups = _open_groups({group for each in found for group in _groups_of(each)}, calls)
    names = [str(each["ServiceName"]) for each in found if _is_used(each, table, open_groups)]
    return frozenset(service for service in ENDPOINTS if any(name.endswith(f".{service}") for name in names))


def _is_used(endpoint: Mapping[str, Any], table: Mapping[str, Any], open_groups: frozenset[str] | None) -> bool:
    if endpoint.get("VpcEndpointType") == "Gateway":
        return table.get("RouteTableId") in endpoint.get("RouteTableIds", ())
    groups = _groups_of(endpoint)
    is_open = open_groups is None or not groups or bool(groups & open_groups)
    return is_open and bool(endpoint.get("PrivateDnsEnabled"))


def _groups_of(endpoint: Mapping[str, Any]) -> set[str]:
    return {str(each["GroupId"]) for each in endpoint.get("Groups", ())}


def _open_groups(group_ids: set[str], calls: AccountCalls) -> frozenset[str] | None:
    """Return the security groups that let HTTPS in from somewhere; None if they cannot be read."""
    if not group_ids:
        return frozenset()
    wanted = [{"Name": "group-id", "Values": sorted(group_ids)}]
    found = _or_none(lambda: calls.list("ec2", "describe_security_groups", "SecurityGroups", Filters=wanted))
    if found is None:
        return None
    return frozenset(each["GroupId"] for each in found if any(map(_lets_https_in, each.get("IpPermissions", ()))))


def _lets_https_in(rule: Mapping[str, Any]) -> bool:
    # All protocols have no ports ("IpPermission", EC2 API Reference).
    if rule.get("IpProtocol") == "-1":
        return True
    return rule.get("IpProtocol") == "tcp" and rule.get("FromPort", 0) <= _HTTPS <= rule.get("ToPort", 0)


def check_joined(
    settings: MachineSettings, cluster: str, groups: Iterable[str], now: datetime, calls: AccountCalls
) -> Iterator[Check]:
    """Check the instances that run for the stack, and in the Auto Scaling groups of its capacity providers.

    Raises:
        UnreadError: the instances, or those of the cluster, cannot be read.
    """
    running = _running(f"tag:{STACK_TAG}", [settings.stack], calls) if settings.stack else {}
    if names := list(groups):
        launched = _running("tag:aws:autoscaling:groupName", names, calls)
        pooled = _in_warm_pools(names, launched, calls) if launched else set()
        running |= {key: instance for key, instance in launched.items() if key not in pooled}
    joined = _joined(cluster, calls) if running else frozenset()
    waiting = {key: instance for key, instance in running.items() if key not in joined}
    if not waiting:
        yield is_ok("instances", f"{len(running)} run, and all are in the cluster")
    for key, instance in waiting.items():
        yield known(f"instance {key}", partial(_check_instance, instance, cluster, now, calls))


def _in_warm_pools(names: list[str], launched: Iterable[str], calls: AccountCalls) -> set[str]:
    """Return the instances that wait in warm pools, and join when they leave them; none if that cannot be read.

    A group does not have those of its pool among its own ("DescribeWarmPool", EC2 Auto Scaling API Reference).
    """
    operation = "describe_auto_scaling_groups"
    found = _or_none(lambda: calls.list("autoscaling", operation, "AutoScalingGroups", AutoScalingGroupNames=names))
    if not any(each.get("WarmPoolConfiguration") for each in found or ()):
        return set()
    members = [instance for each in found or () for instance in each.get("Instances", ())]
    in_service = {each["InstanceId"] for each in members if not str(each.get("LifecycleState")).startswith("Warmed:")}
    return set(launched) - in_service


def _running(name: str, values: list[str], calls: AccountCalls) -> dict[str, Mapping[str, Any]]:
    filters = [{"Name": name, "Values": values}, {"Name": "instance-state-name", "Values": ["running"]}]
    reservations = calls.list("ec2", "describe_instances", "Reservations", Filters=filters)
    return {each["InstanceId"]: each for reservation in reservations for each in reservation["Instances"]}


def _joined(cluster: str, calls: AccountCalls) -> frozenset[str]:
    arns = calls.list("ecs", "list_container_instances", "containerInstanceArns", cluster=cluster)
    found: set[str] = set()
    # DescribeContainerInstances takes 100 (Amazon ECS API Reference).
    for start in range(0, len(arns), 100):
        answer = calls.call(
            "ecs", "describe_container_instances", cluster=cluster, containerInstances=arns[start : start + 100]
        )
        found |= {each["ec2InstanceId"] for each in answer["containerInstances"] if each.get("ec2InstanceId")}
    return frozenset(found)


def _check_instance(instance: Mapping[str, Any], cluster: str, now: datetime, calls: AccountCalls) -> Check:
    instance_id = instance["InstanceId"]
    age = now - instance["LaunchTime"]
    if age < STARTING:
        return check_instance(InstanceFacts(instance_id, age), None, cluster)
    subnet = _or_none(lambda: read_subnet(instance.get("SubnetId", ""), calls))
    facts = InstanceFacts(
        instance_id,
        age,
        role_problem=_or_none(lambda: _role_problem(instance, calls)) or "",
        barrier=_barrier(subnet, instance),
        cluster=_or_none(lambda: _cluster_in_user_data(instance_id, calls)),
    )
    return check_instance(facts, _or_none(lambda: _console(instance_id, calls)), cluster)


def _barrier(subnet: SubnetFacts | None, instance: Mapping[str, Any]) -> str:
    """Return what is between an instance and ECS; whether it has a public address is known of itself."""
    if subnet is None:
        return ""
    return replace(subnet, gives_public_addresses=bool(instance.get("PublicIpAddress"))).barrier


def _or_none(read: Any) -> Any:
    """Return what is read; None if it cannot be, for the other facts may be enough."""
    try:
        return read()
    except UnreadError:
        return None


def _role_problem(instance: Mapping[str, Any], calls: AccountCalls) -> str:
    profile = instance.get("IamInstanceProfile")
    if not profile:
        return "it has no instance profile"
    name = str(profile["Arn"]).rpartition("/")[2]
    found = calls.call("iam", "get_instance_profile", "NoSuchEntity", InstanceProfileName=name)
    if found is None:
        return f"its instance profile {name} does not exist any more"
    return "" if found["InstanceProfile"].get("Roles") else f"its instance profile {name} has no role"


def _cluster_in_user_data(instance_id: str, calls: AccountCalls) -> str:
    answer = calls.call("ec2", "describe_instance_attribute", InstanceId=instance_id, Attribute="userData")
    return cluster_of(_decode(answer.get("UserData", {}).get("Value", "")))


def _console(instance_id: str, calls: AccountCalls) -> str:
    # botocore decodes the output; without Latest, which not all types have, it is that of the boot.
    return str(calls.call("ec2", "get_console_output", InstanceId=instance_id).get("Output", ""))


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return text
