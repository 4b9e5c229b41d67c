from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, PriceOrigin, SnapshotPart
from relaunch_cli.views.price_origins import describe_prices


def test_a_plan_says_where_its_prices_are_from_and_how_old_they_are(relaunch):
    result = relaunch("plan", "resnet")

    assert "on-demand prices of AWS Price List, 5 hours old; spot prices of EC2, now" in result.stderr
    assert "warning" not in result.stderr


def test_a_plan_warns_of_prices_that_are_no_longer_refreshed(relaunch, session):
    refreshed = Origin("AWS Price List", NOW - timedelta(days=4))
    session.offerings.origins = (PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, refreshed),)

    result = relaunch("plan", "resnet")

    assert "on-demand prices of AWS Price List, 4 days old" in result.stderr
    assert "warning: on-demand prices are more than three days old" in result.stderr


def test_prices_that_were_never_refreshed_are_named_and_nobody_is_warned(relaunch, session):
    bundled = Origin("us-east-1, bundled", NOW - timedelta(days=124))
    session.offerings.origins = (PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, bundled),)

    result = relaunch("plan", "resnet")

    assert "on-demand prices of us-east-1, bundled, 124 days old" in result.stderr
    assert "warning" not in result.stderr
    assert "refresh_offerings" not in result.stderr
    assert "quotas are not known: the stack reads them hourly" in result.stderr


def test_a_spot_price_is_the_regions_own_beside_on_demand_prices_of_another_one(relaunch, session):
    bundled = Origin("us-east-1, bundled", NOW - timedelta(days=124))
    spot = PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW))
    session.offerings.origins = (PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, bundled), spot)
    session.offerings.refreshed = OfferingsSnapshot("eu-central-1")

    result = relaunch("plan", "resnet", columns=160)

    assert "would run on g4dn.xlarge (1x T4 15 GiB) spot by g4dn-xlarge-spot at $0.1600/h" in result.stdout
    prices = {row.split()[-2] for row in result.stdout.splitlines() if row[:1].isdigit()}
    assert prices == {"0.1600", "0.4000", "0.4500", "~1.0000", "~1.1000"}
    # What spot saves would be by the price of another region.
    assert "SAVES" not in result.stdout


def test_a_plan_of_a_stack_says_that_spot_prices_are_not_known(relaunch, session):
    session.offerings.origins = session.offerings.origins[:1]
    for name in ("g4dn.xlarge", "g5.xlarge", "g6.xlarge"):
        session.offerings.set_price(name, PurchaseOption.SPOT, None)

    result = relaunch("plan", "resnet")

    assert "spot prices are not known, so where it would run is not either; without spot it is" in result.stdout
    assert "spot prices are not known: they are at most those (<=)" in result.stderr


def test_a_plan_says_how_old_quotas_and_placement_scores_are(relaunch, session):
    read = NOW - timedelta(minutes=40)
    session.offerings.origins += (
        PriceOrigin(SnapshotPart.PLACEMENT_SCORES, Origin("EC2", read)),
        PriceOrigin(SnapshotPart.QUOTAS, Origin("Service Quotas", read)),
    )

    result = relaunch("plan", "resnet")

    assert "placement scores of EC2, 40 minutes old; quotas of Service Quotas, 40 minutes old" in result.stderr
    assert "not known" not in result.stderr


@pytest.mark.parametrize(
    ("options", "unknown"),
    [((), "placement scores and quotas"), (("--all-types",), "quotas")],
    ids=["capacity providers", "zones have scores of their own"],
)
def test_a_plan_says_which_of_them_are_not_known(relaunch, options, unknown):
    result = relaunch("plan", "resnet", *options)

    assert f"; {unknown} are not known: refresh_offerings has not refreshed them lately" in result.stderr


def test_placement_scores_are_not_missing_without_spot_offerings(relaunch, session):
    session.offerings.available = tuple(
        each for each in session.offerings.available if each.purchase is PurchaseOption.ON_DEMAND
    )

    assert "; quotas are not known" in relaunch("plan", "resnet").stderr


def test_quotas_are_not_mentioned_offline(relaunch):
    assert "quotas" not in relaunch("plan", "--gpu", "1", "--offline").stderr


def test_a_plan_as_json_has_the_prices_origins(relaunch):
    first, second = relaunch("plan", "resnet", "--json").document["prices"]

    assert first == {
        "prices": "on-demand prices",
        "source": "AWS Price List",
        "at": (NOW - timedelta(hours=5)).isoformat(),
        "is_stale": False,
    }
    assert second["source"] == "EC2"


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(minutes=14), "now"),
        (timedelta(minutes=15), "15 minutes old"),
        (timedelta(minutes=119), "119 minutes old"),
        (timedelta(hours=2), "2 hours old"),
        (timedelta(hours=47), "47 hours old"),
        (timedelta(hours=48), "2 days old"),
    ],
)
def test_an_age_has_one_unit(age, text):
    origin = PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW - age))

    assert describe_prices([origin], NOW) == f"spot prices of EC2, {text}"
