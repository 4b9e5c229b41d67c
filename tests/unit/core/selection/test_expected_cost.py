import math
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_definition, make_offering
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering, estimated_interruptions_per_hour, hazard_of
from relaunch.core.selection.expected_cost import GP3_USD_PER_GIB_MONTH, WorkAhead, cost_of, derive_work

START, TAIL = 8 / 60, 0.25
durations = st.integers(1, 60 * 100).map(lambda minutes: timedelta(minutes=minutes))
rates = st.sampled_from((0.0, 0.001, 0.01, 0.1, 0.5, 2.0, 40.0))
prices = st.integers(1, 10_000).map(lambda thousandths: thousandths / 1000)
works = st.builds(WorkAhead, durations, st.booleans(), st.sampled_from((0, 200)))


def work(hours: float, *, has_checkpoint: bool = True, disk_gib: int = 0) -> WorkAhead:
    return WorkAhead(timedelta(hours=hours), has_checkpoint, disk_gib)


def spot(price: float, rate: float | None = None, score: int | None = None) -> Offering:
    return make_offering(price_usd_per_hour=price, interruptions_per_hour=rate, placement_score=score)


def spot_cost(ahead: WorkAhead, price: float, rate: float) -> float:
    cost = cost_of(ahead)(spot(price, rate))
    assert cost is not None
    return cost


def on_demand(price: float) -> Offering:
    return make_offering(purchase=PurchaseOption.ON_DEMAND, price_usd_per_hour=price)


def test_without_interruptions_start_work_and_idle_tail_are_paid_for_once():
    assert work(10).paid_hours(0) == pytest.approx(START + 10 + TAIL)
    assert cost_of(work(10))(on_demand(2.0)) == pytest.approx(2 * (START + 10 + TAIL))


def test_work_that_takes_no_time_costs_a_start_and_the_idle_tail_even_on_spot():
    assert work(0).paid_hours(0.1) == pytest.approx(START + TAIL)


def test_the_disk_is_paid_for_as_long_as_the_machine():
    cost = cost_of(replace(work(10, disk_gib=500), gp3_usd_per_gib_month=0.146))(on_demand(2.0))

    assert cost == pytest.approx((START + 10 + TAIL) * (2 + 500 * 0.0002))


def test_a_disk_of_a_region_whose_price_is_not_known_costs_what_it_costs_in_virginia():
    assert GP3_USD_PER_GIB_MONTH == 0.08
    assert work(10, disk_gib=730).disk_usd_per_hour == pytest.approx(0.08)


def test_with_checkpoints_an_interruption_costs_a_start_and_half_an_interval():
    rate = 0.05
    lost = rate * 10 * (START + 0.25)

    assert work(10).paid_hours(rate) == pytest.approx(START + 10 + TAIL + lost, rel=0.01)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_the_formula_agrees_with_lives_of_machines_that_are_drawn_by_lot(has_checkpoint):
    ahead, rate, random = work(3, has_checkpoint=has_checkpoint), 0.3, Random(11)  # noqa: S311 - no secret
    segment = 0.5 if has_checkpoint else 3.0

    def live() -> float:
        paid, done = START, 0.0
        while done < 3:
            life = random.expovariate(rate)
            if life >= segment:
                paid, done = paid + segment, done + segment
            else:
                paid += life + START
        return paid + TAIL

    mean = sum(live() for _ in range(20_000)) / 20_000

    assert ahead.paid_hours(rate) == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(
    ("hours", "has_checkpoint", "ratio", "cheaper"),
    [
        pytest.param(1, False, 0.4, "spot", id="short without checkpoint, much cheaper"),
        pytest.param(3, False, 0.89, "on-demand", id="short without checkpoint, hardly cheaper"),
        pytest.param(3, True, 0.89, "spot", id="the same with checkpoints"),
        pytest.param(12, False, 0.4, "spot", id="twelve hours without checkpoint, much cheaper"),
        pytest.param(24, False, 0.4, "on-demand", id="a day without checkpoint"),
        pytest.param(24, True, 0.4, "spot", id="a day with checkpoints"),
        pytest.param(24, True, 0.89, "spot", id="a day with checkpoints, hardly cheaper"),
    ],
)
def test_spot_of_an_unknown_market_pays_only_where_little_is_lost(hours, has_checkpoint, ratio, cheaper):
    ahead = work(hours, has_checkpoint=has_checkpoint)
    costs = {str(each.purchase): cost_of(ahead)(each) for each in (spot(ratio), on_demand(1.0))}

    assert min(costs, key=lambda name: costs[name] or math.inf) == cheaper


def test_an_unknown_rate_is_reckoned_as_is_usual_for_the_type():
    ahead = work(5)

    assert cost_of(ahead)(spot(1.0)) == cost_of(ahead)(spot(1.0, estimated_interruptions_per_hour("g5.xlarge")))


@given(works, prices, st.integers(1, 10), st.integers(1, 10))
def test_a_better_score_never_costs_more_and_never_more_than_an_unknown_one(ahead, price, one, other):
    low, high = sorted((one, other))
    unlikely, likely, unknown = (cost_of(ahead)(spot(price, score=score)) for score in (low, high, None))

    assert likely is not None
    assert unlikely is not None
    assert unknown is not None
    assert likely * (1 - 1e-9) <= unlikely <= unknown * (1 + 1e-9)


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_short_work_is_interrupted_too(has_checkpoint):
    ahead = work(0.25, has_checkpoint=has_checkpoint)

    assert ahead.paid_hours(0.5) > ahead.paid_hours(0.0)


def test_work_that_is_always_interrupted_never_ends():
    assert work(100, has_checkpoint=False).paid_hours(2.0) == math.inf
    assert math.isfinite(work(100).paid_hours(2.0))


def test_without_duration_or_price_there_is_no_cost():
    unpriced = make_offering(price_usd_per_hour=None, on_demand_usd_per_hour=None)

    assert derive_work(make_definition()) is None
    assert cost_of(None)(spot(1.0)) is None
    assert cost_of(work(1))(unpriced) is None


def test_the_work_is_read_from_the_definition():
    definition = make_definition(estimated_duration=timedelta(hours=20), disk_gib=200, checkpoint_uri=None)

    assert derive_work(definition) == work(20, has_checkpoint=False, disk_gib=200)
    assert derive_work(definition, 0.1) == WorkAhead(
        timedelta(hours=20), has_checkpoint=False, disk_gib=200, gp3_usd_per_gib_month=0.1
    )


@given(works, rates, prices, prices)
def test_a_higher_price_never_costs_less(ahead, rate, one, other):
    low, high = sorted((one, other))

    assert spot_cost(ahead, low, rate) <= spot_cost(ahead, high, rate)


@given(works, rates, rates, prices)
def test_more_interruptions_never_cost_less(ahead, one, other, price):
    low, high = sorted((one, other))

    assert spot_cost(ahead, price, low) <= spot_cost(ahead, price, high) * (1 + 1e-9)


@given(durations, durations, st.booleans(), rates, prices)
def test_more_work_never_costs_less(one, other, has_checkpoint, rate, price):
    short, long = sorted((one, other))

    assert spot_cost(WorkAhead(short, has_checkpoint), price, rate) <= (
        spot_cost(WorkAhead(long, has_checkpoint), price, rate) * (1 + 1e-9)
    )


@given(durations, rates, prices)
def test_checkpoints_never_make_it_dearer(duration, rate, price):
    with_them, without = WorkAhead(duration, has_checkpoint=True), WorkAhead(duration, has_checkpoint=False)

    assert spot_cost(with_them, price, rate) <= spot_cost(without, price, rate) * (1 + 1e-9)


def test_several_nodes_are_all_paid_and_interrupted_a_little_more_often_than_one():
    gang = derive_work(make_definition(nodes=4, estimated_duration=timedelta(hours=10)))
    assert gang is not None

    assert hazard_of(1) == 1
    assert 1.4 < hazard_of(4) < 1.6 < hazard_of(16) < 2.4
    rate = 0.1 * hazard_of(4)
    assert cost_of(gang)(on_demand(2.0)) == pytest.approx(4 * 2 * (START + 10 + TAIL))
    assert cost_of(gang)(spot(2.0, 0.1)) == pytest.approx(4 * spot_cost(work(10), 2.0, rate))


def test_what_gangs_of_a_size_have_seen_of_a_pool_counts_for_that_size():
    seen = replace(spot(2.0, 0.1), gang_rates=((2, 0.05), (4, 0.3)))
    costs = {nodes: cost_of(replace(work(10), nodes=nodes))(seen) for nodes in (1, 2, 4, 8)}

    rates = {1: 0.1, 2: 0.05, 4: 0.3, 8: 0.1 * hazard_of(8)}
    assert costs == {nodes: pytest.approx(nodes * spot_cost(work(10), 2.0, rate)) for nodes, rate in rates.items()}
    assert replace(seen, purchase=PurchaseOption.ON_DEMAND, gang_rates=()).interruption_rate_of(4) == 0
