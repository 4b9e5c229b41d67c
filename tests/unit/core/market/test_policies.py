"""Market policies by their names."""

from unittest.mock import Mock

import pytest

from relaunch.core.market.policies import PolicyName, policy_named
from relaunch.core.market.published import greedy, on_demand_first, uniform_progress


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        (PolicyName.UNIFORM_PROGRESS, uniform_progress),
        (PolicyName.GREEDY, greedy),
        (PolicyName.ON_DEMAND_FIRST, on_demand_first),
    ],
)
def test_what_was_published_needs_no_thresholds(name, policy):
    load = Mock()

    assert policy_named(name, load) is policy
    load.assert_not_called()


def test_the_cheapest_follows_thresholds():
    load = Mock()

    assert policy_named(PolicyName.CHEAPEST, load) is not None
    load.assert_called_once_with()
