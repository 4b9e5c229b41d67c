from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.clock import FakeClock
from relaunch.adapters.aws.ec2.reservations import MAX_AGE, Ec2Reservations
from relaunch.core.offerings.reservations import Reservation, ReservationType
from relaunch.ports import TransientError

SERVICE = "ec2"
BLOCK_ID, OTHER_ID = "cr-0b10c", "cr-0de0d"
START, END = datetime(2026, 11, 2, 11, 30, tzinfo=UTC), datetime(2026, 11, 5, 11, 30, tzinfo=UTC)
BLOCK: dict[str, Any] = {
    "CapacityReservationId": BLOCK_ID,
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "Tenancy": "default",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 3,
    "State": "active",
    "StartDate": START,
    "EndDate": END,
    "EndDateType": "limited",
    "ReservationType": "capacity-block",
}
ASKED = {"CapacityReservationIds": [BLOCK_ID]}


def answer(*entries: dict[str, Any], token: str = "") -> dict[str, Any]:
    return {"CapacityReservations": list(entries), **({"NextToken": token} if token else {})}


def read(stubber: Stubber, *ids: str) -> tuple[Reservation, ...]:
    return Ec2Reservations(stubber.client, FakeClock()).reservations(ids or (BLOCK_ID,))


def test_a_block_is_read_with_its_room_and_its_end(stubber: Stubber) -> None:
    stubber.add_response("describe_capacity_reservations", answer(BLOCK), ASKED)

    assert read(stubber) == (
        Reservation(BLOCK_ID, ReservationType.CAPACITY_BLOCK, "p5.48xlarge", "us-east-1a", "active", 4, 3, START, END),
    )


def test_a_capacity_reservation_without_an_end_is_read(stubber: Stubber) -> None:
    # AWS documents ReservationType, and answers without it for some (dstackai/dstack PR 1977).
    left_out = ("ReservationType", "EndDate", "StartDate", "Tenancy", "InstancePlatform")
    entry = {name: value for name, value in BLOCK.items() if name not in left_out}
    stubber.add_response("describe_capacity_reservations", answer(entry), ASKED)

    (reservation,) = read(stubber)

    assert (reservation.type, reservation.ends_at, reservation.obstacle) == (ReservationType.ON_DEMAND, None, "")
    assert reservation.is_launchable


@pytest.mark.parametrize(("status", "is_launchable"), [("launchable", True), ("unlaunchable", False)])
def test_one_of_ultraservers_says_whether_instances_are_launched(stubber, status: str, *, is_launchable: bool) -> None:
    stubber.add_response("describe_capacity_reservations", answer({**BLOCK, "LaunchStatus": status}), ASKED)

    assert read(stubber)[0].is_launchable is is_launchable


@pytest.mark.parametrize(
    ("fields", "obstacle"),
    [
        ({"InstancePlatform": "Windows"}, "is for Windows, and machines run Linux"),
        ({"Tenancy": "dedicated"}, "has tenancy dedicated, and machines have default"),
        ({"Interruptible": True}, "may be taken back within two minutes, which is not supported"),
    ],
)
def test_one_that_no_machine_fits_says_why(stubber: Stubber, fields: dict[str, Any], obstacle: str) -> None:
    stubber.add_response("describe_capacity_reservations", answer({**BLOCK, **fields}), ASKED)

    assert read(stubber)[0].obstacle == obstacle


def test_all_pages_are_read(stubber: Stubber) -> None:
    asked = {"CapacityReservationIds": [BLOCK_ID, OTHER_ID]}
    stubber.add_response("describe_capacity_reservations", answer(BLOCK, token="2"), asked)
    other = {**BLOCK, "CapacityReservationId": OTHER_ID}
    stubber.add_response("describe_capacity_reservations", answer(other), {**asked, "NextToken": "2"})

    assert [each.reservation_id for each in read(stubber, BLOCK_ID, OTHER_ID)] == [BLOCK_ID, OTHER_ID]


def test_a_page_that_names_itself_as_the_next_one_is_no_endless_loop(stubber: Stubber) -> None:
    for _ in range(2):
        stubber.add_response("describe_capacity_reservations", answer(BLOCK, token="2"))

    with pytest.raises(TransientError, match="token of that page"):
        read(stubber)


def test_one_that_ec2_does_not_know_does_not_hide_the_others(stubber: Stubber) -> None:
    code = "InvalidCapacityReservationId.NotFound"
    stubber.add_client_error("describe_capacity_reservations", code, "The ID does not exist")
    stubber.add_response("describe_capacity_reservations", answer(BLOCK), ASKED)
    stubber.add_client_error("describe_capacity_reservations", code, "The ID does not exist")

    assert [each.reservation_id for each in read(stubber, BLOCK_ID, OTHER_ID)] == [BLOCK_ID]


def test_the_launches_of_one_batch_share_an_answer_and_later_ones_see_what_changed(stubber: Stubber) -> None:
    clock = FakeClock()
    source = Ec2Reservations(stubber.client, clock)
    stubber.add_response("describe_capacity_reservations", answer(BLOCK), ASKED)
    assert source.reservations((BLOCK_ID,))[0].available == 3

    clock.advance(MAX_AGE.total_seconds() - 1)
    assert source.reservations((BLOCK_ID,))[0].available == 3
    clock.advance(1)
    stubber.add_response("describe_capacity_reservations", answer({**BLOCK, "AvailableInstanceCount": 0}), ASKED)
    assert source.reservations((BLOCK_ID,))[0].available == 0
    stubber.add_response("describe_capacity_reservations", answer(), {"CapacityReservationIds": [OTHER_ID]})
    assert source.reservations((OTHER_ID,)) == ()


def test_without_ids_nobody_is_asked(stubber: Stubber) -> None:
    assert Ec2Reservations(stubber.client, FakeClock()).reservations(()) == ()


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation", "InternalError"])
def test_that_they_cannot_be_read_is_an_error_to_wait_for(stubber: Stubber, code: str) -> None:
    stubber.add_client_error("describe_capacity_reservations", code, "no")

    with pytest.raises(TransientError, match=f"reservations {BLOCK_ID} cannot be read: .*{code}"):
        read(stubber)


def test_it_is_asked_again_after_an_error(stubber: Stubber) -> None:
    source = Ec2Reservations(stubber.client, FakeClock())
    stubber.add_client_error("describe_capacity_reservations", "InternalError", "no")
    stubber.add_response("describe_capacity_reservations", answer(BLOCK), ASKED)

    with pytest.raises(TransientError):
        source.reservations((BLOCK_ID,))
    assert len(source.reservations((BLOCK_ID,))) == 1
