from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_instance_type
from fakes.clock import FakeClock
from fakes.sources import FakeSnapshots, FakeSpotPrices, ListLog
from relaunch.core.catalogue import InstanceType
from relaunch.core.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, RefreshWorld, TransientError
from relaunch.usecases.refresh_offerings import refresh_offerings

G5, NEW = make_instance_type("g5.xlarge"), make_instance_type("g9.xlarge")
ZONES = {"g5.xlarge": ("us-east-1a", "us-east-1b"), "g9.xlarge": ("us-east-1a",)}
LONG_AGO = Origin("AWS", NOW - timedelta(days=2))
OLD = (
    OfferingsSnapshot("us-east-1")
    .with_part(SnapshotPart.INSTANCE_TYPES, {}, LONG_AGO)
    .with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1f",)}, LONG_AGO)
    .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 7.0}, LONG_AGO)
    .with_part(SnapshotPart.DISK_PRICE, 0.7, LONG_AGO)
    .with_part(SnapshotPart.SPOT_PRICES, {"g5.xlarge": {"us-east-1f": 0.7}}, LONG_AGO)
)


@dataclass
class FakeAws:
    """Implements the sources of instance types, zones and list prices; `failures` by the name of a method."""

    described: dict[str, InstanceType] = field(default_factory=lambda: {"g5.xlarge": G5, "g9.xlarge": NEW})
    failures: dict[str, Exception] = field(default_factory=dict)
    asked: dict[str, list[str]] = field(default_factory=dict)

    def instance_types(self) -> Mapping[str, InstanceType]:
        self._call("instance_types")
        return self.described

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        self._call("zones", instance_types)
        return ZONES

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        self._call("on_demand_prices", instance_types)
        return {"g5.xlarge": 1.0, "g9.xlarge": 2.0}

    def gp3_price(self) -> float:
        self._call("gp3_price")
        return 0.08

    def _call(self, method: str, instance_types: Iterable[str] = ()) -> None:
        self.asked[method] = sorted(instance_types)
        if method in self.failures:
            raise self.failures[method]


class Region:
    """A region whose offerings are refreshed."""

    def __init__(self, stored: OfferingsSnapshot | None = None) -> None:
        self.aws, self.snapshots, self.clock, self.log = FakeAws(), FakeSnapshots(stored), FakeClock(), ListLog()
        self.spot_prices = FakeSpotPrices({("g5.xlarge", "us-east-1a"): 0.4, ("g9.xlarge", "us-east-1a"): 0.9})

    def refresh(self) -> dict[str, str]:
        return refresh_offerings(
            RefreshWorld(
                region="us-east-1",
                catalogue={"g5.xlarge": G5, "p2.xlarge": make_instance_type("p2.xlarge")},
                instance_types=self.aws,
                zones=self.aws,
                price_list=self.aws,
                spot_prices=self.spot_prices,
                snapshots=self.snapshots,
                clock=self.clock,
                log=self.log,
            )
        )

    @property
    def stored(self) -> OfferingsSnapshot:
        assert self.snapshots.stored is not None
        return self.snapshots.stored


def test_the_first_refresh_stores_every_part_with_its_source_and_time() -> None:
    region = Region()

    outcomes = region.refresh()

    ec2, price_list = Origin("EC2", NOW), Origin("AWS Price List", NOW)
    assert set(outcomes.values()) == {"refreshed"}
    assert region.stored == OfferingsSnapshot(
        region="us-east-1",
        instance_types={"g9.xlarge": NEW},
        zones=ZONES,
        on_demand_usd_per_hour={"g5.xlarge": 1.0, "g9.xlarge": 2.0},
        spot_usd_per_hour={"g5.xlarge": {"us-east-1a": 0.4}, "g9.xlarge": {"us-east-1a": 0.9}},
        gp3_usd_per_gib_month=0.08,
        origins={
            SnapshotPart.INSTANCE_TYPES: ec2,
            SnapshotPart.ZONES: ec2,
            SnapshotPart.ON_DEMAND_PRICES: price_list,
            SnapshotPart.DISK_PRICE: price_list,
            SnapshotPart.SPOT_PRICES: ec2,
        },
    )


def test_prices_are_asked_for_what_the_region_offers_only() -> None:
    region = Region()

    region.refresh()

    assert region.aws.asked["zones"] == ["g5.xlarge", "g9.xlarge", "p2.xlarge"]
    assert region.aws.asked["on_demand_prices"] == ["g5.xlarge", "g9.xlarge"]


@pytest.mark.parametrize(
    ("break_it", "part"),
    [
        pytest.param("instance_types", SnapshotPart.INSTANCE_TYPES, id="instance types"),
        pytest.param("zones", SnapshotPart.ZONES, id="zones"),
        pytest.param("on_demand_prices", SnapshotPart.ON_DEMAND_PRICES, id="a pricing outage"),
        pytest.param("gp3_price", SnapshotPart.DISK_PRICE, id="the disk price"),
        pytest.param("spot_prices", SnapshotPart.SPOT_PRICES, id="spot prices"),
    ],
)
def test_a_part_that_cannot_be_had_keeps_its_content_and_its_age_and_the_others_are_refreshed(
    break_it: str, part: SnapshotPart
) -> None:
    region = Region(OLD)
    region.aws.failures = {break_it: TransientError("throttled")}
    region.spot_prices.failure = TransientError("throttled") if break_it == "spot_prices" else None

    with pytest.raises(TransientError, match=f"not refreshed: {part.label}$"):
        region.refresh()

    assert getattr(region.stored, part.value) == getattr(OLD, part.value)
    assert {each: origin.at for each, origin in region.stored.origins.items()} == {
        each: LONG_AGO.at if each is part else NOW for each in SnapshotPart
    }
    assert ("refresh-failed", {"part": part.label, "reason": "throttled"}) in region.log.lines


def test_what_was_had_a_moment_ago_is_not_asked_for_again_when_lambda_tries_again() -> None:
    region = Region(OLD)
    region.aws.failures = {"gp3_price": TransientError("throttled")}
    with pytest.raises(TransientError):
        region.refresh()
    region.aws.failures, region.aws.asked = {}, {}
    region.clock.advance(timedelta(minutes=1))

    outcomes = region.refresh()

    assert list(region.aws.asked) == ["gp3_price"]
    assert outcomes["disk price"] == "refreshed"
    assert outcomes["zones"] == "fresh"
    assert region.stored.origins[SnapshotPart.ZONES].at == NOW


def test_everything_is_asked_for_again_the_next_day() -> None:
    region = Region()
    region.refresh()
    region.clock.advance(timedelta(days=1))

    assert set(region.refresh().values()) == {"refreshed"}
    assert {origin.at for origin in region.stored.origins.values()} == {NOW + timedelta(days=1)}


def test_what_will_never_be_had_is_said_and_not_tried_again() -> None:
    region = Region(OLD)
    refusal = PermanentError("the Price List of cn-north-1 is in CNY, not in USD")
    region.aws.failures = {"on_demand_prices": refusal, "gp3_price": refusal}

    outcomes = region.refresh()

    assert outcomes["on-demand prices"] == "kept: the Price List of cn-north-1 is in CNY, not in USD"
    assert region.stored.on_demand_usd_per_hour == {"g5.xlarge": 7.0}
    assert region.stored.origins[SnapshotPart.SPOT_PRICES].at == NOW


def test_no_type_at_all_is_not_believed() -> None:
    region = Region(OLD)
    region.aws.described = {}

    with pytest.raises(TransientError, match="instance types"):
        region.refresh()

    assert region.stored.origins[SnapshotPart.INSTANCE_TYPES] == LONG_AGO


def test_without_any_answer_nothing_is_known_and_spot_is_not_asked_for_types_that_may_be_gone() -> None:
    region = Region()
    failing = ("instance_types", "zones", "on_demand_prices", "gp3_price")
    region.aws.failures = dict.fromkeys(failing, TransientError("no way out"))

    with pytest.raises(TransientError, match="spot prices"):
        region.refresh()

    assert region.stored == OfferingsSnapshot("us-east-1")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda snapshots: setattr(snapshots, "failure", PermanentError("no JSON")), id="unreadable"),
        pytest.param(lambda snapshots: setattr(snapshots, "stored", OfferingsSnapshot("eu-west-1")), id="elsewhere"),
    ],
)
def test_a_snapshot_that_cannot_be_used_is_replaced(spoil: Callable[[Any], None]) -> None:
    region = Region(OLD)
    spoil(region.snapshots)

    assert set(region.refresh().values()) == {"refreshed"}
    assert region.stored.region == "us-east-1"


def test_a_table_that_cannot_be_read_now_is_left_to_the_next_try() -> None:
    region = Region(OLD)
    region.snapshots.failure = TransientError("throttled")

    with pytest.raises(TransientError, match="throttled"):
        region.refresh()

    assert region.stored == OLD
