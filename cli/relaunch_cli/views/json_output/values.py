"""What the modules of this package share."""

from datetime import timedelta

from relaunch.core.revisions.revision import StopTimeout
from relaunch_cli.views.json_output.json_time import JsonObject


def json_seconds(duration: timedelta | None) -> float | None:
    """Return a duration in seconds."""
    return duration.total_seconds() if duration is not None else None


def stop_timeout_json(stop_timeout: StopTimeout | None) -> JsonObject | None:
    """Return the time from SIGTERM to SIGKILL, and who sets it."""
    if stop_timeout is None:
        return None
    return {"seconds": stop_timeout.seconds, "set_by": "task definition" if stop_timeout.is_own else "relaunch"}
