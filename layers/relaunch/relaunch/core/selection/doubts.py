"""The order of offerings while it is doubtful whether some of them can be had."""

import math

from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.spot_runs import Doubts
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.selection import Selection

_COMPARABLE = 1.25
"""An offering is preferred to a doubted one if it costs at most so many times as much."""


def prefer_undoubted(selection: Selection, doubts: Doubts) -> Selection:
    """Return the selection with the least doubted of the offerings first that cost about as much as the best one.

    Costs are expected costs, without an estimated duration prices. An offering of unknown price is comparable to none.
    Nothing is rejected.
    """
    if not selection.kept or selection.kept[0].key not in doubts:
        return selection
    costs = cost_of(selection.work)

    def cost(offering: Offering) -> float:
        usd = offering.expected_usd_per_hour if selection.work is None else costs(offering)
        return math.inf if usd is None else usd

    limit = _COMPARABLE * cost(selection.kept[0])
    # The best one has no known price, or the job is expected never to finish on it: nothing compares with that.
    if math.isinf(limit):
        return selection
    comparable = [each for each in selection.kept if cost(each) <= limit]
    first = min(comparable, key=lambda each: doubts.get(each.key, 0))
    kept = (first, *(each for each in selection.kept if each is not first))
    return Selection(kept, selection.rejected, selection.filter_counts, selection.work)
