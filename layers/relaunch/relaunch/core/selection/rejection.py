"""Why an instance type or an offering is rejected."""

from datetime import datetime

from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason for a rejection, in words for the user.

    `shortfall` is how much is missing, as a fraction of what is required (0: not measurable). `is_permanent` is false
    if the rejection may end without a change to the job or the stack; `retry_at` is when it ends, None if unknown.
    `is_unready`: machines were launched there and did not become ready.
    """

    reason: str
    shortfall: float = 0.0
    is_permanent: bool = True
    retry_at: datetime | None = None
    is_unready: bool = False
