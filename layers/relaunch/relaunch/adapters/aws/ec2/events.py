"""What EC2 says of machines: spot warnings, rebalance recommendations, state changes.

Speaks "EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation" and "EC2 Instance State-change
Notification" (Amazon EC2 User Guide; samples in events/aws.ec2.*.json). Only `detail` says which instance it is: the
form of the ARN in `resources` has changed over time. A warning comes two minutes ahead at best, and may not come.
"""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaunch.adapters.aws.timestamps import Timestamp
from relaunch.adapters.validation import describe_errors
from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind
from relaunch.ports import PermanentError

_KINDS = {
    "EC2 Spot Instance Interruption Warning": InstanceEventKind.INTERRUPTION_WARNING,
    "EC2 Instance Rebalance Recommendation": InstanceEventKind.REBALANCE_RECOMMENDATION,
    "EC2 Instance State-change Notification": InstanceEventKind.STATE_CHANGE,
}


class _Detail(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    instance_id: str = Field(alias="instance-id", pattern=r"^i-[0-9a-f]+$")
    instance_action: str = Field("", alias="instance-action")
    state: str = ""


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    detail: _Detail
    time: Timestamp | None = None


def parse_ec2_event(event: Mapping[str, object]) -> InstanceEvent | None:
    """Read an EventBridge event from `aws.ec2`; None for a detail type that concerns nobody here.

    `state` is the new state of a state change (`shutting-down`, `terminated`…), and what a warning announces
    (`terminate`, `stop`, `hibernate`).

    Raises:
        PermanentError: The event is of a known type and names no instance.
    """
    kind = _KINDS.get(str(event.get("detail-type")))
    if kind is None:
        return None
    try:
        seen = _Event.model_validate(event)
    except ValidationError as error:
        raise PermanentError(f"reading an event from EC2: {describe_errors(error)}") from error
    return InstanceEvent(kind, seen.detail.instance_id, seen.detail.state or seen.detail.instance_action, seen.time)
