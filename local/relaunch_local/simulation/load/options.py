"""The options of a load."""

from dataclasses import dataclass

PROVISIONING_QUOTA = 500


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of a load; with `is_warm` there are instances for all jobs from the start.

    `is_own`: the instances are machines of our own, of which at most `max_machines` live at once, 0 for any number;
    else they are those of a capacity provider. `budget_usd` is what the stack and each
    definition may cost a month, 0 for no budgets.
    """

    events: int = 10_000
    instance_type: str = "g5.48xlarge"
    is_warm: bool = False
    provisioning_quota: int = PROVISIONING_QUOTA
    seed: int = 0
    is_own: bool = False
    max_machines: int = 0
    budget_usd: float = 0.0
