from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_instance_type
from relaunch.core.offerings.snapshot import (
    BUNDLED,
    STALE_AFTER,
    OfferingsSnapshot,
    Origin,
    SnapshotPart,
    offered_types,
    unknown_types,
)

EC2 = Origin("EC2", NOW)


def test_a_part_is_replaced_with_its_origin_and_the_others_stay():
    before = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1a",)}, EC2)

    after = before.with_part(SnapshotPart.DISK_PRICE, 0.08, Origin("AWS Price List", NOW))

    assert (after.zones, after.gp3_usd_per_gib_month) == (before.zones, 0.08)
    assert after.origins == {SnapshotPart.ZONES: EC2, SnapshotPart.DISK_PRICE: Origin("AWS Price List", NOW)}


def test_only_parts_that_are_not_known_are_filled_in():
    bundle = Origin("bundled", NOW - timedelta(days=100))
    stored = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 1.1}, EC2)
    bundled = (
        OfferingsSnapshot("us-east-1")
        .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 9.9, "p2.xlarge": 0.9}, bundle)
        .with_part(SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1a",)}, bundle)
    )

    filled = stored.filled_from(bundled)

    assert filled.on_demand_usd_per_hour == {"g5.xlarge": 1.1}
    assert filled.zones == {"g5.xlarge": ("us-east-1a",)}
    assert filled.origins == {SnapshotPart.ON_DEMAND_PRICES: EC2, SnapshotPart.ZONES: bundle}


def test_a_part_that_is_known_to_be_empty_stays_empty():
    stored = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.INSTANCE_TYPES, {}, EC2)
    other = stored.with_part(SnapshotPart.INSTANCE_TYPES, {"g9.xlarge": make_instance_type("g9.xlarge")}, EC2)

    assert stored.filled_from(other).instance_types == {}


@pytest.mark.parametrize(
    ("part", "content", "limit"),
    [
        pytest.param(SnapshotPart.QUOTAS, {"L-3819A6DF": 8.0}, timedelta(days=1), id="quotas"),
        pytest.param(SnapshotPart.PLACEMENT_SCORES, {"g5.xlarge": 9}, timedelta(hours=6), id="odds"),
    ],
)
def test_outdated_quotas_and_placement_scores_are_unknown_and_prices_stay(part, content, limit):
    priced = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 1.1}, EC2)
    snapshot = priced.with_part(part, content, EC2)

    assert snapshot.as_of(NOW + limit) is snapshot
    assert snapshot.as_of(NOW + limit + timedelta(seconds=1)) == priced


@pytest.mark.parametrize(
    ("age", "is_stale"), [(timedelta(0), False), (STALE_AFTER, False), (STALE_AFTER + timedelta(seconds=1), True)]
)
def test_prices_are_stale_after_three_days(age, is_stale):
    assert Origin("EC2", NOW - age).is_stale(NOW) == is_stale


def test_what_came_with_relaunch_is_told_from_what_was_refreshed():
    assert Origin(f"us-east-1{BUNDLED}", NOW).is_bundled
    assert not Origin("AWS Price List", NOW).is_bundled


def test_a_described_type_stays_as_the_catalogue_has_it():
    catalogue = {"trn2.48xlarge": make_instance_type("trn2.48xlarge", neuron_memory_mib=98_304)}
    described = {"trn2.48xlarge": make_instance_type("trn2.48xlarge", neuron_memory_mib=524_288)}

    assert unknown_types(described, catalogue) == {}


def test_a_type_that_ec2_did_not_list_before_is_as_ec2_describes_it():
    announced = make_instance_type("trn3.48xlarge", vcpus=0, memory_mib=0)
    described = make_instance_type("trn3.48xlarge", vcpus=192)

    assert unknown_types({"trn3.48xlarge": described}, {"trn3.48xlarge": announced}) == {"trn3.48xlarge": described}


def test_an_unknown_type_has_the_compute_capability_of_its_model():
    catalogue = {"g6.xlarge": make_instance_type("g6.xlarge", accelerator_model="L4", compute_capability=(8, 9))}
    described = {
        "g6z.xlarge": make_instance_type("g6z.xlarge", accelerator_model="L4"),
        "g9.xlarge": make_instance_type("g9.xlarge", accelerator_model="L9"),
    }

    found = unknown_types(described, catalogue)

    assert {name: row.compute_capability for name, row in found.items()} == {"g6z.xlarge": (8, 9), "g9.xlarge": None}


def test_a_new_size_of_a_family_has_the_name_and_capability_of_the_others_model():
    catalogue = {
        "g7e.2xlarge": make_instance_type("g7e.2xlarge", accelerator_model="RTX PRO 6000", compute_capability=(12, 0))
    }
    described = {"g7e.96xlarge": make_instance_type("g7e.96xlarge", accelerator_model="RTX PRO Server 6000")}

    (found,) = unknown_types(described, catalogue).values()

    assert (found.name, found.accelerator_model, found.compute_capability) == ("g7e.96xlarge", "RTX PRO 6000", (12, 0))


def test_how_a_known_type_is_sold_is_refreshed_and_nothing_else():
    known = make_instance_type("p5.48xlarge", memory_mib=2, usage_classes=("on-demand",))
    sold = make_instance_type("p5.48xlarge", memory_mib=1, usage_classes=("on-demand", "spot"))

    assert unknown_types({"p5.48xlarge": sold}, {"p5.48xlarge": known}) == {
        "p5.48xlarge": replace(known, usage_classes=("on-demand", "spot"))
    }


def test_the_types_of_a_region_are_those_with_zones_or_else_all_that_are_known():
    unknown = OfferingsSnapshot("us-east-1", instance_types={"g9.xlarge": make_instance_type("g9.xlarge")})
    known = unknown.with_part(SnapshotPart.ZONES, {"g6.xlarge": ("us-east-1a",)}, EC2)

    assert offered_types(unknown, ["g5.xlarge"]) == ["g5.xlarge", "g9.xlarge"]
    assert offered_types(known, ["g5.xlarge"]) == ["g6.xlarge"]


def test_every_part_is_a_field_and_has_a_name_for_people():
    assert {part.value for part in SnapshotPart} == set(OfferingsSnapshot.__slots__) - {"region", "origins"}
    assert SnapshotPart.ON_DEMAND_PRICES.label == "on-demand prices"
    assert len({part.label for part in SnapshotPart}) == len(SnapshotPart)
