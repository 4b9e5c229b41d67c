from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_offering, make_offering_key, make_selection
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.expected_cost import WorkAhead
from relaunch.core.selection.selection import prefer_low_risk

CHEAP = make_offering("g5.xlarge", price_usd_per_hour=0.40)
NEAR = make_offering("g6.xlarge", price_usd_per_hour=0.48)
A_QUARTER_MORE = make_offering("g4dn.xlarge", price_usd_per_hour=0.50)
FAR = make_offering("g4dn.xlarge", price_usd_per_hour=0.52)
FREE = make_offering("g5.xlarge", price_usd_per_hour=0.0)
DOUBTED, NEAR_KEY = make_offering_key("g5.xlarge"), make_offering_key("g6.xlarge")


def order(risks, *kept: Offering, work: WorkAhead | None = None) -> tuple[Offering, ...]:
    return prefer_low_risk(replace(make_selection(kept=kept), work=work), risks).kept


@pytest.mark.parametrize("work", [None, WorkAhead(timedelta(hours=2), has_checkpoint=True)], ids=["price", "cost"])
def test_an_offering_that_costs_about_the_same_comes_before_a_doubted_one(work):
    assert order({DOUBTED: 1}, CHEAP, NEAR, FAR, work=work) == (NEAR, CHEAP, FAR)


def test_a_doubted_offering_stays_first_where_nothing_else_costs_about_the_same():
    assert order({DOUBTED: 9}, CHEAP, FAR) == (CHEAP, FAR)
    assert order({DOUBTED: 9}, CHEAP) == (CHEAP,)
    assert order({DOUBTED: 9}, FREE, NEAR) == (FREE, NEAR)


def test_a_quarter_more_is_about_the_same():
    assert order({DOUBTED: 1}, CHEAP, A_QUARTER_MORE) == (A_QUARTER_MORE, CHEAP)


def test_a_price_that_is_about_the_same_counts_for_nothing_where_interruptions_make_the_work_cost_more():
    unsteady = replace(NEAR, interruptions_per_hour=1.0)
    work = WorkAhead(timedelta(hours=2), has_checkpoint=False)

    assert order({DOUBTED: 1}, CHEAP, unsteady) == (unsteady, CHEAP)
    assert order({DOUBTED: 1}, CHEAP, unsteady, work=work) == (CHEAP, unsteady)


def test_the_rest_of_the_selection_stays_as_it_is():
    work = WorkAhead(timedelta(hours=2), has_checkpoint=True)
    selection = make_selection(kept=(CHEAP, NEAR), work=work)
    assert selection.rejected

    assert prefer_low_risk(selection, {DOUBTED: 1}) == replace(selection, kept=(NEAR, CHEAP))


def test_of_doubted_offerings_the_least_doubted_comes_first_and_the_cheapest_of_equals():
    assert order({DOUBTED: 3, NEAR_KEY: 1}, CHEAP, NEAR) == (NEAR, CHEAP)
    assert order({DOUBTED: 1, NEAR_KEY: 1}, CHEAP, NEAR) == (CHEAP, NEAR)
    assert order({DOUBTED: 0.9, NEAR_KEY: 0.5}, CHEAP, NEAR) == (NEAR, CHEAP)


UNPRICED = make_offering("p5e.48xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=None, on_demand_usd_per_hour=None)
WORK = WorkAhead(timedelta(hours=2), has_checkpoint=True)


@pytest.mark.parametrize("work", [None, WORK], ids=["price", "cost"])
def test_an_offering_of_unknown_price_is_never_taken_for_one_that_costs_about_the_same(work):
    on_demand = make_offering("g5.xlarge", PurchaseOption.ON_DEMAND, price_usd_per_hour=1.00)

    assert order({DOUBTED: 1}, CHEAP, on_demand, UNPRICED, work=work) == (CHEAP, on_demand, UNPRICED)
    assert order({DOUBTED: 1}, CHEAP, NEAR, UNPRICED, work=work) == (NEAR, CHEAP, UNPRICED)


@pytest.mark.parametrize("work", [None, WORK], ids=["price", "cost"])
def test_offerings_of_unknown_price_keep_their_order(work):
    other = replace(UNPRICED, purchase=PurchaseOption.SPOT)

    assert order({other.key: 1}, other, UNPRICED, work=work) == (other, UNPRICED)


def test_on_a_job_that_never_finishes_on_spot_a_doubt_prefers_nothing_of_unknown_price():
    endless = WorkAhead(timedelta(days=100), has_checkpoint=False)

    assert order({DOUBTED: 1}, CHEAP, UNPRICED, work=endless) == (CHEAP, UNPRICED)


def test_without_a_doubt_about_the_best_nothing_changes():
    assert order({NEAR_KEY: 1}, CHEAP, NEAR) == (CHEAP, NEAR)
    assert order({DOUBTED: 1}) == ()
