"""What the simulator asks of the rest of an account, whose other services somebody else simulates."""

from collections.abc import Mapping
from typing import Any, Protocol


class Upstream(Protocol):
    """The emulator of the other services, in which CloudFormation makes what the simulator is to know."""

    def refresh(self) -> None:
        """Add the clusters, subnets and launch templates that were made since the last time to the simulator.

        Called without the simulator's lock.
        """

    def call(self, target: str, parameters: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the answer to an action of another service, by its X-Amz-Target."""
        ...

    def ec2(self, form: bytes) -> tuple[int, bytes]:
        """Return the answer to an action of EC2 that the simulator does not serve: its HTTP status and its XML."""
        ...


REFRESHING = frozenset({"DescribeClusters", "CreateFleet", "RunInstances"})
"""The actions before which the simulator asks what there is: those that use what a deployment has made."""
