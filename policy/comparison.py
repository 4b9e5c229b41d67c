"""The policies that replays compare."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from policy.baselines import retrying
from policy.figures import Cell, Policies, Sample, replay
from policy.series import Series
from relaunch.adapters.market_thresholds import read_thresholds
from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.published import greedy, on_demand_first, uniform_progress
from relaunch.core.market.situation import Policy


def compare(
    groups: Iterable[Sequence[Series]], thresholds: Path, starts: int, cell: Cell, *, has_decisions: bool = False
) -> list[Sample]:
    """Run a job from some starts of each group of pools by each policy; `thresholds` is the file of `cheapest`."""
    samples = replay(groups, cell, compared_policies(thresholds), starts)
    return samples if has_decisions else [each.without_decisions() for each in samples]


def compared_policies(thresholds: Path) -> Policies:
    """Return what makes the policies that are compared, by title; `thresholds` is the file of `cheapest`."""
    policies: dict[str, Policy] = {
        "on-demand": on_demand_first,
        "greedy": greedy,
        "uniform-progress": uniform_progress,
        "cheapest": cheapest(read_thresholds(thresholds)),
    }
    made: dict[str, Callable[[], Policy]] = {title: partial(_same, policy) for title, policy in policies.items()}
    return {"retry-3": retrying(3), **made}


def _same(policy: Policy) -> Policy:
    return policy
