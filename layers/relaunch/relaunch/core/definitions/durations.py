"""Durations in the words of a definition file."""

from datetime import timedelta


def write_duration(duration: timedelta) -> str:
    """Format a duration as in a definition: `36h`, `1h30m`."""
    rest = int(duration.total_seconds())
    text = ""
    for unit, seconds in (("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def write_minutes(duration: timedelta) -> str:
    """Format a duration to the nearest minute, as in a definition: `7h`, `30m`, `0m`."""
    minutes = round(duration.total_seconds() / 60)
    return write_duration(timedelta(minutes=minutes)) if minutes else "0m"
