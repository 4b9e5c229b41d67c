"""The end of the Auto Scaling group of a capacity provider, with its machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

# The group is being changed, as by its last scaling ("DeleteAutoScalingGroup", Amazon EC2 Auto Scaling API Reference).
_LATER = {"ResourceContention", "ResourceInUse", "ScalingActivityInProgress"}


@dataclass(frozen=True)
class ProviderGroup:
    """The group of a provider, which has its name."""

    name: str
    autoscaling: Any
    ec2: Any

    def end(self) -> Sequence[str]:
        """Ask for the group's end, unless that goes on already; return what is left of it.

        To be called until nothing is left. A forced end reaches machines that are protected from scale-in too. It also
        reaches those that a lifecycle hook of ECS keeps for draining, which nobody completes once the cluster has given
        the provider up.

        Raises:
            ClientError, BotoCoreError: a call failed.
        """
        found = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self.name])["AutoScalingGroups"]
        # A group has a status only while it is being deleted.
        if any("Status" not in each for each in found):
            try:
                self.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=self.name, ForceDelete=True)
            except ClientError as error:
                if error.response["Error"]["Code"].removesuffix("Fault") not in _LATER:
                    raise
        groups = [f"group {each['AutoScalingGroupName']}" for each in found]
        # A forced end does not wait for the machines, which use the security group of the stack of machines.
        return groups + [f"machine {each}" for each in self._machines()]

    def _machines(self) -> Sequence[str]:
        filters = [
            {"Name": "tag:aws:autoscaling:groupName", "Values": [self.name]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down", "stopping", "stopped"]},
        ]
        pages = self.ec2.get_paginator("describe_instances").paginate(Filters=filters)
        reservations = (reservation for page in pages for reservation in page["Reservations"])
        return [str(each["InstanceId"]) for reservation in reservations for each in reservation["Instances"]]
