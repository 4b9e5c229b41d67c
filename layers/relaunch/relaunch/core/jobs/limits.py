"""The limits of the stack."""

from dataclasses import dataclass, field

from relaunch.core.selection.offering_filters import SelectionLimits


@dataclass(frozen=True, slots=True)
class StackLimits:
    """The limits of the stack.

    `provisioning_deadline_seconds` is shorter than that of ECS, which stops a PROVISIONING task only after 10 to 30
    minutes (aws/containers-roadmap#2381).
    """

    max_running_jobs: int = 20
    provisioning_deadline_seconds: int = 480
    selection: SelectionLimits = field(default_factory=SelectionLimits)
