from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import NOW, make_offering, make_offering_key
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import hazard_of
from relaunch.core.offerings.spot_runs import (
    DOUBTED_FOR,
    KEPT_FOR,
    GangRuns,
    Observed,
    SpotRun,
    SpotRuns,
    find_shortage_risks,
    first_day,
    hours_of_one,
)
from relaunch.core.offerings.spot_runs import with_observed_rates as rated

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
TODAY = NOON.date()
HERE, THERE = make_offering_key(zone="us-east-1a"), make_offering_key(zone="us-east-1b")
MINUTE = timedelta(minutes=1)


def rate(*observed: SpotRuns, now: datetime = NOON, **fields) -> float:
    (offering,) = rated([make_offering(interruptions_per_hour=0.1, **fields)], observed, now)
    return offering.interruption_rate


def test_without_runs_the_usual_rate_counts():
    assert rate() == 0.1
    assert rate(SpotRuns(make_offering_key("g6.xlarge"), TODAY, 10.0, 9.0)) == 0.1


@pytest.mark.parametrize(
    ("hours", "interruptions", "per_hour"),
    [
        pytest.param(0.0, 1.0, 0.2, id="the-first-interruption-doubles-it"),
        pytest.param(10.0, 1.0, 0.1, id="as-expected"),
        pytest.param(90.0, 0.0, 0.01, id="quiet"),
        pytest.param(990.0, 99.0, 0.1, id="many-machines-are-not-many-interruptions"),
    ],
)
def test_the_rate_weighs_interruptions_by_machine_hours(hours, interruptions, per_hour):
    assert rate(SpotRuns(make_offering_key(), TODAY, hours, interruptions)) == pytest.approx(per_hour)


def test_what_ended_a_day_ago_counts_half():
    runs = SpotRuns(make_offering_key(), TODAY, 0.0, 1.0)

    assert rate(runs, now=NOON + timedelta(days=1)) == pytest.approx(0.15)
    assert rate(runs, now=NOON - timedelta(hours=3)) == pytest.approx(0.2)


def test_an_offering_in_any_zone_has_the_runs_of_all_and_one_in_a_zone_its_own():
    runs = (SpotRuns(HERE, TODAY, 10.0, 1.0), SpotRuns(THERE, TODAY, 10.0, 4.0))

    assert rate(*runs) == pytest.approx(6 / 30)
    assert rate(*runs, zone="us-east-1b") == pytest.approx(5 / 20)


def gang_rates(*observed: SpotRuns) -> dict[int, float]:
    (offering,) = rated([make_offering(interruptions_per_hour=0.1)], observed, NOON)
    return dict(offering.gang_rates)


def test_runs_on_several_machines_are_their_own_and_a_little_longer_for_one():
    hazard = hazard_of(4)
    quiet = SpotRuns(HERE, TODAY, 90.0 * hazard, 0.0, gangs=(GangRuns(4, 90.0, 0.0),))

    assert rate(quiet) == pytest.approx(1 / (10 + 90 * hazard))
    assert gang_rates(quiet) == {4: pytest.approx(0.01 * hazard)}
    # As often as expected, nothing is learned.
    usual = SpotRuns(HERE, TODAY, 100.0 * hazard, 10.0 * hazard, gangs=(GangRuns(4, 100.0, 10.0 * hazard),))
    assert gang_rates(usual) == {4: pytest.approx(0.1 * hazard)}


def test_what_one_machine_has_seen_is_expected_of_several_and_their_own_runs_count_once():
    gangs = (GangRuns(2, 10.0, 3.0), GangRuns(4, 20.0, 1.0))
    hours = 30.0 + hours_of_one(10.0, 2) + hours_of_one(20.0, 4)

    rates = gang_rates(SpotRuns(HERE, TODAY, hours, 6.0, gangs=gangs))

    of_one = (1.0 + 5.0) / (10.0 + 30.0 + hours_of_one(10.0, 2))
    assert rates[4] == pytest.approx((of_one * hazard_of(4) * 10.0 + 1.0) / (10.0 + 20.0))
    assert rates.keys() == {2, 4}


def test_runs_on_several_machines_of_some_days_and_zones_are_added_up():
    day_ago = TODAY - timedelta(days=1)
    runs = [SpotRuns(HERE, day, hours_of_one(8.0, 4), 2.0, gangs=(GangRuns(4, 8.0, 2.0),)) for day in (TODAY, day_ago)]

    assert gang_rates(*runs) == {4: pytest.approx((0.1 * hazard_of(4) * 10 + 3.0) / (10 + 12))}
    # What the release before has counted of them is among those of one machine alone: there are not less than none.
    assert gang_rates(SpotRuns(HERE, TODAY, 0.0, 0.0, gangs=(GangRuns(4, 8.0, 2.0),)))[4] > 0.1


def test_a_run_on_several_machines_lasted_as_long_as_it_did():
    run = SpotRun(HERE, "a/1/1", Observed.END, NOW, hours_of_one(3.0, 8), nodes=8)

    assert run.lasted_hours == pytest.approx(3.0)
    assert SpotRun(HERE, "a/1/1", Observed.END, NOW, 3.0).lasted_hours == 3.0


def test_on_demand_is_never_interrupted():
    on_demand = make_offering(purchase=PurchaseOption.ON_DEMAND)
    key = make_offering_key(purchase=PurchaseOption.ON_DEMAND)

    assert rated([on_demand], [SpotRuns(key, TODAY, 0.0, 9.0)], NOON) == (on_demand,)


@pytest.mark.parametrize(
    ("minutes", "doubt"),
    [
        pytest.param(-1, 3.0, id="clocks-differ"),
        pytest.param(0, 3.0, id="fresh"),
        pytest.param(20, 1.5, id="half-of-the-shortages-have-ended"),
        pytest.param(100, 0.5, id="an-older-one-counts-less"),
        pytest.param(239, pytest.approx(0.23, abs=0.01), id="four-hours"),
    ],
)
def test_an_interruption_raises_a_doubt_that_fades(minutes, doubt):
    runs = [SpotRuns(HERE, TODAY, 1.0, 1.0, interrupted_at=NOON, interrupted_in_a_row=3)]

    assert find_shortage_risks(runs, NOON + minutes * MINUTE) == {HERE: doubt, make_offering_key(): doubt}


def test_a_doubt_ends_after_four_hours():
    runs = [SpotRuns(HERE, TODAY, 1.0, 1.0, interrupted_at=NOON, interrupted_in_a_row=3)]

    assert find_shortage_risks(runs, NOON + DOUBTED_FOR) == {}


def test_something_that_starts_in_any_zone_ends_the_doubt_of_the_offering_without_a_zone():
    interrupted = SpotRuns(HERE, TODAY, 1.0, 1.0, NOON, NOON - MINUTE, interrupted_in_a_row=2)
    started = SpotRuns(THERE, TODAY, started_at=NOON + MINUTE)

    assert find_shortage_risks([interrupted], NOON) == {HERE: 2, make_offering_key(): 2}
    assert find_shortage_risks([interrupted, started], NOON + MINUTE).keys() == {HERE}
    assert find_shortage_risks([started, interrupted], NOON + MINUTE).keys() == {HERE}


def test_an_offering_in_any_zone_has_the_doubts_of_all_zones_together():
    runs = [
        SpotRuns(zone, TODAY, interrupted_at=NOON, interrupted_in_a_row=times)
        for zone, times in ((HERE, 2), (THERE, 3))
    ]

    assert find_shortage_risks(runs, NOON) == {HERE: 2, THERE: 3, make_offering_key(): 5}


@pytest.mark.parametrize(
    ("what", "interruptions"),
    [(Observed.START, 0.0), (Observed.END, 0.0), (Observed.INTERRUPTION, 1.0), (Observed.REBALANCE, 0.5)],
)
def test_what_counts_as_an_interruption(what, interruptions):
    assert SpotRun(HERE, "a/1/1", what, NOW).interruptions == interruptions


def test_the_first_day_is_that_of_the_oldest_run_that_counts():
    assert first_day(NOON) == (NOON - KEPT_FOR).date()


def test_days_are_those_of_utc_where_it_is_tomorrow_already():
    evening = NOON + timedelta(hours=8)
    assert evening.astimezone().date() > evening.date()

    assert first_day(evening) == (evening - KEPT_FOR).date()
