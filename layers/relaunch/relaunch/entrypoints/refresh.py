"""The schedules of refresh_offerings: offerings every hour, failed deliveries of GitHub every half hour.

Both ask services that may be slow, and nobody waits for them.
"""

from collections.abc import Callable, Mapping

from relaunch.ports import RefreshDependencies
from relaunch.ports.deliveries import DeliveryDependencies
from relaunch.usecases.refresh_offerings import refresh_offerings
from relaunch.usecases.sweep_deliveries import sweep_deliveries

SWEEP = {"sweep": "deliveries"}
"""What the schedule of failed deliveries sends."""

# Enough for the last call, which takes ten seconds at most, and to save what was reached.
_SPARE_MILLISECONDS = 30_000


def answer_schedule(
    event: object,
    refresh_dependencies: Callable[[], RefreshDependencies],
    delivery_dependencies: Callable[[], DeliveryDependencies],
    remaining_milliseconds: Callable[[], int],
) -> Mapping[str, object]:
    """Sweep failed deliveries while there is time, or refresh what is due; return what became of it.

    Raises:
        TransientError: a part could not be refreshed; Lambda calls again.
    """
    if event != SWEEP:
        return refresh_offerings(refresh_dependencies())
    report = sweep_deliveries(delivery_dependencies(), lambda: remaining_milliseconds() > _SPARE_MILLISECONDS)
    return {
        "redelivered": report.redelivered,
        "problems": list(report.problems),
        "unswept": list(report.unswept),
        "interruption": report.interruption,
    }
