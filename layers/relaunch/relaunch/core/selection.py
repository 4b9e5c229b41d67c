"""Selection: named filters keep or reject offerings with a reason; what is kept is ordered by expected price."""

from dataclasses import dataclass

from relaunch.core.offering import Offering


@dataclass(frozen=True, slots=True)
class Rejection:
    """An offering that was not kept: by which filter, and why in words for the user."""

    offering: Offering
    filter_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What was kept, best first, and everything that was rejected.

    `filter_counts` lists (filter name, kept before, kept after) in the order the filters ran: it tells which filter
    removed the last offering.
    """

    kept: tuple[Offering, ...]
    rejected: tuple[Rejection, ...]
    filter_counts: tuple[tuple[str, int, int], ...]
