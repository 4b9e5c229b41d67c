"""DescribeInstances, DescribeSpotInstanceRequests, TerminateInstances and status checks (Amazon EC2 API Reference)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaunch_local.ecs.engine.addresses import private_dns_name
from relaunch_local.ecs.engine.ec2_listing import filters_of, matches, page_of
from relaunch_local.ecs.engine.ec2_permissions import Ec2Permissions
from relaunch_local.ecs.engine.instances import VPC_ID, Instances
from relaunch_local.ecs.engine.model import Instance, InstanceState, JsonObject, StateReason
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import Purchase
from relaunch_local.ecs.errors import EcsError

MAX_TERMINATED = 1_000
"""The instances of a TerminateInstances call."""

_STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{1,17}")
# EC2 wants 8 or 17 digits; tests may name an instance that never was in short.
_REASONS = {
    StateReason.USER_INITIATED: "User initiated shutdown",
    StateReason.INSTANCE_INITIATED: "Instance initiated shutdown",
    StateReason.SPOT_TERMINATION: "Spot instance termination",
    StateReason.LAUNCH_ERROR: "Client error on launch",
    StateReason.SCHEDULED_STOP: "Stopped due to scheduled retirement",
}
_PAGE_SIZES = range(5, 1_001)


@dataclass(slots=True)
class Ec2Instances:
    """The actions on instances of a region."""

    region: Region
    instances: Instances
    permissions: Ec2Permissions | None = None

    def describe(self, request: JsonObject) -> JsonObject:
        """DescribeInstances, by ID or by filters; an instance is unknown at first, and an hour after its end.

        Raises:
            EcsError: InvalidInstanceID.NotFound, InvalidInstanceID.Malformed, InvalidParameterCombination,
                InvalidParameterValue.
        """
        ids = request.get("InstanceIds")
        _check_page_size(request, by_id=bool(ids))
        found = self._named(ids) if ids else self.instances.all_known()
        filters = filters_of(request)
        rows = [
            instance
            for instance in found
            if all(matches(values, _filtered(instance, name)) for name, values in filters.items())
        ]
        page = page_of("Reservations", rows, request)
        return {**page, "Reservations": self._reservations(page["Reservations"])}

    def _reservations(self, instances: Sequence[Instance]) -> list[JsonObject]:
        """Return the instances by the launch that they come from: one launch may launch many."""
        by_launch: dict[str, list[Instance]] = {}
        for instance in instances:
            by_launch.setdefault(instance.launched_with or instance.instance_id, []).append(instance)
        return [self.reservation_of(launched) for launched in by_launch.values()]

    def reservation_of(self, launched: Sequence[Instance]) -> JsonObject:
        """Return the instances of one launch as DescribeInstances and RunInstances return them."""
        first = launched[0].launched_with or launched[0].instance_id
        return {
            "ReservationId": f"r-{first[2:]}",
            "OwnerId": self.region.arns.account,
            "Instances": [self._description(instance) for instance in launched],
        }

    def describe_status(self, request: JsonObject) -> JsonObject:
        """DescribeInstanceStatus by ID: only instances that are running, by default.

        Raises:
            EcsError: InvalidInstanceID.NotFound, InvalidInstanceID.Malformed, InvalidParameterCombination,
                InvalidParameterValue.
        """
        ids = request.get("InstanceIds")
        _check_page_size(request, by_id=bool(ids))
        found = self._named(ids) if ids else self.instances.all_known()
        if not request.get("IncludeAllInstances"):
            found = [instance for instance in found if instance.state is InstanceState.RUNNING]
        return page_of("InstanceStatuses", [_status(instance) for instance in found], request)

    def describe_spot_requests(self, request: JsonObject) -> JsonObject:
        """DescribeSpotInstanceRequests by filters; a request of which nothing is known any more is left out.

        The status is that of the interruption at the notice, while the instance runs on ("Get the status of a Spot
        Instance request", EC2 User Guide).
        """
        filters = filters_of(request)
        requests = [
            _spot_request(instance)
            for instance in self.instances.all_known()
            if instance.purchase is Purchase.SPOT
            and all(matches(values, _filtered(instance, name)) for name, values in filters.items())
        ]
        return page_of("SpotInstanceRequests", requests, request)

    def terminate(self, request: JsonObject, access_key: str = "") -> JsonObject:
        """TerminateInstances: all of them, or none.

        Raises:
            EcsError: InvalidInstanceID.NotFound, InvalidInstanceID.Malformed, InvalidParameterValue;
                UnauthorizedOperation, also for an instance that was terminated more than an hour ago.
        """
        ids = list(dict.fromkeys(request.get("InstanceIds", ())))
        if not ids:
            raise EcsError("MissingParameter", "The request must contain the parameter InstanceId")
        if len(ids) > MAX_TERMINATED:
            raise EcsError("InvalidParameterValue", f"A request has at most {MAX_TERMINATED} instance IDs.")
        _check_format(ids)
        self._check_permissions(ids, access_key)
        found = self._named(ids)
        return {"TerminatingInstances": [self._terminate(instance) for instance in found]}

    def _check_permissions(self, ids: Sequence[str], access_key: str) -> None:
        if self.permissions is not None:
            known = {each: self.instances.known(each) for each in ids}
            tags_of = {name: instance.tags if instance else {} for name, instance in known.items()}
            self.permissions.check_terminate(access_key, tags_of)
        elif any(map(self.instances.is_aged_out, ids)):
            # What a caller is told whose policy asks for a tag of the instance.
            raise EcsError("UnauthorizedOperation", "You are not authorized to perform this operation.")

    def _terminate(self, instance: Instance) -> JsonObject:
        before = _state(instance)
        self.instances.terminate(instance)
        return {"InstanceId": instance.instance_id, "PreviousState": before, "CurrentState": _state(instance)}

    def _named(self, ids: Sequence[str]) -> list[Instance]:
        _check_format(ids)
        found = {each: self.instances.known(each) for each in ids}
        missing = [name for name, instance in found.items() if instance is None]
        if missing:
            subject = f"The instance ID{'s' if len(missing) > 1 else ''} '{', '.join(missing)}'"
            raise EcsError("InvalidInstanceID.NotFound", f"{subject} do{'' if len(missing) > 1 else 'es'} not exist")
        return [instance for instance in found.values() if instance is not None]

    def _description(self, instance: Instance) -> JsonObject:
        address = instance.private_address
        is_known = instance.addressed_at is None or instance.addressed_at <= self.region.clock.now()
        if not address or not is_known:
            return _description(instance)
        name = private_dns_name(address, self.region.arns.region)
        return {**_description(instance), "PrivateIpAddress": address, "PrivateDnsName": name}


def _check_format(ids: Sequence[str]) -> None:
    for name in ids:
        if not _INSTANCE_ID.fullmatch(name):
            raise EcsError("InvalidInstanceID.Malformed", f'Invalid id: "{name}"')


def _check_page_size(request: JsonObject, *, by_id: bool) -> None:
    size = request.get("MaxResults")
    if size is None:
        return
    if by_id:
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise EcsError("InvalidParameterCombination", message)
    if int(size) not in _PAGE_SIZES:
        message = f"Value ( {size} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000."
        raise EcsError("InvalidParameterValue", message)


def _state(instance: Instance) -> JsonObject:
    name = instance.state.value
    return {"Code": _STATE_CODES[name], "Name": name}


def _status(instance: Instance) -> JsonObject:
    is_running = instance.state is InstanceState.RUNNING
    return {
        "InstanceId": instance.instance_id,
        "AvailabilityZone": instance.zone,
        "InstanceState": _state(instance),
        "SystemStatus": {"Status": "ok" if is_running else "not-applicable"},
        "InstanceStatus": {"Status": _reachability(instance)},
    }


def _reachability(instance: Instance) -> str:
    if instance.state is not InstanceState.RUNNING:
        return "not-applicable"
    return "impaired" if instance.is_impaired else "ok"


def _spot_request(instance: Instance) -> JsonObject:
    code = "fulfilled"
    at = instance.launched_at
    if instance.warned_at is not None:
        code = "instance-terminated-no-capacity"
        at = instance.warned_at
    elif instance.ended_at is not None:
        is_interruption = instance.state_reason is StateReason.SPOT_TERMINATION
        code = "instance-terminated-no-capacity" if is_interruption else "instance-terminated-by-user"
        at = instance.ended_at
    return {
        "SpotInstanceRequestId": f"sir-{instance.instance_id[2:10]}",
        "InstanceId": instance.instance_id,
        "State": "active" if code == "fulfilled" else "closed",
        "Status": {"Code": code, "UpdateTime": at},
    }


def _description(instance: Instance) -> JsonObject:
    description: JsonObject = {
        "InstanceId": instance.instance_id,
        "ImageId": instance.image_id,
        "InstanceType": instance.instance_type,
        "State": _state(instance),
        "Placement": {"AvailabilityZone": instance.zone, "Tenancy": "default"},
        "LaunchTime": instance.launched_at,
        "Architecture": instance.shape.architecture,
        "VpcId": VPC_ID,
        "SubnetId": instance.subnet_id,
        "Tags": [{"Key": key, "Value": value} for key, value in instance.tags.items()],
    }
    if instance.purchase is Purchase.SPOT:
        description["InstanceLifecycle"] = "spot"
        description["SpotInstanceRequestId"] = f"sir-{instance.instance_id[2:10]}"
    if instance.reservation_id:
        description["CapacityReservationId"] = instance.reservation_id
    if instance.ended_at is not None:
        who = "Service" if instance.state_reason is StateReason.SPOT_TERMINATION else "User"
        description["StateTransitionReason"] = f"{who} initiated ({instance.ended_at:%Y-%m-%d %H:%M:%S} GMT)"
    if instance.state_reason is not None:
        reason = instance.state_reason
        description["StateReason"] = {"Code": reason.value, "Message": f"{reason}: {_REASONS[reason]}"}
    if instance.fleet is not None:
        description["ClientToken"] = instance.fleet.client_token
        if instance.fleet.instance_profile_arn:
            description["IamInstanceProfile"] = {"Arn": instance.fleet.instance_profile_arn}
    return description


_FILTERED: dict[str, Callable[[Instance], str]] = {
    "instance-state-name": lambda instance: instance.state.value,
    "instance-type": lambda instance: instance.instance_type,
    "availability-zone": lambda instance: instance.zone,
    "instance-id": lambda instance: instance.instance_id,
    "instance-lifecycle": lambda instance: "spot" if instance.purchase is Purchase.SPOT else "",
    "subnet-id": lambda instance: instance.subnet_id,
    "private-ip-address": lambda instance: instance.private_address,
    "client-token": lambda instance: instance.fleet.client_token if instance.fleet else "",
}


def _filtered(instance: Instance, name: str) -> list[str]:
    """Return the values of an instance that a filter looks at."""
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        return [instance.tags[key]] if key in instance.tags else []
    if name == "tag-key":
        return list(instance.tags)
    if name not in _FILTERED:
        raise EcsError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return [_FILTERED[name](instance)]
