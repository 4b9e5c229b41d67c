from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.reservations import make_block, make_reservation, make_reserved

END = NOW + timedelta(days=1)


def test_the_instances_of_a_block_are_taken_away_half_an_hour_before_its_end() -> None:
    assert make_block(ends_at=END).usable_until == END - timedelta(minutes=30)
    assert make_reservation(ends_at=END).usable_until == END
    assert make_reservation(ends_at=None).usable_until is None


@pytest.mark.parametrize(
    ("state", "is_active", "is_over"),
    [
        ("active", True, False),
        ("scheduled", False, False),
        ("payment-pending", False, False),
        ("pending", False, False),
        ("delayed", False, False),
        ("a state of later", False, False),
        ("expired", False, True),
        ("cancelled", False, True),
        ("failed", False, True),
        ("payment-failed", False, True),
    ],
)
def test_only_an_active_reservation_can_be_used_and_some_never_will_be(
    state: str, *, is_active: bool, is_over: bool
) -> None:
    reservation = make_block(state=state)

    assert (reservation.is_active, reservation.is_over) == (is_active, is_over)


def test_a_reservation_is_named_as_aws_does() -> None:
    assert str(make_block()) == "Capacity Block cr-0b10c0b10c0b10c00"
    assert str(make_reservation()) == "capacity reservation cr-0de0de0de0de0de00"


def test_what_is_reserved_is_not_interrupted_and_saves_nothing_that_is_known() -> None:
    offering = make_reserved()

    assert (offering.interruption_rate, offering.saving, offering.spot_ratio) == (0.0, None, None)
    assert offering.expected_usd_per_hour == 0.0
    assert str(offering.key) == "g5.xlarge reserved us-east-1a"
