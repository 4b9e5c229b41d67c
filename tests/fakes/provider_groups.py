"""The Auto Scaling group of a capacity provider of ECS, whose machines are protected from scale-in, and its cluster.

What the services refuse is what their users report (github.com/aws/aws-cdk/issues/18179, /14732).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError


@dataclass
class FakeProviderGroup:
    """Implements the calls of clients of ECS, EC2 Auto Scaling and EC2 that are made here, for one provider.

    Its machines take `lives` looks to end once the group is deleted by force, and end by nothing else. The next `busy`
    deletions are refused.
    """

    name: str
    machines: list[str] = field(default_factory=lambda: ["i-0a"])
    lives: int = 2
    busy: int = 0
    providers: list[str] = field(default_factory=lambda: ["mine"])
    is_there: bool = True
    is_ending: bool = False
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.providers.append(self.name)

    def barrier(self, _stack: str, parameters: Mapping[str, str]) -> str:
        """Return why CloudFormation does not delete a stack with these parameters."""
        if parameters.get("ProviderName") == self.name:
            if self.name in self.providers:
                return "The specified capacity provider is in use and cannot be removed"
            if self.is_there and self.machines:
                return "You cannot delete an AutoScalingGroup while there are instances or pending Spot requests"
        if "IdleMinutes" in parameters and self.machines:
            return "resource sg-0a has a dependent object"
        return ""

    def describe_clusters(self, **_request: Any) -> Any:
        return {"clusters": [{"status": "ACTIVE", "capacityProviders": self.providers}]}

    def describe_capacity_providers(self, **request: Any) -> Any:
        return {"capacityProviders": [{"name": each} for each in request["capacityProviders"]]}

    def put_cluster_capacity_providers(self, **request: Any) -> None:
        self.calls.append("PutClusterCapacityProviders")
        self.providers = list(request["capacityProviders"])

    def describe_auto_scaling_groups(self, **request: Any) -> Any:
        assert request == {"AutoScalingGroupNames": [self.name]}
        status = {"Status": "Delete in progress"} if self.is_ending else {}
        return {"AutoScalingGroups": [{"AutoScalingGroupName": self.name, **status}] if self.is_there else []}

    def delete_auto_scaling_group(self, **request: Any) -> None:
        assert request == {"AutoScalingGroupName": self.name, "ForceDelete": True}, "protected machines are kept"
        assert not self.is_ending, "ScalingActivityInProgress"
        assert self.name not in self.providers, "ECS scales it out again"
        self.calls.append("DeleteAutoScalingGroup")
        if self.busy:
            self.busy -= 1
            error = {"Code": "ScalingActivityInProgress", "Message": "later"}
            raise ClientError({"Error": error}, "DeleteAutoScalingGroup")
        self.is_ending = True

    def get_paginator(self, operation: str) -> "FakeProviderGroup":
        assert operation == "describe_instances"
        return self

    def paginate(self, **_request: Any) -> Any:
        if self.is_ending:
            # The group goes before its machines.
            self.is_there = False
            self.lives -= 1
            self.machines = self.machines if self.lives > 0 else []
        return [{"Reservations": [{"Instances": [{"InstanceId": each} for each in self.machines]}]}]
