"""Timestamps in AWS events and responses."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

# Timestamps outside are errors; near the limits of datetime, conversion to UTC and arithmetic would overflow.
_FIRST_YEAR = 1970
_LAST_YEAR = 2199


def _to_utc(timestamp: datetime) -> datetime:
    if not _FIRST_YEAR <= timestamp.year <= _LAST_YEAR:
        raise ValueError(f"the year {timestamp.year} is not one between {_FIRST_YEAR} and {_LAST_YEAR}")
    return timestamp.astimezone(UTC)


Timestamp = Annotated[datetime, AfterValidator(_to_utc)]
"""ISO 8601 text (events), epoch seconds (JSON of DescribeTasks) or a datetime (the SDK), converted to UTC."""
