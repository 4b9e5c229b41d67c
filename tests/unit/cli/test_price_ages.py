import json
from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.snapshot import Origin, PriceOrigin, SnapshotPart
from relaunch_cli.price_ages import describe_prices


def test_a_plan_says_where_its_prices_are_from_and_how_old_they_are(relaunch):
    result = relaunch("plan", "resnet")

    assert "on-demand prices of AWS Price List, 5 hours old; spot prices of EC2, now" in result.stderr
    assert "warning" not in result.stderr


def test_a_plan_warns_of_stale_prices(relaunch, stage):
    bundled = Origin("us-east-1, bundled", NOW - timedelta(days=124))
    stage.offerings.origins = (PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, bundled),)

    result = relaunch("plan", "resnet")

    assert "on-demand prices of us-east-1, bundled, 124 days old" in result.stderr
    assert "warning: on-demand prices are more than three days old" in result.stderr


def test_a_plan_as_json_has_the_prices_origins(relaunch):
    first, second = json.loads(relaunch("plan", "resnet", "--json").stdout)["prices"]

    assert first == {
        "prices": "on-demand prices",
        "source": "AWS Price List",
        "at": (NOW - timedelta(hours=5)).isoformat(),
        "is_stale": False,
    }
    assert second["source"] == "EC2"


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(minutes=14), "now"),
        (timedelta(minutes=15), "15 minutes old"),
        (timedelta(minutes=119), "119 minutes old"),
        (timedelta(hours=2), "2 hours old"),
        (timedelta(hours=47), "47 hours old"),
        (timedelta(hours=48), "2 days old"),
    ],
)
def test_an_age_has_one_unit(age, words):
    origin = PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW - age))

    assert describe_prices([origin], NOW) == f"spot prices of EC2, {words}"
