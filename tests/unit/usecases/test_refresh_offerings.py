from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from fakes.refreshed_region import CATALOGUE, G5, LONG_AGO, NEW, OLD, SIZES, ZONES, Region
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, TransientError


@pytest.fixture
def region() -> Region:
    """Return a region of which every part was stored long ago."""
    return Region(OLD)


@pytest.fixture
def new_region() -> Region:
    return Region()


def test_the_first_refresh_stores_every_part_with_its_source_and_time(new_region: Region) -> None:
    outcomes = new_region.refresh()

    ec2, price_list = Origin("EC2", NOW), Origin("AWS Price List", NOW)
    assert set(outcomes.values()) == {"refreshed"}
    assert new_region.stored == OfferingsSnapshot(
        region="us-east-1",
        instance_types={"g9.xlarge": NEW},
        zones=ZONES,
        on_demand_usd_per_hour={"g5.xlarge": 1.0, "g9.xlarge": 2.0},
        spot_usd_per_hour={"g5.xlarge": {"us-east-1a": 0.4}, "g9.xlarge": {"us-east-1a": 0.9}},
        gp3_usd_per_gib_month=0.08,
        vcpus_by_quota={"L-3819A6DF": 64.0},
        placement_scores={"g5.xlarge": 8},
        origins={
            SnapshotPart.INSTANCE_TYPES: ec2,
            SnapshotPart.ZONES: ec2,
            SnapshotPart.ON_DEMAND_PRICES: price_list,
            SnapshotPart.DISK_PRICE: price_list,
            SnapshotPart.SPOT_PRICES: ec2,
            SnapshotPart.QUOTAS: Origin("Service Quotas", NOW),
            SnapshotPart.PLACEMENT_SCORES: ec2,
        },
    )


def test_prices_are_asked_for_what_the_region_offers_only(new_region: Region) -> None:
    new_region.refresh()

    assert new_region.aws.asked["zones"] == [*SIZES, "g9.xlarge", "p2.xlarge"]
    assert new_region.aws.asked["on_demand_prices"] == [*SIZES, "g9.xlarge"]


def test_every_quota_that_is_known_here_is_asked_for(new_region: Region) -> None:
    new_region.refresh()

    assert new_region.aws.asked["vcpu_quotas"] == list(QUOTA_CODES)


def test_each_spot_type_is_asked_about_with_its_family_and_for_its_own_size() -> None:
    region = Region(None, "g5.xlarge", "g5.48xlarge")

    region.refresh()

    assert region.aws.questions == [(SIZES, 192), (SIZES, 4)]
    assert region.stored.placement_scores == {"g5.48xlarge": 2, "g5.xlarge": 8}


@pytest.fixture
def own_machines(new_region: Region) -> Region:
    """Return a region in which the stack starts machines of its own with GPUs in one zone, beside no provider."""
    new_region.spot_types = frozenset()
    new_region.machine_settings = MachineSettings(
        subnets={"us-east-1b": "subnet-0b"}, launch_templates={AmiKind.GPU: LaunchTemplate("lt-0a", "7")}
    )
    return new_region


def test_what_machines_of_our_own_may_have_on_spot_is_asked_about_by_family(own_machines: Region) -> None:
    own_machines.machine_settings = replace(own_machines.machine_settings, subnets={"us-east-1a": "subnet-0a"})
    own_machines.aws.scores = {8: 6}

    own_machines.refresh()

    assert own_machines.aws.questions == [(SIZES, 8)]
    assert own_machines.stored.placement_scores == dict.fromkeys(SIZES, 6)


def test_only_types_with_a_subnet_in_one_of_their_zones_are_asked_about(own_machines: Region) -> None:
    own_machines.refresh()

    assert own_machines.aws.questions == [(SIZES, 4)]
    assert own_machines.stored.placement_scores == {"g5.xlarge": 8}


def test_types_that_ec2_does_not_sell_on_spot_are_not_asked_about(
    own_machines: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, "g5.xlarge", replace(G5, usage_classes=("on-demand",)))

    assert own_machines.refresh()["placement scores"] == "refreshed"
    assert own_machines.aws.questions == []


def test_while_machines_of_our_own_are_off_only_the_types_of_providers_are_asked_about(region: Region) -> None:
    region.refresh()

    assert region.aws.questions == [(SIZES, 4)]


def test_a_family_that_ec2_refuses_is_named(own_machines: Region) -> None:
    own_machines.aws.refused = {4}

    own_machines.refresh()

    refusal = {"instance_type": "g5", "reason": "MaxConfigLimitExceeded"}
    assert ("placement-score-refused", refusal) in own_machines.log.lines


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("g9.xlarge", id="a family of one size"),
        pytest.param("p2.xlarge", id="a type that the region does not offer"),
        pytest.param("g5.24xlarge", id="a size that the region does not offer"),
        pytest.param("x9.xlarge", id="a mistyped one"),
    ],
)
def test_of_a_type_that_ec2_has_no_score_of_nothing_is_asked(name: str) -> None:
    region = Region(OLD, name)

    assert region.refresh()["placement scores"] == "refreshed"
    assert region.aws.questions == []
    assert region.stored.placement_scores == {}


def test_scores_that_ec2_does_not_return_are_not_known(region: Region) -> None:
    region.aws.scores = {4: None}

    assert region.refresh()["placement scores"] == "refreshed"
    assert region.stored.placement_scores == {}


def test_a_question_that_ec2_refuses_hides_no_other_types_score() -> None:
    region = Region(OLD, "g5.xlarge", "g5.48xlarge")
    region.aws.refused = {192}

    assert region.refresh()["placement scores"] == "refreshed"
    assert region.stored.placement_scores == {"g5.xlarge": 8}
    refusal = {"instance_type": "g5.48xlarge", "reason": "MaxConfigLimitExceeded"}
    assert ("placement-score-refused", refusal) in region.log.lines


def test_where_ec2_refuses_every_question_the_scores_keep_their_age_and_nothing_is_tried_again(region: Region) -> None:
    region.aws.refused = {4}

    assert region.refresh()["placement scores"] == "kept: MaxConfigLimitExceeded"
    assert region.stored.placement_scores == {"g5.xlarge": 1}
    assert region.stored.origins[SnapshotPart.PLACEMENT_SCORES] == LONG_AGO


@pytest.mark.parametrize(
    ("break_it", "part"),
    [
        pytest.param("instance_types", SnapshotPart.INSTANCE_TYPES, id="instance types"),
        pytest.param("zones", SnapshotPart.ZONES, id="zones"),
        pytest.param("on_demand_prices", SnapshotPart.ON_DEMAND_PRICES, id="a pricing outage"),
        pytest.param("gp3_price", SnapshotPart.DISK_PRICE, id="the disk price"),
        pytest.param("spot_prices", SnapshotPart.SPOT_PRICES, id="spot prices"),
        pytest.param("vcpu_quotas", SnapshotPart.QUOTAS, id="quotas"),
        pytest.param("region_score", SnapshotPart.PLACEMENT_SCORES, id="placement-score"),
    ],
)
def test_a_part_that_cannot_be_had_keeps_its_content_and_its_age_and_the_others_are_refreshed(
    region: Region, break_it: str, part: SnapshotPart
) -> None:
    region.aws.failures = {break_it: TransientError("throttled")}
    region.spot_prices.failure = TransientError("throttled") if break_it == "spot_prices" else None

    with pytest.raises(TransientError, match=f"not refreshed: {part.label}$"):
        region.refresh()

    assert getattr(region.stored, part.value) == getattr(OLD, part.value)
    assert {each: origin.at for each, origin in region.stored.origins.items()} == {
        each: LONG_AGO.at if each is part else NOW for each in SnapshotPart
    }
    assert ("refresh-failed", {"part": part.label, "reason": "throttled"}) in region.log.lines


def test_what_was_had_a_moment_ago_is_not_asked_for_again_when_lambda_tries_again(region: Region) -> None:
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


@pytest.mark.parametrize(
    ("age", "refreshed"),
    [
        (timedelta(minutes=49), set()),
        (timedelta(minutes=50), {"quotas", "placement scores"}),
        (timedelta(hours=22, minutes=59), {"quotas", "placement scores"}),
        (timedelta(hours=23), {part.label for part in SnapshotPart}),
    ],
)
def test_scores_and_quotas_are_asked_for_again_every_hour_and_everything_every_day(
    new_region: Region, age: timedelta, refreshed: set[str]
) -> None:
    new_region.refresh()
    new_region.clock.advance(age)

    outcomes = new_region.refresh()

    assert {label for label, outcome in outcomes.items() if outcome == "refreshed"} == refreshed
    renewed = {part.label for part, origin in new_region.stored.origins.items() if origin.at == NOW + age}
    assert renewed == refreshed


def test_what_will_never_be_had_is_said_and_not_tried_again(region: Region) -> None:
    refusal = PermanentError("the Price List of cn-north-1 is in CNY, not in USD")
    region.aws.failures = {"on_demand_prices": refusal, "gp3_price": refusal}

    outcomes = region.refresh()

    assert outcomes["on-demand prices"] == "kept: the Price List of cn-north-1 is in CNY, not in USD"
    assert region.stored.on_demand_usd_per_hour == {"g5.xlarge": 7.0}
    assert region.stored.origins[SnapshotPart.SPOT_PRICES].at == NOW


def test_an_answer_of_a_form_that_nobody_foresaw_costs_its_own_part_only_and_is_raised(region: Region) -> None:
    region.aws.failures = {"on_demand_prices": KeyError("terms"), "gp3_price": TransientError("throttled")}

    with pytest.raises(KeyError, match="terms"):
        region.refresh()

    kept = {part for part, origin in region.stored.origins.items() if origin == LONG_AGO}
    assert kept == {SnapshotPart.ON_DEMAND_PRICES, SnapshotPart.DISK_PRICE}
    assert ("refresh-failed", {"part": "on-demand prices", "reason": "'terms'"}) in region.log.lines


def test_no_type_at_all_is_not_believed(region: Region) -> None:
    region.aws.described = {}

    with pytest.raises(TransientError, match="instance types"):
        region.refresh()

    assert region.stored.origins[SnapshotPart.INSTANCE_TYPES] == LONG_AGO


def test_without_any_answer_nothing_is_known_and_spot_is_not_asked_for_types_that_may_be_gone(
    new_region: Region,
) -> None:
    failing = ("instance_types", "zones", "on_demand_prices", "gp3_price", "vcpu_quotas", "region_score")
    new_region.aws.failures = dict.fromkeys(failing, TransientError("no way out"))

    with pytest.raises(TransientError, match="spot prices"):
        new_region.refresh()

    assert new_region.stored == OfferingsSnapshot("us-east-1")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda snapshots: setattr(snapshots, "failure", PermanentError("no JSON")), id="unreadable"),
        pytest.param(lambda snapshots: setattr(snapshots, "stored", OfferingsSnapshot("eu-west-1")), id="elsewhere"),
    ],
)
def test_a_snapshot_that_cannot_be_used_is_replaced(region: Region, spoil: Callable[[Any], None]) -> None:
    spoil(region.snapshots)

    assert set(region.refresh().values()) == {"refreshed"}
    assert region.stored.region == "us-east-1"


def test_a_table_that_cannot_be_read_now_is_left_to_the_next_try(region: Region) -> None:
    region.snapshots.failure = TransientError("throttled")

    with pytest.raises(TransientError, match="throttled"):
        region.refresh()

    assert region.stored == OLD
