from datetime import UTC, datetime, timedelta

import pytest
from botocore.stub import Stubber

from fakes.builders import NOW
from fakes.clock import FakeClock
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices, read_history
from relaunch.ports import TransientError

SERVICE = "ec2"
ASKED = {"InstanceTypes": ["g5.xlarge", "g6.xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": NOW}


def entry(instance_type: str, zone: str, price: str, minute: int) -> dict[str, object]:
    return {
        "InstanceType": instance_type,
        "AvailabilityZone": zone,
        "SpotPrice": price,
        "Timestamp": datetime(2026, 3, 14, 8, minute, tzinfo=UTC),
        "ProductDescription": "Linux/UNIX",
    }


def page(*entries: dict[str, object], token: str = "") -> dict[str, object]:
    return {"SpotPriceHistory": list(entries), "NextToken": token}


def test_the_newest_price_of_each_zone_is_taken_from_all_pages(stubber: Stubber) -> None:
    pages = [
        page(entry("g5.xlarge", "us-east-1a", "0.4567", 10), entry("g5.xlarge", "us-east-1b", "0.5", 5), token="2"),
        page(entry("g5.xlarge", "us-east-1a", "0.4", 50), entry("g6.xlarge", "us-east-1a", "0.3", 1), token="3"),
        page(entry("g5.xlarge", "us-east-1a", "0.9", 20)),
    ]
    for answer, asked in zip(pages, [ASKED, {**ASKED, "NextToken": "2"}, {**ASKED, "NextToken": "3"}], strict=True):
        stubber.add_response("describe_spot_price_history", answer, asked)

    prices = Ec2SpotPrices(stubber.client, FakeClock()).spot_prices(["g6.xlarge", "g5.xlarge", "g5.xlarge"])

    assert prices == {
        ("g5.xlarge", "us-east-1a"): (0.4, datetime(2026, 3, 14, 8, 50, tzinfo=UTC)),
        ("g5.xlarge", "us-east-1b"): (0.5, datetime(2026, 3, 14, 8, 5, tzinfo=UTC)),
        ("g6.xlarge", "us-east-1a"): (0.3, datetime(2026, 3, 14, 8, 1, tzinfo=UTC)),
    }


def test_prices_are_asked_for_once_in_ten_minutes(stubber: Stubber) -> None:
    clock = FakeClock()
    source = Ec2SpotPrices(stubber.client, clock)
    stubber.add_response("describe_spot_price_history", page(entry("g5.xlarge", "us-east-1a", "0.4", 10)))
    stubber.add_response("describe_spot_price_history", page(entry("g5.xlarge", "us-east-1a", "0.6", 40)))

    first = source.spot_prices(["g5.xlarge"])
    clock.advance(timedelta(minutes=9))
    kept = source.spot_prices(["g5.xlarge"])
    clock.advance(timedelta(minutes=1))
    renewed = source.spot_prices(["g5.xlarge"])

    assert first == kept
    assert renewed["g5.xlarge", "us-east-1a"][0] == 0.6


def test_prices_of_fewer_types_are_among_those_that_were_asked_for(stubber: Stubber) -> None:
    clock = FakeClock()
    source = Ec2SpotPrices(stubber.client, clock)
    of_both = page(entry("g5.xlarge", "us-east-1a", "0.4", 10), entry("g6.xlarge", "us-east-1a", "0.3", 10))
    stubber.add_response("describe_spot_price_history", of_both)
    stubber.add_response("describe_spot_price_history", page(entry("g6.xlarge", "us-east-1a", "0.2", 40)))

    source.spot_prices(["g6.xlarge", "g5.xlarge"])

    assert {key: price for key, (price, _) in source.spot_prices(["g6.xlarge"]).items()} == {
        ("g6.xlarge", "us-east-1a"): 0.3
    }
    clock.advance(timedelta(minutes=10))
    assert source.spot_prices(["g6.xlarge"])["g6.xlarge", "us-east-1a"][0] == 0.2


def test_a_failed_call_is_transient_and_not_repeated_within_a_minute(stubber: Stubber) -> None:
    clock = FakeClock()
    source = Ec2SpotPrices(stubber.client, clock)
    stubber.add_client_error("describe_spot_price_history", "RequestLimitExceeded", "slow down", 503)
    stubber.add_response("describe_spot_price_history", page(entry("g5.xlarge", "us-east-1a", "0.4", 10)))

    with pytest.raises(TransientError, match=r"g5\.xlarge.*RequestLimitExceeded"):
        source.spot_prices(["g5.xlarge"])
    clock.advance(30)
    with pytest.raises(TransientError, match="RequestLimitExceeded"):
        source.spot_prices(["g5.xlarge"])
    clock.advance(30)

    assert source.spot_prices(["g5.xlarge"])["g5.xlarge", "us-east-1a"][0] == 0.4


def test_nothing_is_asked_for_no_types(stubber: Stubber) -> None:
    assert Ec2SpotPrices(stubber.client, FakeClock()).spot_prices([]) == {}


@pytest.mark.parametrize("price", ["", "free", "nan", "inf"])
def test_what_is_no_price_is_asked_for_again(stubber: Stubber, price: str) -> None:
    stubber.add_response("describe_spot_price_history", page(entry("g5.xlarge", "us-east-1a", price, 1)))

    with pytest.raises(TransientError, match=r"spot prices of g5\.xlarge cannot be loaded: reading spot prices: AWS"):
        Ec2SpotPrices(stubber.client, FakeClock()).spot_prices(["g5.xlarge"])


HISTORY = {
    "InstanceTypes": ["g5.xlarge"],
    "ProductDescriptions": ["Linux/UNIX"],
    "AvailabilityZone": "us-east-1a",
    "StartTime": NOW,
}


def test_the_history_of_a_pool_is_in_order_and_has_every_page(stubber: Stubber) -> None:
    first = page(entry("g5.xlarge", "us-east-1a", "0.5", 50), entry("g5.xlarge", "us-east-1a", "0.4", 20), token="2")
    stubber.add_response("describe_spot_price_history", first, HISTORY)
    last = page(entry("g5.xlarge", "us-east-1a", "0.3", 10))
    stubber.add_response("describe_spot_price_history", last, {**HISTORY, "NextToken": "2"})

    history = read_history(stubber.client, "g5.xlarge", "us-east-1a", NOW)

    assert [(at.minute, usd) for at, usd in history] == [(10, 0.3), (20, 0.4), (50, 0.5)]


def test_a_history_with_what_is_no_price_is_asked_for_again(stubber: Stubber) -> None:
    stubber.add_response("describe_spot_price_history", page(entry("g5.xlarge", "us-east-1a", "nan", 50)), HISTORY)

    with pytest.raises(TransientError):
        read_history(stubber.client, "g5.xlarge", "us-east-1a", NOW)
