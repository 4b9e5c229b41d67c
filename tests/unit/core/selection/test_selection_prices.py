from dataclasses import replace
from datetime import timedelta

import pytest

from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from unit.core.selection.offered import A10G, ON_DEMAND, ONE_GPU, SPOT, T4, offered, selected


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (PurchasePolicy.SPOT, [SPOT]),
        (PurchasePolicy.ON_DEMAND, [ON_DEMAND]),
        (PurchasePolicy.SPOT_THEN_ON_DEMAND, [SPOT, ON_DEMAND]),
    ],
)
def test_only_allowed_purchase_options_are_kept(policy: PurchasePolicy, kept: list[PurchaseOption]) -> None:
    definition = replace(ONE_GPU, purchase=policy)

    selection = selected(definition, offered(A10G, ON_DEMAND), offered(A10G, SPOT))

    assert [offering.purchase for offering in selection.kept] == kept


def test_the_lower_of_the_two_price_caps_holds_and_is_named() -> None:
    offering = offered(A10G, price_usd_per_hour=1.0)

    by_definition = selected(replace(ONE_GPU, max_price_usd_per_hour=0.5), offering)
    by_stack = selected(replace(ONE_GPU, max_price_usd_per_hour=9.0), offering, max_price_usd_per_hour=0.7)

    assert "1 USD per hour; the job's max_price_per_hour is 0.5 USD" in by_definition.rejected[0].rejection.reason
    assert "the stack's MaxPricePerHour is 0.7 USD" in by_stack.rejected[0].rejection.reason
    assert selected(replace(ONE_GPU, max_price_usd_per_hour=1.0), offering).kept


def test_a_dear_spot_price_may_fall_but_an_on_demand_price_does_not() -> None:
    capped = replace(ONE_GPU, max_price_usd_per_hour=0.3)

    spot = selected(capped, offered(A10G, SPOT, price_usd_per_hour=0.4))
    on_demand = selected(capped, offered(A10G, ON_DEMAND))

    assert (spot.last_filter, spot.is_permanent, spot.retry_at) == ("price-cap", False, None)
    assert (on_demand.last_filter, on_demand.is_permanent) == ("price-cap", True)


UNPRICED = offered(A10G, price_usd_per_hour=None, on_demand_usd_per_hour=None)


def test_an_offering_without_any_price_cannot_keep_a_cap_that_somebody_gave() -> None:
    selection = selected(replace(ONE_GPU, max_price_usd_per_hour=9.0), UNPRICED)

    assert "not known" in selection.rejected[0].rejection.reason
    assert selection.last_filter == "price-cap"


def test_an_offering_without_any_price_comes_last_where_nobody_gave_a_cap() -> None:
    dear, too_dear = offered(T4, price_usd_per_hour=39.0), offered(T4, price_usd_per_hour=41.0)
    long = replace(ONE_GPU, estimated_duration=timedelta(hours=9))

    assert selected(ONE_GPU, UNPRICED, dear, too_dear).kept == (dear, UNPRICED)
    assert selected(long, UNPRICED, dear, too_dear).kept == (dear, UNPRICED)
    assert selected(ONE_GPU, UNPRICED, too_dear).chosen == UNPRICED


def test_a_zone_without_a_price_is_not_hidden_by_a_zone_that_is_too_dear() -> None:
    dear = offered(A10G, SPOT, zone="us-east-1a", price_usd_per_hour=41.0, on_demand_usd_per_hour=None)
    unpriced = replace(dear, zone="us-east-1b", price_usd_per_hour=None)

    assert selected(ONE_GPU, dear, unpriced).chosen == unpriced


def test_spot_that_is_hardly_cheaper_is_rejected_until_its_price_falls() -> None:
    dear = offered(A10G, SPOT, price_usd_per_hour=0.95)
    just_cheap_enough = offered(A10G, SPOT, price_usd_per_hour=0.9)

    selection = selected(ONE_GPU, dear)

    assert (selection.last_filter, selection.is_permanent) == ("spot-ratio", False)
    assert "95% of the on-demand price" in selection.rejected[0].rejection.reason
    assert selected(ONE_GPU, just_cheap_enough).kept
    assert selected(ONE_GPU, dear, max_spot_ratio=1.0).kept


def test_spot_without_a_known_price_is_reckoned_at_the_on_demand_price_and_ranks_after_it() -> None:
    unpriced = offered(A10G, SPOT, price_usd_per_hour=None)
    dearer = offered(T4, ON_DEMAND, price_usd_per_hour=1.5)

    selection = selected(ONE_GPU, dearer, unpriced, offered(A10G, ON_DEMAND))

    assert [each.expected_usd_per_hour for each in selection.kept] == [1.0, 1.0, 1.5]
    assert [each.price_usd_per_hour for each in selection.kept] == [1.0, None, 1.5]
