import pytest

from fakes.builders import NOW, make_definition
from fakes.sources import FakeSpotPrices, ListLog
from relaunch.adapters.aws.offerings import CapacityProviderOfferings
from relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices
from relaunch.core.accelerator import PurchaseOption
from relaunch.core.offering import Offering
from relaunch.core.selection import explain_rejection, select
from relaunch.core.terms import SelectionLimits
from relaunch.ports import CapacityProviderOffer, TransientError

SPOT = CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT)
ON_DEMAND = CapacityProviderOffer("g5-on-demand", "g5.xlarge", PurchaseOption.ON_DEMAND)


def offerings_of(*providers: CapacityProviderOffer, spot_prices: FakeSpotPrices | None = None) -> tuple[Offering, ...]:
    return CapacityProviderOfferings(providers, spot_prices or FakeSpotPrices(), ListLog()).offerings(NOW)


def test_an_on_demand_provider_costs_the_bundled_price_of_its_day() -> None:
    (offering,) = offerings_of(ON_DEMAND)

    assert offering == Offering(
        instance_type=load_catalogue()["g5.xlarge"],
        purchase=PurchaseOption.ON_DEMAND,
        price_usd_per_hour=1.006,
        price_at=load_on_demand_prices().at,
        on_demand_usd_per_hour=1.006,
        capacity_provider="g5-on-demand",
    )


def test_a_spot_provider_costs_what_its_dearest_zone_costs() -> None:
    prices = FakeSpotPrices(
        {("g5.xlarge", "us-east-1b"): 0.7, ("g5.xlarge", "us-east-1a"): 0.4, ("g6.xlarge", "us-east-1c"): 0.9}
    )

    (offering,) = offerings_of(SPOT, spot_prices=prices)

    assert (offering.zone, offering.zones) == (None, ("us-east-1a", "us-east-1b"))
    assert (offering.price_usd_per_hour, offering.price_at) == (0.7, NOW)
    assert offering.on_demand_usd_per_hour == 1.006


def test_without_spot_prices_spot_is_unpriced_and_reckoned_at_the_on_demand_price() -> None:
    prices, log = FakeSpotPrices(), ListLog()
    prices.failure = TransientError("EC2 is throttling")

    spot, on_demand = CapacityProviderOfferings((SPOT, ON_DEMAND), prices, log).offerings(NOW)

    assert (spot.price_usd_per_hour, spot.price_at, spot.expected_usd_per_hour) == (None, None, 1.006)
    assert on_demand.price_usd_per_hour == 1.006
    assert log.lines == [("spot-prices-unknown", {"reason": "EC2 is throttling"})]


def test_a_type_without_spot_prices_in_this_region_is_unpriced() -> None:
    (offering,) = offerings_of(SPOT, spot_prices=FakeSpotPrices({("g6.xlarge", "us-east-1a"): 0.3}))

    assert (offering.price_usd_per_hour, offering.zones) == (None, ())


def test_spot_prices_are_not_asked_for_when_no_provider_is_spot() -> None:
    prices, log = FakeSpotPrices(), ListLog()
    prices.failure = TransientError("not to be asked")

    CapacityProviderOfferings((ON_DEMAND,), prices, log).offerings(NOW)

    assert log.lines == []


def test_a_type_without_a_bundled_price_has_none() -> None:
    (offering,) = offerings_of(CapacityProviderOffer("trn2", "trn2.48xlarge", PurchaseOption.ON_DEMAND))

    assert (offering.expected_usd_per_hour, offering.price_at) == (None, None)


@pytest.mark.parametrize("name", ["g5.xlrage", "c5.large"])
def test_a_provider_of_an_unknown_type_is_rejected_by_name_and_hides_no_other(name: str) -> None:
    unknown = CapacityProviderOffer("odd", name, PurchaseOption.ON_DEMAND)

    offerings = offerings_of(unknown, ON_DEMAND)
    selection = select(make_definition(), None, offerings, {}, NOW, SelectionLimits())
    alone = select(make_definition(), None, offerings[:1], {}, NOW, SelectionLimits())

    assert [each.capacity_provider for each in selection.kept] == ["g5-on-demand"]
    assert f"{name} on-demand: it is not in the catalogue" in explain_rejection(alone)


def test_the_catalogue_is_the_bundled_one() -> None:
    source = CapacityProviderOfferings((), FakeSpotPrices(), ListLog())

    assert source.catalogue() is load_catalogue()
