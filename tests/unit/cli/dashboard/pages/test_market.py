"""/market."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from fakes.builders import make_capacity_failure, make_instance_type, make_offering, make_offering_key, make_spot_pool
from fakes.cli_machines import own_machine
from fakes.dashboard_pages import HOSTILE, Pages, text_of
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord, granted, interrupted
from relaunch.core.offerings.capacity_memory import quota_scope
from relaunch.core.offerings.reservations import Reservation, ReservationType
from relaunch.core.offerings.spot_runs import Observed, SpotRun, pool_hours

SPOT = PurchaseOption.SPOT
IN_A = make_offering_key(zone="us-east-1a")
L4 = make_instance_type("g6.xlarge", accelerator_model="L4")
FOUR_L4 = replace(L4, name="g6.12xlarge", gpu_count=4, logical_gpu_count=4)


def offer(session, *offerings):
    session.offerings.available = offerings


def row_of(text, where, end="us-east-1"):
    """Return what a row shows, up to the next one."""
    return text.partition(f" {where} ")[2].partition(f" {end}")[0]


def test_places_have_prices_saving_and_the_usual_interruption_rate(session):
    offer(
        session,
        own_machine(L4, "us-east-1a", 0.40, interruption_band=1, placement_score=10),
        replace(own_machine(L4, "us-east-1a", 1.0), purchase=PurchaseOption.ON_DEMAND),
        own_machine(L4, "us-east-1b", 0.30),
    )
    text = Pages(session).text("/market")

    assert "L4 one from $0.3000 an hour" in text
    assert "g6.xlarge 1 × L4, 22 GiB each, 4 vCPU, 16 GiB us-east-1b $0.3000 $1.0000 70%" in text  # noqa: RUF001
    assert row_of(text, "us-east-1a", "</main>").startswith(
        "$0.4000 $1.0000 60% every 3d08h usual: 5 to 10 % a month in this region, placement score 10 of 10 not tried"
    )
    assert "every 10h00m usual: the worst region's share not tried recently" in row_of(text, "us-east-1b")
    assert "Nothing: no launch has found a pool, a quota or a subnet full recently." in text
    assert "spot prices of EC2, now" in text


def test_a_rate_rests_on_runs_where_there_were_some(session):
    offer(session, own_machine("g5.xlarge", "us-east-1a", 0.40))
    now = session.clock.now()
    session.deps.capacity.count_run(SpotRun(IN_A, "a", Observed.INTERRUPTION, now, hours=30.0))

    text = Pages(session).text("/market")

    assert "observed: 1 in 30.0 hours of the last 5 days usual, every 10h00m: the worst region's share" in text
    assert "interrupted, and nothing has started there since" in text


def test_the_cheapest_for_an_accelerator_is_first_and_inference_is_last(session):
    inference = make_instance_type("inf2.xlarge", accelerator_manufacturer="AWS", accelerator_model="Inferentia2")
    offer(
        session,
        own_machine(inference, "us-east-1a", 0.01),
        own_machine("g5.xlarge", "us-east-1a", 0.30),
        own_machine(L4, "us-east-1a", 0.40),
        own_machine(FOUR_L4, "us-east-1a", 1.00),
        own_machine(make_instance_type("x1.large", accelerator_manufacturer="AMD"), "us-east-1a", 0.01),
    )
    text = Pages(session).text("/market").partition("seconds.")[2]

    names = ["L4", "g6.12xlarge", "g6.xlarge", "A10G", "g5.xlarge", "Inferentia2", "inf2.xlarge"]
    places = [text.index(name) for name in names]
    assert places == sorted(places)
    assert "x1.large" not in text


def test_what_is_avoided_is_said_plainly_with_why_and_until_when(session):
    offer(session, own_machine("g5.xlarge", "us-east-1a", 0.40), own_machine("g5.xlarge", "us-east-1b", 0.40))
    now = session.clock.now()
    capacity = session.deps.capacity
    until = now + timedelta(minutes=8)
    short = make_capacity_failure(offering=IN_A, reason="EC2 has none", at=now, until=until, is_shortage=True)
    full = make_capacity_failure(
        offering=quota_scope("g5.xlarge", SPOT), reason="full", at=now, until=now + timedelta(minutes=5), vcpus=4
    )
    for failure in (short, full):
        capacity.remember(failure)

    text = Pages(session).text("/market")

    assert "Avoided now 2" in text
    assert '"All G and VT Spot Instance Requests" (L-3819A6DF) with 4 vCPUs or more full' in text
    assert f"g5.xlarge spot us-east-1a EC2 has none {now:%H:%M:%S} {until:%H:%M:%S}" in text
    place = text.partition("16 GiB us-east-1a ")[2]
    assert f"spot avoided until {until:%H:%M:%S} EC2 has none" in place.partition("us-east-1b")[0]
    assert f"spot avoided until {now + timedelta(minutes=5):%H:%M:%S} full" in place.partition("us-east-1b")[2]


def test_what_is_avoided_no_longer_is_left_out_at_once(session):
    offer(session, own_machine("g5.xlarge", "us-east-1a", 0.40))
    now = session.clock.now()
    session.deps.capacity.remember(make_capacity_failure(offering=IN_A, at=now, until=now + timedelta(seconds=5)))
    pages = Pages(session)

    assert "spot avoided" in pages.text("/market")
    session.clock.advance(6)
    text = pages.text("/market")

    assert "Nothing: no launch has found a pool" in text
    assert "spot avoided" not in text


def test_what_launches_have_shown_of_a_pool_and_what_it_taught(session):
    offer(session, own_machine("g5.xlarge", "us-east-1a", 0.40), own_machine("g5.xlarge", "us-east-1b", 0.40))
    now = session.clock.now()
    hours = pool_hours(now)
    record = interrupted(granted(PoolRecord("a"), hours - 3), hours - 3, hours - 1)
    session.deps.capacity.save_pool(make_spot_pool(IN_A, record=record))
    session.deps.capacity.save_pool(make_spot_pool(make_offering_key(zone="us-east-1b")))

    html = Pages(session).html("/market")
    text = text_of(html)

    at = f"{now - timedelta(hours=1):%H:%M:%S}"
    assert f"no capacity at {at}, since {at} lost 0.98 times as often as usual, by 1 recent one" in text
    assert f"had capacity at {now:%H:%M:%S}" in text
    assert "Without capacity when they were last tried: g5.xlarge in us-east-1a" in text
    assert '<a href="/market/g5.xlarge">g5.xlarge in us-east-1a</a>' in html


def test_a_shortage_of_yesterday_is_likely_over(session):
    offer(session, own_machine("g5.xlarge", "us-east-1a", 0.40))
    record = interrupted(PoolRecord("a"), pool_hours(session.clock.now()) - 1, pool_hours(session.clock.now()))
    session.deps.capacity.save_pool(make_spot_pool(IN_A, record=record))
    session.clock.advance(timedelta(hours=23))

    text = Pages(session).text("/market")

    assert "had none at" in text
    assert "Without capacity" not in text


def test_capacity_providers_and_reservations_are_places_too(session):
    reservation = Reservation("cr-1", ReservationType.CAPACITY_BLOCK, "g5.xlarge", "us-east-1c", "active", 2, 1)
    reserved = replace(own_machine("g5.xlarge", "us-east-1c", 0.0), purchase=PurchaseOption.RESERVED)
    offer(
        session,
        make_offering(offered_zones=("us-east-1a", "us-east-1b")),
        make_offering(purchase=PurchaseOption.ON_DEMAND),
        replace(reserved, reservation=reservation),
    )
    session.deps.capacity.save_pool(make_spot_pool(IN_A))
    session.deps.capacity.save_pool(make_spot_pool(make_offering_key(zone="us-east-1d")))

    text = Pages(session).text("/market")

    assert "g5-xlarge-spot (us-east-1a b) $0.4000 $1.0000 60%" in text
    assert "had capacity in us-east-1a" in text
    assert "us-east-1d" not in text
    assert "g5-xlarge-on-demand - $1.0000 - - not tried recently" in text
    assert "Capacity Block cr-1 in us-east-1c, 1 free - reserved" in text


@pytest.mark.parametrize(
    ("query", "names"), [("model=l4", {"g6.xlarge", "g6.12xlarge"}), ("type=12x", {"g6.12xlarge"}), ("type=p9", set())]
)
def test_models_and_types_can_be_chosen(session, query, names):
    offer(session, *(own_machine(each, "us-east-1a", 0.4) for each in ("g5.xlarge", L4, FOUR_L4)))
    html = Pages(session).html(f"/market?{query}")

    assert {each for each in ("g5.xlarge", "g6.xlarge", "g6.12xlarge") if f">{each}</a>" in html} == names
    assert names or "Nothing that is on offer matches" in html


def test_a_model_that_is_not_on_offer(session):
    response = Pages(session).answer("/market?model=H101")

    assert response.status == 400
    assert "no accelerator 'H101' is on offer" in text_of(response.body.decode())


def test_a_hundred_places_are_shown(session):
    types = [make_instance_type(f"g5.{number}xlarge") for number in range(60)]
    offer(session, *(own_machine(each, zone, 0.4) for each in types for zone in ("us-east-1a", "us-east-1b")))
    html = Pages(session).html("/market")

    assert html.count('data-label="Where"') == 100
    assert "10 more types, dearer for each accelerator" in html


def test_prices_are_read_once_a_minute_and_capacity_every_15_seconds(session):
    pages = Pages(session)
    capacity = session.deps.capacity
    offerings = session.offerings
    with (
        patch.object(capacity, "load_capacity", wraps=capacity.load_capacity) as load,
        patch.object(offerings, "offerings", wraps=offerings.offerings) as offered,
    ):
        for _ in range(7):
            pages.html("/market")
            session.clock.advance(9)
    assert load.call_count == 4
    assert offered.call_count == 1


def test_what_others_named_is_text(session):
    now = session.clock.now()
    offer(session, make_offering(capacity_provider=HOSTILE, offered_zones=(HOSTILE,)))
    failure = make_capacity_failure(reason=HOSTILE, at=now, until=now + timedelta(hours=1), capacity_provider=HOSTILE)
    session.deps.capacity.remember(failure)

    html = Pages(session).html(f"/market?type={'%3Cscript%3E'}") + Pages(session).html("/market")

    assert "<script>alert" not in html
    assert "<script>" not in html.partition("<main")[2]
    assert "\x1b" not in html
    assert "&lt;script&gt;alert(1)" in html
