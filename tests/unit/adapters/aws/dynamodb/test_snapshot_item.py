import json
import zlib
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_instance_type
from fakes.jobs_table import ObservedTable
from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.offerings.bundled import bundled_snapshot, load_catalogue
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, TransientError

SNAPSHOT = (
    OfferingsSnapshot("us-west-2")
    .with_part(
        SnapshotPart.INSTANCE_TYPES,
        {
            "g9.xlarge": make_instance_type("g9.xlarge", compute_capability=(13, 0), usage_classes=("spot",)),
            "trn9.2xlarge": make_instance_type("trn9.2xlarge", compute_capability=None, source="EC2"),
        },
        Origin("EC2", NOW),
    )
    .with_part(SnapshotPart.ZONES, {"g9.xlarge": ("us-west-2a", "us-west-2-lax-1a")}, Origin("EC2", NOW))
    .with_part(SnapshotPart.ON_DEMAND_PRICES, {"g9.xlarge": 1.5}, Origin("AWS Price List", NOW - timedelta(days=4)))
    .with_part(SnapshotPart.SPOT_PRICES, {"g9.xlarge": {"us-west-2-lax-1a": 0.5}}, Origin("EC2", NOW))
    .with_part(SnapshotPart.DISK_PRICE, 0.08, Origin("AWS Price List", NOW))
    .with_part(SnapshotPart.QUOTAS, {"L-3819A6DF": 64.0}, Origin("Service Quotas", NOW))
    .with_part(SnapshotPart.PLACEMENT_SCORES, {"g9.xlarge": 7}, Origin("EC2", NOW))
)


@pytest.fixture
def store(table: ObservedTable) -> DynamoDbSnapshots:
    return DynamoDbSnapshots(table.client, table.name)


def test_a_snapshot_is_read_as_it_was_written(store):
    store.save_snapshot(SNAPSHOT)

    assert store.load_snapshot() == SNAPSHOT


def test_a_part_that_is_not_known_stays_so(store):
    nothing = OfferingsSnapshot("us-west-2")

    store.save_snapshot(nothing)

    assert store.load_snapshot() == nothing


def test_there_is_none_before_the_first_refresh_and_one_ever_after(store, table):
    assert store.load_snapshot() is None

    store.save_snapshot(OfferingsSnapshot("us-west-2"))
    store.save_snapshot(SNAPSHOT)

    (item,) = table.items()
    assert item["pk"] == {"S": "OFFERINGS"}
    assert item["refreshed_at"]["S"].startswith(NOW.date().isoformat())


def test_a_region_with_every_type_in_six_zones_is_a_small_item(store, table):
    origin = Origin("EC2", NOW)
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    full = (
        bundled_snapshot("us-east-1")
        .with_part(SnapshotPart.INSTANCE_TYPES, dict(load_catalogue()), origin)
        .with_part(SnapshotPart.ZONES, dict.fromkeys(load_catalogue(), tuple(zones)), origin)
        .with_part(
            SnapshotPart.SPOT_PRICES,
            {
                name: {zone: (number * 7919 + index * 104_729) % 99_991 / 10_000 for index, zone in enumerate(zones)}
                for number, name in enumerate(load_catalogue())
            },
            origin,
        )
    )

    store.save_snapshot(full)

    (item,) = table.items()
    assert len(item["body"]["B"]) < 40_000
    assert store.load_snapshot() == full


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"not compressed", id="not compressed"),
        pytest.param(zlib.compress(b"{"), id="not JSON"),
        pytest.param(zlib.compress(b"[]"), id="a list"),
        pytest.param(zlib.compress(json.dumps({"format": 1}).encode()), id="an earlier form"),
        pytest.param(zlib.compress(json.dumps({"format": 3}).encode()), id="a later form"),
        pytest.param(zlib.compress(json.dumps({"format": 2, "region": "us-west-2"}).encode()), id="half"),
    ],
)
def test_what_cannot_be_read_is_said(store, table, body):
    store.save_snapshot(SNAPSHOT)
    table.client.put_item(TableName=table.name, Item=table.items()[0] | {"body": {"B": body}})

    with pytest.raises(PermanentError, match="the stored offerings cannot be read"):
        store.load_snapshot()


def test_a_table_that_does_not_answer_is_worth_another_try(store, table):
    store.save_snapshot(SNAPSHOT)
    table.faults("GetItem").before = 1

    with pytest.raises(TransientError):
        store.load_snapshot()
