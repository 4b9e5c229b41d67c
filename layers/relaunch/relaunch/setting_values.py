"""Single settings, read from the texts that a stack or an environment has under their names."""

import math
import re
from collections.abc import Mapping

# As minutes these are twenty centuries, and still a time that can be added to another.
_MOST_DIGITS = 9


class InvalidSettingsError(ValueError):
    """A setting is missing or invalid; the message contains its name."""


def flag(values: Mapping[str, str], name: str) -> bool:
    """Return whether a setting is `true`; raises InvalidSettingsError for other than `true` and `false`."""
    text = required(values, name)
    if text not in ("true", "false"):
        raise InvalidSettingsError(f"setting {name}: {text!r} is neither true nor false")
    return text == "true"


def switch(values: Mapping[str, str], name: str) -> bool:
    """Return whether a setting is `on`, False if there is none; raises InvalidSettingsError for other than on and off.

    A stack of an earlier version has none.
    """
    text = values.get(name, "off")
    if text not in ("on", "off"):
        raise InvalidSettingsError(f"setting {name}: {text!r} is neither on nor off")
    return text == "on"


def whole(values: Mapping[str, str], name: str, least: int = 0) -> int:
    """Return a whole number; raises InvalidSettingsError for another text, or for less than `least`."""
    text = required(values, name)
    if re.fullmatch(rf"[0-9]{{1,{_MOST_DIGITS}}}", text) is None or int(text) < least:
        raise InvalidSettingsError(f"setting {name}: {text!r} is not a whole number of at least {least}")
    return int(text)


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a list with commas, without those that are empty."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def required(values: Mapping[str, str], name: str) -> str:
    """Return a text; raises InvalidSettingsError if there is none."""
    value = values.get(name, "")
    if not value:
        raise InvalidSettingsError(f"setting {name} is missing")
    return value


def price_cap(values: Mapping[str, str], name: str) -> float | None:
    """Return a price, None for `none`; raises InvalidSettingsError for another text."""
    return None if values.get(name) == "none" else number(values, name)


def number(values: Mapping[str, str], name: str) -> float:
    """Return a finite number; raises InvalidSettingsError for another text."""
    try:
        found = float(required(values, name))
    except ValueError as error:
        raise InvalidSettingsError(f"setting {name} is missing or is not a number") from error
    if not math.isfinite(found):
        raise InvalidSettingsError(f"setting {name} is not a number but {found}")
    return found
