"""What the modules of this package share."""

from datetime import datetime, timedelta

JsonObject = dict[str, object]


def json_time(at: datetime | None) -> str | None:
    """Return a time in ISO 8601."""
    return at.isoformat() if at else None


def json_seconds(duration: timedelta | None) -> float | None:
    """Return a duration in seconds."""
    return duration.total_seconds() if duration is not None else None
