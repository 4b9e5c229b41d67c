"""On-demand prices: whether they are the region's own, and whether the stack still reads them."""

from collections.abc import Iterable
from datetime import datetime

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.offerings.snapshot import Origin, PriceOrigin, SnapshotPart

NAME = "on-demand prices"
_RESTS = "costs and budgets rest on them"


def check_prices(
    origins: Iterable[PriceOrigin], region: str, bundled_region: str, function: str, now: datetime
) -> Check:
    """Check the on-demand prices of a stack in a region; `function` reads them, and says why it cannot.

    What came with Relaunch are those of `bundled_region`. They are in use until the first refresh, and for good where a
    policy of the organization denies the Price List.
    """
    to_do = f"aws lambda invoke --function-name {function} /dev/stdout: it reads them, or says why not"
    origin = next((each.origin for each in origins if each.part is SnapshotPart.ON_DEMAND_PRICES), None)
    if origin is None:
        return unknown(NAME, "none are known", to_do)
    if not origin.is_bundled:
        return _check_refreshed(origin, now, to_do)
    if region == bundled_region:
        return is_ok(NAME, f"those of {origin.at:%Y-%m-%d}, which came with Relaunch: the stack has read none yet")
    text = f"the stack has read none of {region} yet, and those of {bundled_region} stand in for them: {_RESTS}"
    return unknown(NAME, text, to_do)


def _check_refreshed(origin: Origin, now: datetime, to_do: str) -> Check:
    read = f"read from {origin.source} at {origin.at:%Y-%m-%d %H:%M} UTC"
    if origin.is_stale(now):
        return problem(NAME, f"{read}, and not since, though they are read once a day: {_RESTS}", to_do)
    return is_ok(NAME, read)
