"""Amounts of money as people write them."""

from __future__ import annotations

_LEAST_DECIMALS = 2
_MOST_DECIMALS = 4


def write_usd(value: object) -> str:
    """Return an amount in USD with two decimals, or up to four where these are not zero; empty if there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    whole, _, decimals = f"{value:.{_MOST_DECIMALS}f}".partition(".")
    return f"{whole}.{decimals[:_LEAST_DECIMALS]}{decimals[_LEAST_DECIMALS:].rstrip('0')}"
