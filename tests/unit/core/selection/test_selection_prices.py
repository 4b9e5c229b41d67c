from dataclasses import replace

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

    assert "1 USD per hour; the job's cap is 0.5" in by_definition.rejected[0].rejection.reason
    assert "the stack's cap is 0.7" in by_stack.rejected[0].rejection.reason
    assert selected(replace(ONE_GPU, max_price_usd_per_hour=1.0), offering).kept


def test_a_dear_spot_price_may_fall_but_an_on_demand_price_does_not() -> None:
    capped = replace(ONE_GPU, max_price_usd_per_hour=0.3)

    spot = selected(capped, offered(A10G, SPOT, price_usd_per_hour=0.4))
    on_demand = selected(capped, offered(A10G, ON_DEMAND))

    assert (spot.last_filter, spot.is_permanent, spot.retry_at) == ("price-cap", False, None)
    assert (on_demand.last_filter, on_demand.is_permanent) == ("price-cap", True)


def test_an_offering_without_any_price_cannot_keep_a_cap() -> None:
    selection = selected(ONE_GPU, offered(A10G, price_usd_per_hour=None, on_demand_usd_per_hour=None))

    assert "not known" in selection.rejected[0].rejection.reason
    assert selection.last_filter == "price-cap"


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
