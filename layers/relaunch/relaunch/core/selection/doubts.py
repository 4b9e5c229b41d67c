"""The order of offerings while it is doubtful whether some of them can be had."""

from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.spot_runs import Doubts
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.selection import Selection

_COMPARABLE = 1.25
"""An offering is preferred to a doubted one if it costs at most so many times as much."""


def prefer_undoubted(selection: Selection, doubts: Doubts) -> Selection:
    """Return the selection with the least doubted of the offerings first that cost about as much as the best one.

    Costs are expected costs, without an estimated duration prices. Nothing is rejected.
    """
    if not selection.kept or selection.kept[0].key not in doubts:
        return selection
    costs = cost_of(selection.work)

    def cost(offering: Offering) -> float:
        # Offerings without a price are rejected.
        return costs(offering) or offering.expected_usd_per_hour or 0.0

    limit = _COMPARABLE * cost(selection.kept[0])
    comparable = [each for each in selection.kept if cost(each) <= limit]
    first = min(comparable, key=lambda each: doubts.get(each.key, 0))
    kept = (first, *(each for each in selection.kept if each is not first))
    return Selection(kept, selection.rejected, selection.filter_counts, selection.work)
