"""The market policies by the names that a job definition gives them."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.published import greedy, on_demand_first, uniform_progress
from relaunch.core.market.situation import Policy
from relaunch.core.market.thresholds import Thresholds


class PolicyName(StrEnum):
    """The name of a market policy."""

    CHEAPEST = "cheapest"
    UNIFORM_PROGRESS = "uniform-progress"
    GREEDY = "greedy"
    ON_DEMAND_FIRST = "on-demand-first"


DEFAULT_POLICY = PolicyName.CHEAPEST
"""The policy of a job definition that names none."""
LEAVE_ON_DEMAND = frozenset({PolicyName.CHEAPEST, PolicyName.UNIFORM_PROGRESS})
"""The policies that leave a running on-demand machine for spot."""
DEFAULT_PADDING = 0.1
"""The share of the work that its estimate may lack, if a definition does not say it."""

_PUBLISHED: Mapping[PolicyName, Policy] = MappingProxyType(
    {
        PolicyName.UNIFORM_PROGRESS: uniform_progress,
        PolicyName.GREEDY: greedy,
        PolicyName.ON_DEMAND_FIRST: on_demand_first,
    }
)


def policy_named(name: PolicyName, load_thresholds: Callable[[], Thresholds]) -> Policy:
    """Return the policy of a name; only `cheapest` loads thresholds."""
    return _PUBLISHED.get(name) or cheapest(load_thresholds())
