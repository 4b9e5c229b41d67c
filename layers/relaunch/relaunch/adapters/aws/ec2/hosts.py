"""What EC2 says of the end of an instance that a task ran on.

Sources: "DescribeInstances" and "DescribeSpotInstanceRequests" (Amazon EC2 API Reference), "Get the status of a Spot
Instance request" (EC2 User Guide). No page defines the text of `StateTransitionReason`; those of
the User Guide show it as `User initiated (2026-11-26 05:45:43 GMT)`.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from relaunch.adapters.aws.ec2.instances import read_instances
from relaunch.adapters.aws.errors import aws_errors, error_code
from relaunch.core.launches.launch import HostObservation
from relaunch.core.machines.events import InstanceObservation, InstanceState
from relaunch.ports import TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

_UNKNOWN_ID_CODES = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})
_TOLD_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) GMT\)")
# At the interruption notice: that of an instance which is to be terminated for want of capacity is
# `instance-terminated-no-capacity` at once, while it runs on for two minutes.
_INTERRUPTED = frozenset(
    {
        "marked-for-termination",
        "marked-for-stop",
        *(
            f"instance-{end}-{cause}"
            for end in ("terminated", "stopped")
            for cause in ("by-price", "no-capacity", "capacity-oversubscribed", "by-experiment")
        ),
    }
)


# Of all filters of a call together ("DescribeInstances").
_MAX_VALUES = 199
# Auto Scaling gives it to the instances of a group ("Tag Auto Scaling groups and instances", its User Guide).
_GROUP_TAG = "aws:autoscaling:groupName"


class Ec2Hosts:
    """Implements HostSource; `groups` are the names of capacity providers, and those of the groups made for them."""

    def __init__(self, client: "EC2Client", groups: Sequence[str] = ()) -> None:
        self._client = client
        self._groups = tuple(groups)

    def look(self, instance_id: str, *, is_spot: bool) -> HostObservation:
        with aws_errors(f"looking at {instance_id}"):
            instance = self._describe(instance_id)
            has_ended = instance is not None and not InstanceState(instance["State"]["Name"]).is_alive
            written = _TOLD_AT.search(instance.get("StateTransitionReason", "")) if instance and has_ended else None
            ended_at = datetime.fromisoformat(f"{written[1]}+00:00") if written else None
            warned_at = self._warned_at(instance_id) if is_spot else None
            return HostObservation(has_ended, ended_at, frozenset() if warned_at is None else frozenset({warned_at}))

    def find_address(self, instance_id: str) -> str:
        with aws_errors(f"looking up the address of {instance_id}"):
            instance = self._describe(instance_id)
        address = instance.get("PrivateIpAddress", "") if instance is not None else ""
        if not address:
            raise TransientError(f"EC2 does not say the private address of {instance_id}")
        return address

    def running_in_groups(self) -> Sequence[InstanceObservation]:
        found: list[InstanceObservation] = []
        with aws_errors("listing the instances of capacity providers"):
            for start in range(0, len(self._groups), _MAX_VALUES):
                groups = list(self._groups[start : start + _MAX_VALUES])
                named = {f"tag:{_GROUP_TAG}": groups, "instance-state-name": [InstanceState.RUNNING.value]}
                filters = [{"Name": name, "Values": values} for name, values in named.items()]
                found += (each for page in read_instances(self._client, Filters=filters) for each in page)
        return found

    def _describe(self, instance_id: str) -> "InstanceTypeDef | None":
        try:
            answer = self._client.describe_instances(InstanceIds=[instance_id])
        except ClientError as error:
            if error_code(error) in _UNKNOWN_ID_CODES:
                return None
            raise
        found = [each for reservation in answer["Reservations"] for each in reservation["Instances"]]
        return found[0] if found else None

    def _warned_at(self, instance_id: str) -> datetime | None:
        named = [{"Name": "instance-id", "Values": [instance_id]}]
        answer = self._client.describe_spot_instance_requests(Filters=named)  # type: ignore[arg-type]
        for request in answer["SpotInstanceRequests"]:
            status = request.get("Status", {})
            at = status.get("UpdateTime")
            if status.get("Code") in _INTERRUPTED and at is not None:
                return at.astimezone(UTC)
        return None
