from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_instance_type
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.adapters.offerings.bundled import load_catalogue, load_on_demand_prices
from relaunch.adapters.offerings.capacity_providers import CapacityProviderOfferings
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import explain_rejection, select
from relaunch.ports import CapacityProviderOffer, TransientError

SPOT = CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT)
ON_DEMAND = CapacityProviderOffer("g5-on-demand", "g5.xlarge", PurchaseOption.ON_DEMAND)
YESTERDAY = NOW - timedelta(hours=20)
OUTAGE = TransientError("EC2 is throttling")


class Region:
    """The source of offerings over fakes; `failing` says that EC2 cannot be asked."""

    def __init__(
        self,
        *providers: CapacityProviderOffer,
        prices: Mapping[tuple[str, str], float] | None = None,
        stored: OfferingsSnapshot | None = None,
        failing: bool = False,
    ) -> None:
        self.spot_prices, self.log = FakeSpotPrices(prices), ListLog()
        self.spot_prices.failure = OUTAGE if failing else None
        snapshot = CurrentSnapshot(FakeSnapshots(stored), "us-east-1", self.log)
        self.source = CapacityProviderOfferings(providers, self.spot_prices, snapshot, self.log)

    @property
    def offerings(self) -> tuple[Offering, ...]:
        return self.source.offerings(NOW)

    @property
    def origins(self) -> dict[SnapshotPart, Origin]:
        return {each.part: each.origin for each in self.source.price_origins(NOW)}


def snapshot_of(part: SnapshotPart, content: object) -> OfferingsSnapshot:
    return OfferingsSnapshot("us-east-1").with_part(part, content, Origin("AWS", YESTERDAY))


def scores_of(age: timedelta) -> OfferingsSnapshot:
    origin = Origin("EC2", NOW - age)
    return OfferingsSnapshot("us-east-1").with_part(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 8}, origin)


def test_an_on_demand_provider_costs_the_bundled_price_of_its_day_before_the_first_refresh() -> None:
    (offering,) = Region(ON_DEMAND).offerings

    assert offering == Offering(
        instance_type=load_catalogue()["g5.xlarge"],
        purchase=PurchaseOption.ON_DEMAND,
        price_usd_per_hour=1.006,
        price_at=load_on_demand_prices().at,
        on_demand_usd_per_hour=1.006,
        capacity_provider="g5-on-demand",
        offered_zones=tuple(f"us-east-1{letter}" for letter in "abcdf"),
    )


def test_an_on_demand_provider_costs_the_refreshed_price() -> None:
    region = Region(ON_DEMAND, stored=snapshot_of(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 0.9}))

    (offering,) = region.offerings

    assert (offering.price_usd_per_hour, offering.price_at, offering.on_demand_usd_per_hour) == (0.9, YESTERDAY, 0.9)
    assert region.origins == {SnapshotPart.ON_DEMAND_PRICES: Origin("AWS", YESTERDAY)}


def test_a_provider_of_reserved_instances_costs_nothing_more() -> None:
    region = Region(CapacityProviderOffer("blocks", "g5.xlarge", PurchaseOption.RESERVED, is_managed=True))

    (offering,) = region.offerings

    # AWS bills the fee of Managed Instances for what is reserved, too: 7.8 % of the on-demand price for G.
    fee = pytest.approx(1.006 * 0.078)
    assert (offering.price_usd_per_hour, offering.price_at) == (fee, None)
    assert (offering.purchase, offering.is_managed, offering.reservation) == (PurchaseOption.RESERVED, True, None)


def test_a_group_of_what_is_reserved_costs_nothing_more_and_ends_with_it() -> None:
    blocks = CapacityProviderOffer("blocks", "g5.xlarge", PurchaseOption.RESERVED, until=NOW, disk_gib=500)
    (offering,) = Region(blocks).offerings

    assert (offering.price_usd_per_hour, offering.on_demand_usd_per_hour) == (0.0, 1.006)
    assert (offering.reserved_until, offering.disk_gib) == (NOW, 500)


def test_managed_instances_cost_their_fee_beside_the_instance_in_each_zone() -> None:
    prices = {("g5.xlarge", "us-east-1b"): 0.7, ("g5.xlarge", "us-east-1a"): 0.4}
    managed = [replace(each, is_managed=True) for each in (SPOT, ON_DEMAND)]
    fee = 1.006 * 0.078

    spot, on_demand = Region(*managed, prices=prices).offerings

    assert spot.usd_per_hour_by_zone == {"us-east-1a": pytest.approx(0.4 + fee), "us-east-1b": pytest.approx(0.7 + fee)}
    assert spot.price_usd_per_hour == pytest.approx(0.7 + fee)
    assert on_demand.price_usd_per_hour == spot.on_demand_usd_per_hour == pytest.approx(1.006 + fee)


def test_zones_that_the_group_does_not_use_have_no_say() -> None:
    by_zone = {("g5.xlarge", f"us-east-1{end}"): usd for end, usd in (("a", 0.42), ("b", 0.44), ("f", 0.98))}
    capped = make_definition(max_price_usd_per_hour=0.6)

    for provider, is_kept in ((SPOT, False), (replace(SPOT, zones=("a", "b")), True)):
        (offering,) = Region(provider, prices=by_zone).offerings
        assert bool(select(capped, None, (offering,), {}, NOW, SelectionLimits()).kept) is is_kept

    assert (offering.price_usd_per_hour, offering.zones) == (0.44, ("us-east-1a", "us-east-1b"))
    assert offering.offered_zones == ("us-east-1a", "us-east-1b")


def test_a_zone_at_the_price_of_on_demand_rejects_no_provider_that_may_use_another() -> None:
    (mixed,) = Region(SPOT, prices={("g5.xlarge", "us-east-1a"): 0.42, ("g5.xlarge", "us-east-1f"): 0.98}).offerings
    (other,) = Region(SPOT, prices={("g5.xlarge", "us-east-1f"): 0.98}).offerings

    assert select(make_definition(), None, (mixed,), {}, NOW, SelectionLimits()).kept == (mixed,)
    assert select(make_definition(), None, (other,), {}, NOW, SelectionLimits()).last_filter == "spot-ratio"


def test_a_spot_provider_costs_what_its_dearest_zone_costs() -> None:
    prices = {("g5.xlarge", "us-east-1b"): 0.7, ("g5.xlarge", "us-east-1a"): 0.4, ("g6.xlarge", "us-east-1c"): 0.9}

    region = Region(SPOT, prices=prices)
    (offering,) = region.offerings

    assert (offering.zone, offering.zones) == (None, ("us-east-1a", "us-east-1b"))
    assert offering.usd_per_hour_by_zone == {"us-east-1a": 0.4, "us-east-1b": 0.7}
    assert (offering.price_usd_per_hour, offering.price_at) == (0.7, NOW)
    assert offering.on_demand_usd_per_hour == 1.006
    assert region.origins[SnapshotPart.SPOT_PRICES] == Origin("EC2", NOW)


def test_a_spot_provider_has_the_refreshed_score_of_its_type_and_on_demand_has_none() -> None:
    spot, on_demand = Region(SPOT, ON_DEMAND, stored=scores_of(timedelta(hours=6))).offerings

    assert (spot.placement_score, on_demand.placement_score) == (8, None)


def test_outdated_placement_scores_are_unknown() -> None:
    region = Region(SPOT, stored=scores_of(timedelta(hours=6, seconds=1)))

    assert region.offerings[0].placement_score is None
    assert SnapshotPart.PLACEMENT_SCORES not in region.origins
    assert region.source.snapshot(NOW).placement_scores == {}


def test_placement_scores_and_quotas_have_their_origins() -> None:
    asked = Origin("EC2", NOW - timedelta(hours=1))
    quotas = Origin("Service Quotas", NOW - timedelta(hours=2))
    stored = scores_of(timedelta(hours=1)).with_part(SnapshotPart.QUOTAS, {"L-3819A6DF": 8.0}, quotas)

    of_spot, of_on_demand = (Region(provider, stored=stored).origins for provider in (SPOT, ON_DEMAND))

    assert list(of_spot) == [
        SnapshotPart.ON_DEMAND_PRICES,
        SnapshotPart.SPOT_PRICES,
        SnapshotPart.PLACEMENT_SCORES,
        SnapshotPart.QUOTAS,
    ]
    assert (of_spot[SnapshotPart.PLACEMENT_SCORES], of_spot[SnapshotPart.QUOTAS]) == (asked, quotas)
    assert list(of_on_demand) == [SnapshotPart.ON_DEMAND_PRICES, SnapshotPart.QUOTAS]


def test_without_live_spot_prices_those_of_the_last_refresh_are_taken_with_their_age() -> None:
    stored = snapshot_of(SnapshotPart.SPOT_PRICES, {"g5.xlarge": {"us-east-1a": 0.3, "us-east-1b": 0.5}})
    region = Region(SPOT, stored=stored, failing=True)

    (offering,) = region.offerings

    assert (offering.price_usd_per_hour, offering.price_at) == (0.5, YESTERDAY)
    assert offering.zones == ("us-east-1a", "us-east-1b")
    assert region.origins[SnapshotPart.SPOT_PRICES] == Origin("AWS", YESTERDAY)
    assert region.log.lines[0] == ("spot-prices-not-live", {"reason": "EC2 is throttling"})


def test_without_any_spot_prices_spot_is_unpriced_and_reckoned_at_the_on_demand_price() -> None:
    region = Region(SPOT, ON_DEMAND, failing=True)

    spot, on_demand = region.offerings

    assert (spot.price_usd_per_hour, spot.price_at, spot.expected_usd_per_hour) == (None, None, 1.006)
    assert on_demand.price_usd_per_hour == 1.006
    assert SnapshotPart.SPOT_PRICES not in region.origins


def test_a_type_without_spot_prices_in_this_region_is_unpriced() -> None:
    (offering,) = Region(SPOT, prices={("g6.xlarge", "us-east-1a"): 0.3}).offerings

    assert (offering.price_usd_per_hour, offering.zones) == (None, ())


def test_spot_prices_are_not_asked_for_when_no_provider_is_spot() -> None:
    region = Region(ON_DEMAND, failing=True)

    assert len(region.offerings) == 1
    assert region.log.lines == []


def test_a_provider_may_use_the_zones_that_its_type_is_offered_in_as_far_as_they_are_known() -> None:
    zones = snapshot_of(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1b", "us-east-1a")})

    (refreshed,) = Region(ON_DEMAND, stored=zones).offerings
    (unknown,) = Region(ON_DEMAND, stored=snapshot_of(SnapshotPart.ZONES, {"g6.xlarge": ("us-east-1a",)})).offerings

    assert refreshed.offered_zones == ("us-east-1a", "us-east-1b")
    assert unknown.offered_zones == ()


def test_a_type_without_a_price_has_none() -> None:
    (offering,) = Region(CapacityProviderOffer("trn2", "trn2.48xlarge", PurchaseOption.ON_DEMAND)).offerings

    assert (offering.expected_usd_per_hour, offering.price_at) == (None, None)


def test_a_provider_of_a_type_that_only_ec2_knows_is_offered_as_ec2_describes_it() -> None:
    new = make_instance_type("g9.xlarge", accelerator_model="L9")
    stored = snapshot_of(SnapshotPart.INSTANCE_TYPES, {"g9.xlarge": new})

    (offering,) = Region(CapacityProviderOffer("g9", "g9.xlarge", PurchaseOption.SPOT), stored=stored).offerings

    assert offering.instance_type == new


@pytest.mark.parametrize("name", ["g5.xlrage", "c5.large"])
def test_a_provider_of_an_unknown_type_is_rejected_by_name_and_hides_no_other(name: str) -> None:
    unknown = CapacityProviderOffer("odd", name, PurchaseOption.ON_DEMAND)

    offerings = Region(unknown, ON_DEMAND).offerings
    selection = select(make_definition(), None, offerings, {}, NOW, SelectionLimits())
    alone = select(make_definition(), None, offerings[:1], {}, NOW, SelectionLimits())

    assert [each.capacity_provider for each in selection.kept] == ["g5-on-demand"]
    assert f"{name} on-demand: it is not in the catalogue" in explain_rejection(alone)


def test_the_catalogue_is_the_bundled_one() -> None:
    assert Region().source.catalogue() is load_catalogue()


def test_the_usual_interruption_rate_is_that_of_the_region() -> None:
    spot, on_demand = Region(*(replace(each, instance_type="inf2.xlarge") for each in (SPOT, ON_DEMAND))).offerings

    assert (spot.interruption_band, on_demand.interruption_band) == (0, None)
    assert spot.interruption_rate == pytest.approx(0.1 / 12)


@pytest.mark.parametrize(("region", "ratio"), [("us-east-1", 1.1 / 1.006), ("sa-east-1", None)])
def test_spot_of_a_group_is_held_against_no_on_demand_price_of_another_region(region: str, ratio: float | None) -> None:
    log = ListLog()
    prices = FakeSpotPrices({("g5.xlarge", f"{region}a"): 1.1})
    source = CapacityProviderOfferings(
        (SPOT, ON_DEMAND), prices, CurrentSnapshot(FakeSnapshots(None), region, log), log
    )

    spot, on_demand = source.offerings(NOW)

    assert spot.spot_ratio == (None if ratio is None else pytest.approx(ratio))
    assert (spot.expected_usd_per_hour, on_demand.expected_usd_per_hour) == (1.1, 1.006)
