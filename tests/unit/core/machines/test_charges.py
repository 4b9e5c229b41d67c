"""What a machine costs and who pays it: to the second, by EC2's rules, and all of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from fakes.builders import NOW
from fakes.machines import CAPACITY, INSTANCE, claim, fleet_request, machine, override
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.charges import (
    Charge,
    DayCost,
    Rate,
    charges_of,
    cost_so_far,
    days_between,
    days_of,
    first_holdings,
    is_free,
    may_be_free,
    rate_of,
    shares_of,
    usd_beside,
)
from relaunch.core.machines.events import (
    ClaimAsked,
    ClaimReleased,
    FleetAnswered,
    FleetRefused,
    InstanceLaunched,
    InstanceObservation,
    InstanceSeen,
    InstanceState,
    MachineDue,
    MachineEvent,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import ChargeJobs, Holding, Machine, MachineState, Resources
from relaunch.core.machines.table import decide
from relaunch.core.offerings.reservations import Reservation, ReservationType

TAKEN = "Server.SpotInstanceTermination: Spot instance termination"
HALF = Resources(512, 2_000, 0.5)
ON_DEMAND = override(usd_per_hour=3.6, purchase=PurchaseOption.ON_DEMAND)
SPOT = override(usd_per_hour=1.0)


def after(seconds: float) -> datetime:
    """Return a time after the launch."""
    return NOW + timedelta(seconds=seconds)


def paid_machine(state: MachineState = MachineState.READY, **fields: Any) -> Machine:
    """Return a machine at $3.6 an hour on demand that is charged to its job since its launch."""
    usual: dict[str, Any] = {
        "request": fleet_request(ON_DEMAND),
        "holdings": first_holdings(claim(), after(-5)),
        "paid_since": NOW,
        "usd_per_hour": 3.6,
    }
    return machine(state, **{**usual, **fields})


def gone(ended: float, at: float | None = None, **fields: Any) -> Machine:
    """Return a machine that ended so many seconds after its launch, and was gone later."""
    state_since = after(ended if at is None else at)
    return paid_machine(MachineState.GONE, **{"ended_at": after(ended), "state_since": state_since, **fields})


def seen(before: Machine, event: MachineEvent, seconds: float, **limits: Any) -> Machine:
    """Return a machine after an event."""
    return decide(before, event, after(seconds), MachineLimits(**limits)).machine


def usd_of(charged: Machine, changes: tuple[tuple[datetime, float], ...] = (), now: float = 9_999) -> dict[str, float]:
    """Return what each job pays."""
    return {job_id: pytest.approx(each.usd) for job_id, each in charges_of(charged, changes, after(now)).items()}


@pytest.mark.parametrize(
    ("charged", "changes", "usd"),
    [
        pytest.param(gone(1_000), (), 1.0, id="from-launch-to-end"),
        pytest.param(gone(1_000, at=1_300), (), 1.0, id="not-while-it-shuts-down"),
        pytest.param(gone(1_000, ended_at=None), (), 1.0, id="until-it-is-gone-if-nobody-said-before"),
        pytest.param(gone(5), (), 0.06, id="a-minute-at-least"),
        pytest.param(gone(1_000, at=1_500, beside_usd_per_hour=3.6), (), 2.5, id="volume-and-address-until-it-is-gone"),
        pytest.param(gone(5, at=6, beside_usd_per_hour=3.6), (), 0.12, id="a-minute-of-those-too"),
        pytest.param(gone(7_200, request=fleet_request(SPOT), usd_per_hour=1.0), (), 2.0, id="spot-by-its-first-price"),
        pytest.param(
            gone(7_200, request=fleet_request(SPOT)),
            ((after(-90), 1.0), (after(600), 3.0), (after(4_000), 9.0)),
            4.0,
            id="spot-by-the-price-at-each-hour",
        ),
        pytest.param(gone(3_600, request=fleet_request(SPOT)), ((after(9), 2.0),), 2.0, id="a-price-that-came-late"),
        pytest.param(gone(1_000), ((NOW, 9.0),), 1.0, id="on-demand-has-no-market"),
    ],
)
def test_what_a_machine_costs(charged: Machine, changes: tuple[tuple[datetime, float], ...], usd: float):
    assert usd_of(charged, changes) == {"resnet-1": usd}


def test_one_that_lives_has_cost_until_now_and_one_that_was_not_launched_nothing():
    assert usd_of(paid_machine(), now=500) == {"resnet-1": 0.5}
    assert usd_of(paid_machine(paid_since=None)) == {}
    assert cost_so_far(paid_machine(), after(500)) == 0.5
    assert cost_so_far(paid_machine(holdings=None), after(500)) == 0


def test_one_that_an_earlier_release_requested_is_charged_to_nobody():
    old = paid_machine(holdings=None)

    assert charges_of(old, (), after(60)) == {}
    assert rate_of(old, "resnet-1") is None
    assert seen(old, ClaimAsked(claim("other", HALF)), 60).holdings is None


def test_what_it_would_have_cost_on_demand_and_how_sure_the_price_is():
    known = {"g5.xlarge": 3.6, "g6.xlarge": 9.9}
    spot = gone(3_600, request=fleet_request(SPOT), usd_per_hour=1.0, beside_usd_per_hour=0.5, on_demand=known)
    reserved = gone(
        3_600, request=replace(fleet_request(SPOT), purchase=PurchaseOption.RESERVED), usd_per_hour=0.0, on_demand=known
    )
    unknown = gone(3_600, request=fleet_request(SPOT), usd_per_hour=0.0)
    not_chosen = gone(3_600, offering=None)

    assert charges_of(spot, ((NOW, 1.0),), after(9)) == {"resnet-1": Charge("m-1", 1.5, 4.1)}
    assert charges_of(spot, (), after(9)) == {"resnet-1": Charge("m-1", 1.5, 4.1, is_limit=True)}
    assert charges_of(reserved, (), after(9)) == {"resnet-1": Charge("m-1", 0.0, 0.0)}
    assert charges_of(unknown, (), after(9)) == {"resnet-1": Charge("m-1", 0.0, 0.0, is_limit=True, is_unknown=True)}
    assert charges_of(not_chosen, (), after(9)) == {"resnet-1": Charge("m-1", 3.6, 3.6)}


@pytest.mark.parametrize(
    ("resources", "shares"),
    [
        pytest.param([HALF], {"a": 1.0}, id="who-is-alone-pays-what-nobody-uses"),
        pytest.param([Resources(512, 2_000, 0.25), HALF], {"a": 1 / 3, "b": 2 / 3}, id="by-the-gpu"),
        pytest.param([Resources(3_072, 500), Resources(1_024, 1_500)], {"a": 0.75, "b": 0.25}, id="by-what-is-scarce"),
        pytest.param([Resources(), Resources()], {"a": 0.5, "b": 0.5}, id="who-reserves-nothing"),
        pytest.param([Resources(neuron_devices=1), HALF], {"a": 0.0, "b": 1.0}, id="what-it-does-not-have"),
    ],
)
def test_the_share_of_each_job(resources: list[Resources], shares: dict[str, float]):
    claims = [claim(name, each) for name, each in zip("ab", resources, strict=False)]

    assert shares_of(claims, CAPACITY) == pytest.approx(shares)


def test_each_job_pays_its_share_of_each_time_and_who_leaves_last_the_rest():
    alone = paid_machine(claims=(claim(resources=HALF),))
    shared = seen(alone, ClaimAsked(claim("other", HALF)), 1_000)
    left = seen(shared, ClaimReleased("resnet-1"), 2_000, warm_time=timedelta(hours=1))
    warm = seen(left, ClaimReleased("other"), 3_000, warm_time=timedelta(hours=1))
    taken = seen(warm, ClaimAsked(claim("third", HALF)), 4_000)

    assert usd_of(taken, now=5_000) == {"resnet-1": 1.5, "other": 0.5 + 1.0 + 1.0, "third": 1.0}
    assert rate_of(shared, "other") == Rate(1.8, 1.8, 1.8)
    assert rate_of(replace(shared, beside_usd_per_hour=1.0), "nobody") == Rate(0.0, 0.0, 0.0)


def test_a_clock_that_is_behind_takes_nothing_back():
    shared = seen(paid_machine(claims=(claim(resources=HALF),)), ClaimAsked(claim("other", HALF)), 1_000)
    left = seen(shared, ClaimReleased("other"), 997)

    assert usd_of(left, now=2_000) == {"resnet-1": 2.0, "other": 0.0}


def test_claims_that_change_no_share_are_not_kept():
    alone = paid_machine(claims=(claim(resources=HALF),))

    assert decide(alone, ClaimAsked(claim("resnet-1", HALF)), after(9), MachineLimits()).is_ignored
    assert seen(alone, MachineDue(), 9).holdings == alone.holdings


def test_of_very_many_changes_the_oldest_are_one_with_the_same_seconds():
    shared = paid_machine(claims=(claim(resources=HALF),))
    exact = 1.0
    for number in range(50):
        begin = 1_000 + number * 200
        shared = seen(shared, ClaimAsked(claim("other", HALF)), begin)
        shared = seen(shared, ClaimReleased("other"), begin + 100)
        exact += 0.05 + 0.1
    assert shared.holdings is not None
    assert len(shared.holdings) == 60
    assert usd_of(shared, now=11_000) == {"resnet-1": exact, "other": 2.5}


def test_holdings_of_one_moment_are_made_one_too():
    same = tuple(Holding(NOW, {"resnet-1": 1.0}) for _ in range(60))
    shared = seen(paid_machine(claims=(claim(resources=HALF),), holdings=same), ClaimAsked(claim("b", HALF)), 0)

    assert shared.holdings is not None
    assert len(shared.holdings) == 60


def test_the_jobs_are_charged_once_it_is_gone_and_not_without_an_instance():
    ended = InstanceSeen(InstanceObservation(INSTANCE, InstanceState.TERMINATED), after(60))
    ending = paid_machine(MachineState.ENDING)

    assert ChargeJobs() in seen(ending, ended, 60).pending
    assert ChargeJobs() not in seen(ending, InstanceSeen(replace(ended.observation, state=InstanceState.SHUTTING_DOWN),
                                                         NOW), 60).pending  # fmt: skip
    assert ChargeJobs() not in seen(paid_machine(MachineState.REQUESTED), ClaimReleased("resnet-1"), 60).pending


def test_one_that_lives_after_all_is_charged_once_it_is_gone_again():
    answered = FleetAnswered(InstanceLaunched(INSTANCE, ON_DEMAND.offering))
    pending = gone(60, pending=(ChargeJobs(),))

    assert ChargeJobs() not in seen(pending, answered, 61).pending
    assert ChargeJobs() in seen(pending, FleetAnswered(FleetRefused(())), 61).pending


@pytest.mark.parametrize(
    ("charged", "reason", "usd"),
    [
        pytest.param(gone(600), TAKEN, 0.6, id="on-demand-is-never-free"),
        pytest.param(gone(600, request=fleet_request(SPOT)), TAKEN, 0.0, id="taken-in-the-first-hour"),
        pytest.param(gone(3_600, request=fleet_request(SPOT)), TAKEN, 3.6, id="taken-later"),
        pytest.param(gone(600, request=fleet_request(SPOT)), "", 0.6, id="nobody-says-why"),
        pytest.param(gone(600, request=fleet_request(SPOT), left_until=after(660)), "", 0.0, id="left-and-on-time"),
        pytest.param(gone(600, request=fleet_request(SPOT), left_until=after(700)), "", 0.0, id="left-and-sooner"),
        pytest.param(gone(600, request=fleet_request(SPOT), left_until=after(660)), None, 0.6, id="left-and-not-asked"),
        pytest.param(gone(600, request=fleet_request(SPOT), left_until=after(781)), "", 0.6, id="before-the-warning"),
        pytest.param(gone(600, request=fleet_request(SPOT), left_until=after(600)), "", 0.6, id="left-and-ended-by-us"),
        pytest.param(
            gone(600, request=fleet_request(SPOT), left_until=after(660)),
            "Client.InstanceInitiatedShutdown: x",
            0.6,
            id="left-and-ended-by-itself",
        ),
        pytest.param(gone(60, registered_at=None), "Client.InternalError: KMS", 0.0, id="ended-during-its-launch"),
        pytest.param(gone(60, registered_at=NOW), "Client.InternalError: KMS", 0.06, id="a-reason-of-launches-later"),
        pytest.param(
            gone(60, registered_at=None), "Client.UserInitiatedShutdown: x", 0.06, id="ended-before-it-joined"
        ),
        pytest.param(
            gone(600, at=700, request=fleet_request(SPOT), beside_usd_per_hour=3.6), TAKEN, 0.7, id="but-its-volume"
        ),
    ],
)
def test_what_ec2_takes_away_in_the_first_hour_of_spot_is_not_billed(charged: Machine, reason: str, usd: float):
    assert charges_of(charged, (), after(9_999), reason)["resnet-1"].usd == pytest.approx(usd)


def test_one_that_ended_unseen_is_billed_until_it_is_gone():
    assert not is_free(gone(600, request=fleet_request(SPOT), ended_at=None), TAKEN)


def test_the_price_of_the_volume_and_the_address():
    assert (usd_beside(0), usd_beside(100)) == (pytest.approx(0.005), pytest.approx(0.005 + 8 / 730))
    assert usd_beside(100, 4_000, 250) == pytest.approx(0.005 + 18 / 730)
    assert usd_beside(100, 4_000, 250, 0.16) == pytest.approx(0.005 + 36 / 730)


def test_each_day_has_what_was_paid_on_it_and_all_of_them_are_the_charge():
    midnight = NOW.replace(hour=0, minute=0, second=0) + timedelta(days=1)
    launched = midnight - timedelta(hours=1)
    spot = replace(
        gone(0, request=fleet_request(SPOT), beside_usd_per_hour=0.5, on_demand={"g5.xlarge": 4.0}),
        offering=SPOT.offering,
        holdings=(Holding(launched, {"a": 1.0}), Holding(midnight + timedelta(minutes=30), {"a": 0.5, "b": 0.5})),
        paid_since=launched,
        ended_at=midnight + timedelta(hours=1),
        state_since=midnight + timedelta(hours=25),
    )
    prices = ((launched, 1.0), (midnight, 3.0))
    days = days_of(spot, prices, after(0))
    first, second, third = (midnight.date() + timedelta(days=each) for each in (-1, 0, 1))
    assert days == {
        "a": (
            DayCost(first, 1.5, 4.5, 1.0),
            DayCost(second, pytest.approx(3.0 * 0.75 + 0.5 * 12.25), pytest.approx(4.0 * 0.75 + 0.5 * 12.25), 0.75),
            DayCost(third, 0.25, 0.25, 0.0),
        ),
        "b": (
            DayCost(second, pytest.approx(0.75 + 0.5 * 11.75), pytest.approx(1.0 + 0.5 * 11.75), 0.25),
            DayCost(third, 0.25, 0.25, 0.0),
        ),
    }
    for job_id, charge in charges_of(spot, prices, after(0)).items():
        assert sum(each.usd for each in days[job_id]) == pytest.approx(charge.usd)
        assert sum(each.on_demand_usd for each in days[job_id]) == pytest.approx(charge.on_demand_usd)
        assert sum(each.hours for each in days[job_id]) == pytest.approx(charge.hours)


def test_hours_of_an_unknown_price_are_counted_and_a_machine_that_nobody_pays_has_no_days():
    unpriced = gone(1_800, usd_per_hour=0.0)
    ((day,),) = days_of(unpriced, (), after(9)).values()
    assert (day.usd, day.hours, day.unpriced_hours) == (0.0, 0.5, 0.5)
    assert days_of(replace(unpriced, holdings=None), (), after(9)) == {}
    assert days_of(replace(unpriced, paid_since=None), (), after(9)) == {}


def test_a_day_is_one_of_utc():
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    elsewhere = timezone(timedelta(hours=-5))
    since, until = ((midnight + timedelta(hours=each)).astimezone(elsewhere) for each in (-1, 24))
    assert list(days_between(since, until)) == [(since, midnight), (midnight, midnight + timedelta(days=1))]
    assert list(days_between(until, since)) == []


def test_a_reserved_machine_saves_nothing_and_runs_on_at_the_price_on_demand():
    reservation = Reservation(
        "cr-1", ReservationType.ON_DEMAND, "g5.xlarge", "us-east-1a", "active", ends_at=after(3_600)
    )
    reserved = override(usd_per_hour=0.0, purchase=PurchaseOption.RESERVED)
    request = replace(fleet_request(reserved), reservation=reservation)
    facts = {"usd_per_hour": 0.0, "offering": reserved.offering, "on_demand": {"g5.xlarge": 4.0}}
    fields = {"request": request, "beside_usd_per_hour": 0.5, **facts}

    assert charges_of(gone(3_000, **fields), (), after(9_999))["resnet-1"] == Charge("m-1", 0.5 * 5 / 6, 0.5 * 5 / 6)
    assert charges_of(gone(7_200, **fields), (), after(9_999))["resnet-1"] == Charge("m-1", 5.0, 5.0)
    block = replace(request, reservation=replace(reservation, type=ReservationType.CAPACITY_BLOCK))
    assert charges_of(gone(7_200, **fields | {"request": block}), (), after(9_999))["resnet-1"].usd == 1.0


def test_why_it_ended_matters_in_the_first_hour_of_spot_and_before_it_joined():
    spot = fleet_request(SPOT)
    assert may_be_free(gone(60, registered_at=None))
    assert not may_be_free(gone(60, registered_at=NOW))
    assert may_be_free(gone(60, registered_at=NOW, request=spot))
    assert not may_be_free(gone(3_600, registered_at=NOW, request=spot))


def test_what_costs_nothing_is_no_upper_limit():
    taken = gone(600, request=fleet_request(SPOT))
    assert not charges_of(taken, (), after(9_999), TAKEN)["resnet-1"].is_limit
    assert charges_of(taken, (), after(9_999))["resnet-1"].is_limit
