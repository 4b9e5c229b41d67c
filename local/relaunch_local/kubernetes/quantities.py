"""Quantities ("Quantity", Kubernetes API Reference): what is allowed, and the form in which they are stored."""

import re
from decimal import Decimal

_FORM = re.compile(r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_POWERS = {"m": Decimal("0.001"), "": Decimal(1)}
_POWERS |= {name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", start=1)}
_POWERS |= {f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)}


def parse_quantity(written: object) -> Decimal | None:
    """Return the value of a quantity, which JSON may have as a number; None if it is none."""
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return None
    found = _FORM.fullmatch(str(written))
    return Decimal(found["number"]) * _POWERS[found["suffix"] or ""] if found else None


def store_quantity(written: object) -> str:
    """Return a quantity as it is stored: the whole number with the greatest suffix, fractions in thousandths."""
    value = parse_quantity(written)
    if value is None or value == 0:
        return str(written) if value is None else "0"
    if value != value.to_integral_value():
        return f"{int(value * 1000)}m"
    names = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki") if str(written).endswith("i") else ("E", "P", "T", "G", "M", "k")
    suffix = next((each for each in names if value % _POWERS[each] == 0), "")
    return f"{int(value / _POWERS[suffix])}{suffix}"
