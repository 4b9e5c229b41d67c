from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_instance_type
from relaunch.core.selection.selection import explain_rows
from unit.core.selection.offered import A10G, FOUR_A10G, ON_DEMAND, ONE_GPU, SPOT, T4, needing_gpu, offered, selected


def test_equal_prices_are_ordered_by_zones_then_by_name() -> None:
    two_zones = [offered(T4, zone=zone) for zone in ("us-east-1a", "us-east-1b")]
    named = offered(FOUR_A10G, usd_per_hour_by_zone=dict.fromkeys(("us-east-1a", "us-east-1b", "us-east-1c"), 0.4))
    one_zone = [offered(make_instance_type(name), zone="us-east-1a") for name in ("g6.xlarge", "g5.xlarge")]

    selection = selected(ONE_GPU, *one_zone, *two_zones, named)

    assert [str(offering.key) for offering in selection.kept] == [
        "g5.12xlarge on-demand",
        "g4dn.xlarge on-demand us-east-1a",
        "g4dn.xlarge on-demand us-east-1b",
        "g5.xlarge on-demand us-east-1a",
        "g6.xlarge on-demand us-east-1a",
    ]


def test_of_equal_prices_a_type_that_is_offered_in_more_zones_is_first() -> None:
    twice = [offered(make_instance_type("g6.xlarge"), zone=zone) for zone in ("us-east-1a", "us-east-1b")]
    once = offered(make_instance_type("g5.xlarge"), zone="us-east-1a")

    assert selected(ONE_GPU, once, *twice).kept == (*twice, once)


def test_of_equal_prices_a_rejected_offering_with_known_zones_is_first() -> None:
    anywhere = offered(make_instance_type("g5.xlarge"))
    known = offered(make_instance_type("g6.xlarge"), usd_per_hour_by_zone={"us-east-1a": 0.4})

    rejected = selected(needing_gpu(count=8), anywhere, known).rejected

    assert [each.offering for each in rejected] == [known, anywhere]


def test_of_equal_offerings_the_one_without_a_zone_then_the_first_provider_by_name_comes_first() -> None:
    unnamed, first, second = (offered(A10G, capacity_provider=name) for name in (None, "A", "B"))
    zoned = offered(A10G, zone="A", capacity_provider="A")

    assert selected(ONE_GPU, zoned, second, first, unnamed).kept == (unnamed, first, second, zoned)


def test_of_equal_prices_a_machine_of_our_own_is_first_even_with_a_worse_score_and_fewer_zones() -> None:
    own = offered(T4, SPOT, zone="us-east-1b", capacity_provider=None, is_own_machine=True)
    provider = offered(
        A10G, SPOT, placement_score=9, usd_per_hour_by_zone=dict.fromkeys(("us-east-1a", "us-east-1b"), 0.4)
    )

    assert selected(ONE_GPU, provider, own).kept == (own, provider)


def test_a_cheaper_capacity_provider_is_before_a_machine_of_our_own() -> None:
    own = offered(A10G, SPOT, zone="us-east-1a", capacity_provider=None, is_own_machine=True)
    provider = offered(A10G, SPOT, price_usd_per_hour=0.39)

    assert selected(ONE_GPU, own, provider).kept == (provider, own)


def test_a_machine_of_our_own_is_not_paid_for_after_its_last_task() -> None:
    an_hour = replace(ONE_GPU, estimated_duration=timedelta(hours=1))
    own = offered(A10G, zone="us-east-1a", capacity_provider=None, is_own_machine=True, price_usd_per_hour=1.1)
    provider = offered(A10G)

    assert selected(an_hour, provider, own).kept == (own, provider)
    assert selected(an_hour, provider, own).chosen == own
    assert selected(ONE_GPU, provider, own).kept == (provider, own)


def test_a_type_is_chosen_from_both_if_only_one_of_them_is_kept() -> None:
    own = offered(A10G, SPOT, zone="us-east-1a", capacity_provider=None, is_own_machine=True, disk_gib=100)
    provider = offered(A10G, SPOT, disk_gib=500)

    assert selected(replace(ONE_GPU, disk_gib=200), own, provider).chosen == provider


def test_with_an_estimated_duration_the_order_is_that_of_expected_cost() -> None:
    a_day = replace(ONE_GPU, estimated_duration=timedelta(hours=24))
    no_checkpoint = replace(a_day, checkpoint_uri=None)
    spot, on_demand = offered(A10G, SPOT), offered(A10G, ON_DEMAND)

    assert selected(a_day, on_demand, spot).kept == (spot, on_demand)
    assert selected(no_checkpoint, on_demand, spot).kept == (on_demand, spot)
    assert selected(replace(no_checkpoint, estimated_duration=None), on_demand, spot).kept == (spot, on_demand)


def test_a_calmer_market_may_be_dearer() -> None:
    definition = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri=None)
    cheap = offered(A10G, SPOT, price_usd_per_hour=0.40, interruptions_per_hour=0.1)
    calm = offered(T4, SPOT, price_usd_per_hour=0.45, interruptions_per_hour=0.01)

    selection = selected(definition, cheap, calm)

    assert selection.kept == (calm, cheap)
    costs = [row["expected_cost_usd"] for row in explain_rows(selection)]
    assert costs == [pytest.approx(4.90, abs=0.05), pytest.approx(7.12, abs=0.05)]


def test_of_two_zones_of_one_type_the_dearer_but_calmer_one_may_be_chosen() -> None:
    definition = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri=None)
    wild = offered(A10G, SPOT, zone="us-east-1a", price_usd_per_hour=0.40, interruptions_per_hour=0.2)
    calm = offered(A10G, SPOT, zone="us-east-1b", price_usd_per_hour=0.45, interruptions_per_hour=0.01)

    selection = selected(definition, wild, calm)

    assert selection.chosen == calm
    assert selection.kept == (calm, wild)


def test_of_equal_prices_the_one_with_better_odds_is_first() -> None:
    likely, unlikely, unknown = (
        offered(make_instance_type(name), SPOT, placement_score=score)
        for name, score in (("g6.xlarge", 9), ("g5.xlarge", 2), ("g5.2xlarge", None))
    )

    assert selected(ONE_GPU, unlikely, unknown, likely).kept == (likely, unlikely, unknown)


def test_unknown_odds_count_as_the_worst() -> None:
    unknown, worst = (
        offered(make_instance_type(name), SPOT, placement_score=score)
        for name, score in (("g5.2xlarge", None), ("g5.xlarge", 1))
    )

    assert selected(ONE_GPU, unknown, worst).kept == (unknown, worst)


def test_a_dearer_machine_of_a_market_with_better_odds_is_expected_to_cost_less() -> None:
    hours = replace(ONE_GPU, estimated_duration=timedelta(hours=10), checkpoint_uri="s3://acme-checkpoints/resnet/")
    scarce = offered(A10G, SPOT, price_usd_per_hour=0.400, placement_score=1)
    ample = offered(make_instance_type("g6.xlarge"), SPOT, price_usd_per_hour=0.405, placement_score=10)

    assert selected(hours, scarce, ample).kept == (ample, scarce)
    assert selected(ONE_GPU, scarce, ample).kept == (scarce, ample)


def test_the_price_of_disks_in_the_region_counts_in_the_cost() -> None:
    work = replace(ONE_GPU, estimated_duration=timedelta(hours=10), disk_gib=730, checkpoint_uri=None)
    usual, dear = (selected(work, offered(A10G, SPOT), **prices) for prices in ({}, {"gp3_usd_per_gib_month": 0.16}))

    costs = [explain_rows(each)[0]["expected_cost_usd"] for each in (usual, dear)]
    assert costs == [pytest.approx(each) for each in (costs[0], costs[0] * 0.56 / 0.48)]
