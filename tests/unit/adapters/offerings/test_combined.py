from datetime import timedelta

from fakes.builders import NOW
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.adapters.offerings.capacity_providers import CapacityProviderOfferings
from relaunch.adapters.offerings.combined import CombinedOfferings
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings, OwnMachines
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch.ports import CapacityProviderOffer, SpotPriceSource

PRICED, SCORED = Origin("AWS Price List", NOW - timedelta(hours=3)), Origin("EC2", NOW - timedelta(hours=1))
SNAPSHOT = (
    OfferingsSnapshot("us-east-1")
    .with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1a",), "g6.xlarge": ("us-east-1a",)}, PRICED)
    .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 1.0, "g6.xlarge": 0.8}, PRICED)
    .with_part(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 9}, SCORED)
)
PROVIDERS = (CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT),)


def combined(spot_prices: SpotPriceSource) -> CombinedOfferings:
    log = ListLog()
    snapshot = CurrentSnapshot(FakeSnapshots(SNAPSHOT), "us-east-1", log)
    return CombinedOfferings(
        CurrentRegionalOfferings(snapshot, spot_prices, log, OwnMachines(frozenset({"us-east-1a"}), 100)),
        CapacityProviderOfferings(PROVIDERS, spot_prices, snapshot, log),
    )


def test_machines_of_our_own_and_capacity_providers_are_offered_side_by_side() -> None:
    offerings = combined(FakeSpotPrices()).offerings(NOW)

    assert [(str(each.key), each.capacity_provider, each.is_own_machine) for each in offerings] == [
        ("g5.xlarge spot us-east-1a", None, True),
        ("g5.xlarge on-demand us-east-1a", None, True),
        ("g6.xlarge spot us-east-1a", None, True),
        ("g6.xlarge on-demand us-east-1a", None, True),
        ("g5.xlarge spot", "g5-spot", False),
    ]
    assert {each.interruption_rate for each in offerings if each.placement_score == 9} == {
        offerings[0].interruption_rate
    }
    assert offerings[0].placement_score == offerings[-1].placement_score == 9


def test_the_origins_of_all_sources_are_told_once_each() -> None:
    source = combined(FakeSpotPrices())

    assert source.price_origins(NOW) == (
        PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, PRICED),
        PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW)),
        PriceOrigin(SnapshotPart.PLACEMENT_SCORES, SCORED),
    )
    assert source.snapshot(NOW) == SNAPSHOT
    assert source.catalogue() == load_catalogue()
