"""Reservations for jobs of several nodes, which need all machines at once; others: test_selection_reservations."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_offering
from fakes.reservations import make_block, make_reservation, make_reserved
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.selection.rejection import Rejection
from unit.core.selection.test_offering_filters import FILTERS, criteria

BLOCK = "Capacity Block cr-0b10c0b10c0b10c00"
AGAIN_AT = NOW + timedelta(minutes=5)


def problem(reservation: Reservation, machines: int) -> Rejection | None:
    return FILTERS["reservation"](criteria(nodes=machines), make_reserved(reservation))


def test_what_is_not_reserved_has_no_problem() -> None:
    assert FILTERS["reservation"](criteria(nodes=4), make_offering()) is None


@pytest.mark.parametrize("machines", [1, 3])
def test_as_many_free_instances_as_are_needed_are_enough(machines: int) -> None:
    assert problem(make_block(available=3), machines) is None


@pytest.mark.parametrize(
    ("available", "free"), [(3, "3 of the 4 instances"), (0, "0 of the 4 instances"), (-1, "0 of the 4 instances")]
)
def test_fewer_free_instances_are_waited_for(available: int, free: str) -> None:
    reason = f"{free} of {BLOCK} are free, and the job needs 4 at once"

    assert problem(make_block(available=available), 4) == Rejection(reason, is_permanent=False, retry_at=AGAIN_AT)


def test_one_free_instance_is_not_two() -> None:
    rejection = problem(make_block(available=1), 2)

    assert rejection is not None
    assert rejection.reason == f"1 of the 4 instances of {BLOCK} is free, and the job needs 2 at once"


def test_room_on_a_machine_that_runs_is_of_no_use_to_several_nodes() -> None:
    assert problem(make_block(available=0, has_room=True), 1) is None
    assert problem(make_block(available=0, has_room=True), 2) is not None


@pytest.mark.parametrize("state", ["active", "scheduled"])
def test_a_block_never_grows(state: str) -> None:
    reason = f"{BLOCK} has 2 instances, and the job needs 4 at once"

    assert problem(make_block(state=state, total=2, available=2), 4) == Rejection(reason)


def test_a_block_of_one_is_said_so() -> None:
    rejection = problem(make_block(total=1, available=1), 2)

    assert rejection is not None
    assert rejection.reason == f"{BLOCK} has 1 instance, and the job needs 2 at once"


@pytest.mark.parametrize("small", [make_reservation(total=2), make_block(total=0, available=0)])
def test_another_reservation_may_grow_and_what_ec2_does_not_tell_is_not_too_small(small: Reservation) -> None:
    rejection = problem(small, 4)

    assert rejection is not None
    assert not rejection.is_permanent
