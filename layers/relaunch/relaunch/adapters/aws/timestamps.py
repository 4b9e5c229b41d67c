"""Moments as AWS writes them."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

# Beyond these a moment is a mistake; at the ends of the calendar it could be neither moved to UTC nor counted from.
_FIRST_YEAR, _LAST_YEAR = 1970, 2199


def _to_utc(moment: datetime) -> datetime:
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"the year {moment.year} is not one between {_FIRST_YEAR} and {_LAST_YEAR}")
    return moment.astimezone(UTC)


# ISO text in events, epoch seconds in DescribeTasks' JSON, the SDK's datetimes with the machine's own zone.
Timestamp = Annotated[datetime, AfterValidator(_to_utc)]
