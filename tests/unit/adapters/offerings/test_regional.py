from datetime import timedelta

import pytest

from fakes.builders import NOW, make_instance_type
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.adapters.offerings.bundled import bundled_snapshot, load_catalogue
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings, OwnMachines, RegionalOfferings
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch.ports import TransientError

PRICED, PRICED_SPOT = Origin("AWS Price List", NOW - timedelta(hours=3)), Origin("EC2", NOW)
SNAPSHOT = (
    OfferingsSnapshot("us-east-1")
    .with_part(SnapshotPart.INSTANCE_TYPES, {"g9.xlarge": make_instance_type("g9.xlarge")}, PRICED)
    .with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1a", "us-east-1b"), "g9.xlarge": ("us-east-1a",)}, PRICED)
    .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 1.0}, PRICED)
    .with_part(SnapshotPart.SPOT_PRICES, {"g5.xlarge": {"us-east-1a": 0.4}}, PRICED_SPOT)
)


def test_each_type_is_offered_in_each_of_its_zones_by_both_purchase_options() -> None:
    offerings = RegionalOfferings(SNAPSHOT).offerings(NOW)

    assert [str(each.key) for each in offerings] == [
        "g5.xlarge spot us-east-1a",
        "g5.xlarge on-demand us-east-1a",
        "g5.xlarge spot us-east-1b",
        "g5.xlarge on-demand us-east-1b",
        "g9.xlarge spot us-east-1a",
        "g9.xlarge on-demand us-east-1a",
    ]
    assert offerings[0] == Offering(
        instance_type=load_catalogue()["g5.xlarge"],
        purchase=PurchaseOption.SPOT,
        zone="us-east-1a",
        price_usd_per_hour=0.4,
        price_at=PRICED_SPOT.at,
        on_demand_usd_per_hour=1.0,
        interruption_band=4,
    )


def test_a_price_that_is_not_known_is_none() -> None:
    _, _, spot, on_demand, new, _ = RegionalOfferings(SNAPSHOT).offerings(NOW)

    assert (spot.price_usd_per_hour, spot.price_at, spot.expected_usd_per_hour) == (None, None, 1.0)
    assert (on_demand.price_usd_per_hour, on_demand.price_at) == (1.0, PRICED.at)
    assert new.expected_usd_per_hour is None


def test_a_type_that_nothing_is_known_of_is_not_offered() -> None:
    unknown = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ZONES, {"x9.large": ("us-east-1a",)}, PRICED)

    assert RegionalOfferings(unknown).offerings(NOW) == ()


def test_prices_say_where_they_are_from() -> None:
    assert RegionalOfferings(SNAPSHOT).price_origins(NOW) == (
        PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, PRICED),
        PriceOrigin(SnapshotPart.SPOT_PRICES, PRICED_SPOT),
    )


def test_a_region_can_be_planned_for_with_nothing_but_what_is_bundled() -> None:
    source = RegionalOfferings(bundled_snapshot("us-east-1"))

    offerings = source.offerings(NOW)

    (t4,) = {each.on_demand_usd_per_hour for each in offerings if each.instance_type.name == "g4dn.xlarge"}
    assert t4 == 0.526
    assert len(source.price_origins(NOW)) == 1
    assert {each.instance_type.name for each in offerings} <= load_catalogue().keys()


@pytest.mark.parametrize(("region", "ratio"), [("us-east-1", 0.6 / 0.526), ("sa-east-1", None)])
def test_spot_is_held_against_no_on_demand_price_of_another_region(region: str, ratio: float | None) -> None:
    zones = {"g4dn.xlarge": (f"{region}a", f"{region}b")}
    prices = {"g4dn.xlarge": {f"{region}a": 0.6}}
    snapshot = bundled_snapshot(region).with_part(SnapshotPart.ZONES, zones, PRICED)
    source = RegionalOfferings(snapshot.with_part(SnapshotPart.SPOT_PRICES, prices, PRICED_SPOT))

    spot, on_demand, unpriced, _ = source.offerings(NOW)

    assert spot.spot_ratio == (None if ratio is None else pytest.approx(ratio))
    assert (spot.expected_usd_per_hour, on_demand.expected_usd_per_hour) == (0.6, 0.526)
    assert unpriced.expected_usd_per_hour == 0.526


def current(
    spot_prices: FakeSpotPrices,
    stored: OfferingsSnapshot | None = SNAPSHOT,
    machines: OwnMachines | None = None,
) -> CurrentRegionalOfferings:
    log = ListLog()
    snapshot = CurrentSnapshot(FakeSnapshots(stored), "us-east-1", log)
    return CurrentRegionalOfferings(snapshot, spot_prices, log, machines)


def test_spot_prices_of_now_replace_those_of_the_snapshot() -> None:
    source = current(FakeSpotPrices({("g5.xlarge", "us-east-1b"): 0.35}))

    prices = [each.price_usd_per_hour for each in source.offerings(NOW) if each.purchase is PurchaseOption.SPOT]

    assert prices == [None, 0.35, None]
    assert source.price_origins(NOW)[1] == PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW))


def test_without_an_answer_of_ec2_the_snapshots_spot_prices_are_taken_with_their_age() -> None:
    asked = FakeSpotPrices()
    asked.failure = TransientError("throttled")
    source = current(asked)

    assert source.offerings(NOW) == RegionalOfferings(SNAPSHOT).offerings(NOW)
    assert source.price_origins(NOW)[1] == PriceOrigin(SnapshotPart.SPOT_PRICES, PRICED_SPOT)
    assert source.catalogue() == load_catalogue()


def test_quotas_count_for_all_types_too() -> None:
    read = Origin("Service Quotas", NOW)
    stored = SNAPSHOT.with_part(SnapshotPart.QUOTAS, {"L-3819A6DF": 8.0}, read)
    source = current(FakeSpotPrices(), stored)

    assert source.snapshot(NOW).vcpus_by_quota == {"L-3819A6DF": 8.0}
    assert source.price_origins(NOW)[-1] == PriceOrigin(SnapshotPart.QUOTAS, read)
    assert RegionalOfferings(stored).snapshot(NOW) == stored


def test_scores_are_those_of_machines_of_our_own_and_of_no_plan_without_a_stack() -> None:
    scored = Origin("EC2", NOW)
    stored = SNAPSHOT.with_part(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 9}, scored)

    assert PriceOrigin(SnapshotPart.PLACEMENT_SCORES, scored) in RegionalOfferings(stored, MACHINES).price_origins(NOW)
    assert SnapshotPart.PLACEMENT_SCORES not in [each.part for each in RegionalOfferings(stored).price_origins(NOW)]


MACHINES = OwnMachines(frozenset({"us-east-1b", "us-east-1f"}), disk_gib=200)


def test_machines_of_our_own_are_offered_where_there_is_a_subnet_for_them() -> None:
    scored = SNAPSHOT.with_part(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 9}, PRICED)

    spot, on_demand = RegionalOfferings(scored, MACHINES).offerings(NOW)

    assert spot == Offering(
        instance_type=load_catalogue()["g5.xlarge"],
        purchase=PurchaseOption.SPOT,
        zone="us-east-1b",
        on_demand_usd_per_hour=1.0,
        interruption_band=4,
        placement_score=9,
        disk_gib=200,
        is_own_machine=True,
    )
    assert (on_demand.purchase, on_demand.price_usd_per_hour) == (PurchaseOption.ON_DEMAND, 1.0)
    assert (on_demand.placement_score, on_demand.disk_gib, on_demand.is_own_machine) == (None, 200, True)


@pytest.mark.parametrize("failure", [None, TransientError("throttled")])
def test_machines_of_our_own_are_that_with_current_prices_and_with_those_of_the_snapshot(failure) -> None:
    asked = FakeSpotPrices({("g5.xlarge", "us-east-1b"): 0.35})
    asked.failure = failure
    source = current(asked, machines=MACHINES)

    assert [(str(each.key), each.price_usd_per_hour, each.is_own_machine) for each in source.offerings(NOW)] == [
        ("g5.xlarge spot us-east-1b", None if failure else 0.35, True),
        ("g5.xlarge on-demand us-east-1b", 1.0, True),
    ]


def test_without_a_subnet_no_machine_is_offered() -> None:
    assert current(FakeSpotPrices(), machines=OwnMachines(frozenset(), 100)).offerings(NOW) == ()
