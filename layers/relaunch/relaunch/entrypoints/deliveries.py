"""The schedule of every half hour: deliveries of GitHub that the webhook could not answer."""

from collections.abc import Callable

from relaunch.ports import DeliveryDependencies
from relaunch.usecases.sweep_deliveries import sweep_deliveries

SWEEP = {"sweep": "deliveries"}
"""What the schedule sends."""

# Enough for the last call, which takes ten seconds at most, and to save what was reached.
_SPARE_MILLISECONDS = 30_000


def sweep(deps: DeliveryDependencies, remaining_milliseconds: Callable[[], int]) -> dict[str, object]:
    """Ask for failed deliveries again while there is time; return what became of it."""
    report = sweep_deliveries(deps, lambda: remaining_milliseconds() > _SPARE_MILLISECONDS)
    return {
        "redelivered": report.redelivered,
        "problems": list(report.problems),
        "unswept": list(report.unswept),
        "interruption": report.interruption,
    }
