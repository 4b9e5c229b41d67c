"""Times in JSON."""

from datetime import datetime

JsonObject = dict[str, object]


def json_time(at: datetime | None) -> str | None:
    """Return a time in ISO 8601."""
    return at.isoformat() if at else None
