"""What is reserved is chosen first by the jobs that want it, while it is active, has room and lasts long enough."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_definition
from fakes.reservations import make_block, make_reservation, make_reserved
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.capacity_memory import purchase_scope, zone_scope
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.selection.notices import find_notices
from relaunch.core.selection.selection import explain_rows
from unit.core.selection.offered import A10G, ON_DEMAND, REVISION, SPOT, T4, needing_gpu, offered, selected

RESERVED = PurchaseOption.RESERVED
MINUTE = timedelta(minutes=1)
LEAST = timedelta(minutes=68)  # 8 to start, 30 to a checkpoint, 30 that EC2 takes
CAPS = {"max_price_usd_per_hour": None}


def wanting(policy: str = "reserved", **fields: object) -> JobDefinition:
    return replace(make_definition(), purchase=PurchasePolicy(policy), **fields)


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("reserved", ["reserved"]),
        ("reserved-then-spot", ["reserved", "spot"]),
        ("reserved-then-on-demand", ["reserved", "on-demand"]),
        ("reserved-then-spot-then-on-demand", ["reserved", "spot", "on-demand"]),
        ("spot-then-on-demand", ["spot", "on-demand"]),
        ("spot", ["spot"]),
        ("on-demand", ["on-demand"]),
    ],
)
def test_only_a_job_that_says_so_takes_what_is_reserved_and_takes_it_first(policy: str, order: list[str]) -> None:
    selection = selected(wanting(policy), offered(A10G, ON_DEMAND), offered(A10G, SPOT), make_reserved())

    assert [each.purchase.value for each in selection.kept] == order


def test_it_is_first_by_expected_cost_too_whose_disk_is_paid_for_anyway() -> None:
    definition = wanting("reserved-then-spot", estimated_duration=timedelta(hours=20), disk_gib=200)

    assert selected(definition, offered(A10G, SPOT), make_reserved(disk_gib=200)).chosen == make_reserved(disk_gib=200)


@pytest.mark.parametrize(
    ("reservation", "reason", "is_permanent", "retry_at"),
    [
        pytest.param(make_block(state="expired"), "is expired", True, None, id="expired"),
        pytest.param(make_reservation(state="cancelled"), "is cancelled", True, None, id="cancelled"),
        pytest.param(make_block(obstacle="is for Windows"), "is for Windows", True, None, id="wrong platform"),
        pytest.param(
            make_block(state="scheduled", starts_at=NOW + timedelta(days=2)),
            "is scheduled, and starts 2026-03-16 09:26 UTC",
            False,
            NOW + timedelta(days=2),
            id="not started",
        ),
        pytest.param(make_block(state="pending", starts_at=None), "is pending", False, NOW + 5 * MINUTE, id="pending"),
        pytest.param(
            make_block(state="scheduled", starts_at=NOW - MINUTE),
            "is scheduled, and starts 2026-03-14 09:25 UTC",
            False,
            NOW + 5 * MINUTE,
            id="late to start",
        ),
        pytest.param(
            make_block(available=0),
            "none of the 4 instances of Capacity Block cr-0b10c0b10c0b10c00 is free",
            False,
            NOW + 5 * MINUTE,
            id="full",
        ),
        pytest.param(
            make_block(is_launchable=False),
            "its launch status is unlaunchable",
            False,
            NOW + 5 * MINUTE,
            id="UltraServer",
        ),
        pytest.param(
            make_block(ends_at=NOW + 50 * MINUTE),
            "is usable until 2026-03-14 09:46 UTC; the job needs 38 minutes of it",
            False,
            NOW + 5 * MINUTE,
            id="ends in 50 minutes",
        ),
        pytest.param(
            make_reservation(ends_at=NOW + 30 * MINUTE), "the job needs 38 minutes", False, NOW + 5 * MINUTE, id="ends"
        ),
    ],
)
def test_a_reservation_that_cannot_be_used_is_rejected_with_the_reason(
    reservation: Reservation, reason: str, *, is_permanent: bool, retry_at: datetime | None
) -> None:
    selection = selected(wanting(), make_reserved(reservation))

    (rejected,) = selection.rejected
    assert rejected.filter_name == "reservation"
    assert rejected.rejection.reason.startswith((str(reservation), "none of", "EC2 launches"))
    assert reason in rejected.rejection.reason
    assert (selection.is_permanent, selection.retry_at) == (is_permanent, retry_at)


@pytest.mark.parametrize(("left", "count"), [(LEAST, 1), (LEAST - timedelta(seconds=1), 0)])
def test_a_launch_needs_the_time_to_start_and_to_reach_a_checkpoint(left: timedelta, count: int) -> None:
    assert len(selected(wanting(), make_reserved(make_block(ends_at=NOW + left))).kept) == count


@pytest.mark.parametrize(
    ("hours", "checkpoint", "minutes"),
    [
        pytest.param(0.2, None, 8 + 12, id="short"),
        pytest.param(0.01, None, 8 + 10, id="done before the end of the block is announced, if the estimate is right"),
        pytest.param(0.2, "s3://acme/resnet/", 8 + 12, id="short with checkpoints"),
        pytest.param(20, "s3://acme/resnet/", 8 + 30, id="long with checkpoints"),
        pytest.param(20, None, 8 + 1200, id="long without: all would be lost"),
    ],
)
def test_something_must_be_left_of_a_launch_when_the_reservation_ends(
    hours: float, checkpoint: str | None, minutes: int
) -> None:
    definition = wanting(estimated_duration=timedelta(hours=hours), checkpoint_uri=checkpoint)
    enough, less = (make_block(ends_at=NOW + (minutes + 30 - missing) * MINUTE) for missing in (0, 1))

    assert selected(definition, make_reserved(enough)).chosen is not None
    (rejected,) = selected(definition, make_reserved(less)).rejected
    assert rejected.rejection.reason.endswith(f"the job needs {minutes} minutes of it")


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        (LEAST, ""),
        (LEAST - MINUTE, "is usable until 2026-03-14 10:03 UTC; the job needs 38 minutes of it"),
        (timedelta(0), "ended at 2026-03-14 09:26 UTC, as CapacityProviders says"),
    ],
)
def test_what_a_capacity_provider_has_reserved_is_left_alone_from_its_end_on(left: timedelta, reason: str) -> None:
    block = offered(A10G, RESERVED, capacity_provider="blocks", price_usd_per_hour=0.0, reserved_until=NOW + left)
    selection = selected(wanting("reserved-then-spot"), block, offered(A10G, SPOT))

    assert selection.chosen is not None
    assert (selection.chosen.purchase is RESERVED) == (not reason)
    assert [each.rejection.reason for each in selection.rejected] == (
        [f"what its capacity provider has reserved {reason}"] if reason else []
    )
    assert [each.rejection.is_permanent for each in selection.rejected] == ([not left] if reason else [])


def test_a_reservation_without_an_end_lasts() -> None:
    assert selected(wanting(), make_reserved(make_reservation())).chosen is not None


def test_a_reservation_of_another_type_does_not_satisfy_the_job() -> None:
    definition = replace(needing_gpu(models=("T4",)), purchase=PurchasePolicy.RESERVED)

    selection = selected(definition, make_reserved(instance_type=A10G), offered(T4))

    assert {(each.filter_name, each.offering.purchase) for each in selection.rejected} == {
        ("model", RESERVED),
        ("purchase", ON_DEMAND),
    }
    assert selection.is_permanent


def test_of_two_reservations_for_the_same_the_longer_one_comes_first() -> None:
    soon, late = (make_block(reservation_id=f"cr-{days}", ends_at=NOW + timedelta(days=days)) for days in (1, 2))
    unlimited = make_reservation()

    kept = selected(wanting(), *map(make_reserved, (soon, unlimited, late))).kept

    assert [each.reservation for each in kept] == [unlimited, late, soon]


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(OfferingKey("g5.xlarge", "us-east-1a", RESERVED), id="the reservation was full"),
        pytest.param(zone_scope("us-east-1a", ON_DEMAND), id="the subnet was full"),
        pytest.param(purchase_scope(RESERVED), id="the purchase option"),
    ],
)
def test_what_failed_lately_is_avoided(key: OfferingKey) -> None:
    memory = {key: make_capacity_failure(offering=key, reason="it failed")}

    selection = selected(wanting("reserved-then-spot"), make_reserved(), offered(A10G, SPOT), memory=memory)

    assert [(each.filter_name, each.offering.purchase) for each in selection.rejected] == [
        ("capacity-memory", RESERVED)
    ]


def test_that_spot_is_short_says_nothing_of_it() -> None:
    keys = (zone_scope("us-east-1a", SPOT), purchase_scope(SPOT), OfferingKey("g5.xlarge", "us-east-1a", SPOT))
    memory = {key: make_capacity_failure(offering=key) for key in keys}

    assert selected(wanting(), make_reserved(), memory=memory).chosen is not None


def test_the_row_tells_the_reservation_its_room_and_its_end() -> None:
    rows = explain_rows(selected(wanting(), make_reserved(), make_reserved(make_reservation(starts_at=None))))

    assert json.loads(json.dumps(rows)) == list(rows)
    assert [row["reservation"] for row in rows] == [
        {
            "id": "cr-0de0de0de0de0de00",
            "type": "on-demand-capacity-reservation",
            "state": "active",
            "total": 2,
            "available": 2,
            "starts_at": None,
            "ends_at": None,
        },
        {
            "id": "cr-0b10c0b10c0b10c00",
            "type": "capacity-block",
            "state": "active",
            "total": 4,
            "available": 3,
            "starts_at": "2026-03-14T08:26:53+00:00",
            "ends_at": "2026-03-15T09:26:53+00:00",
        },
    ]


@pytest.mark.parametrize(
    ("reservation", "notice"),
    [
        (
            make_block(),
            "g5.xlarge reserved us-east-1a costs nothing more: Capacity Block cr-0b10c0b10c0b10c00 was paid for "
            "when it was bought; EC2 takes its machines away before its end (2026-03-15 08:56 UTC)",
        ),
        (
            make_reservation(),
            "g5.xlarge reserved us-east-1a costs nothing more: capacity reservation cr-0de0de0de0de0de00 is paid for, "
            "used or not; a machine that outlives it goes on at the on-demand price",
        ),
    ],
)
def test_a_notice_says_what_the_price_of_zero_leaves_out(reservation: Reservation, notice: str) -> None:
    definition = wanting()

    assert find_notices(definition, REVISION, selected(definition, make_reserved(reservation))) == (notice,)
