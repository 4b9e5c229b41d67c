"""Names of zones: that of their region, and a letter or more (us-west-2b, us-west-2-lax-1a)."""

import re
from collections.abc import Iterable

_REGION = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]+")


def zone_ends(zones: Iterable[str]) -> tuple[str, ...]:
    """Return the names without that of the region (`b`, `-lax-1a`), each once and sorted."""
    return tuple(sorted({_REGION.sub("", zone, count=1) for zone in zones}))
