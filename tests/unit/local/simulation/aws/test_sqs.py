"""Which receives of a message the simulation may disturb, and when its death is a bug."""

from datetime import UTC, datetime

import pytest

from relaunch_local.simulation.aws.sqs import Message

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def received(receives: int, disturbed: int, early: int = 0) -> Message:
    numbers = range(1, receives + 1)
    return Message(
        *("WarningsQueue", 1, "{}", NOW, 7),
        receives=receives,
        early_receives=set(numbers[:early]),
        disturbed_receives=set(numbers[early : early + disturbed]),
    )


@pytest.mark.parametrize(
    ("receives", "disturbed", "early", "may_be"),
    [(5, 4, 0, True), (6, 5, 0, False), (6, 3, 2, False), (5, 2, 2, True)],
)
def test_two_receives_that_had_something_to_do_are_left_undisturbed(receives, disturbed, early, may_be):
    assert received(receives, disturbed, early).may_be_disturbed is may_be


@pytest.mark.parametrize(("disturbed", "early", "was"), [(5, 0, False), (6, 0, True), (5, 2, True), (3, 2, False)])
def test_a_message_that_had_two_such_receives_and_died_is_a_bug(disturbed, early, was):
    assert received(7, disturbed, early).was_disturbed is was
