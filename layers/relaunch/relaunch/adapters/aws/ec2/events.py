"""EC2 events: spot interruption warnings, rebalance recommendations, state changes.

The detail types are "EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation" and "EC2 Instance
State-change Notification" (Amazon EC2 User Guide; samples in events/aws.ec2.*.json). The instance ID is read from
`detail`, because the format of the ARN in `resources` has changed over time. A warning comes at most two minutes before
the interruption, and may not come at all.
"""

from collections.abc import Mapping

from pydantic import BaseModel, Field

from relaunch.adapters.aws.timestamps import Timestamp
from relaunch.adapters.validation import permanent_if_invalid
from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind

_KINDS = {
    "EC2 Spot Instance Interruption Warning": InstanceEventKind.INTERRUPTION_WARNING,
    "EC2 Instance Rebalance Recommendation": InstanceEventKind.REBALANCE_RECOMMENDATION,
    "EC2 Instance State-change Notification": InstanceEventKind.STATE_CHANGE,
}


class _Detail(BaseModel, extra="ignore", frozen=True):
    instance_id: str = Field(alias="instance-id", pattern=r"^i-[0-9a-f]+$")
    instance_action: str = Field("", alias="instance-action")
    state: str = ""


class _Event(BaseModel, extra="ignore", frozen=True):
    detail: _Detail
    time: Timestamp | None = None


def parse_ec2_event(event: Mapping[str, object]) -> InstanceEvent | None:
    """Parse an EventBridge event from `aws.ec2`; return None for other detail types.

    `state` is the new state of a state change (`shutting-down`, `terminated`…) or the action announced by a warning
    (`terminate`, `stop`, `hibernate`).

    Raises:
        PermanentError: the event has no valid instance ID.
    """
    kind = _KINDS.get(str(event.get("detail-type")))
    if kind is None:
        return None
    with permanent_if_invalid("reading an event from EC2"):
        parsed = _Event.model_validate(event)
    return InstanceEvent(
        kind, parsed.detail.instance_id, parsed.detail.state or parsed.detail.instance_action, parsed.time
    )
