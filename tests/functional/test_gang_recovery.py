"""Starts and interruptions of gangs, composed of the steps of each way."""

from random import Random

import pytest

from benchmarks import gang_steps as steps
from benchmarks.gang_lives import Machine
from benchmarks.gang_recovery import _in_turns, giving_back, keeping, lives, relaunch, skypilot
from benchmarks.gang_stack import live

ALIKE = [Machine(90.0, 120.0)] * 4


def dice() -> Random:
    return Random(1)  # noqa: S311 - the same steps every time


def test_some_at_a_time_take_turns_and_all_at_once_as_long_as_the_longest():
    assert _in_turns([10.0] * 4, 4) == 10.0
    assert _in_turns([10.0] * 5, 4) == 20.0
    assert _in_turns([10.0, 2.0, 2.0, 2.0, 3.0], 4) == 10.0
    assert _in_turns([1.0, 2.0, 3.0], 16) == 3.0


def test_relaunch_pulls_while_a_machine_boots_and_adds_its_calls():
    life = giving_back(ALIKE, ALIKE, 1, dice())

    # 27 s of boot, then 120 s of pull; the tasks are placed at 90 s.
    assert 147.0 + 1.0 <= life.start <= 147.0 + 1.6
    assert life.own_start == pytest.approx(life.start - 147.0)
    assert 2.3 <= life.sigterm <= 3.0
    assert life.again == pytest.approx(life.own_again + steps.SAVING + 147.0 + steps.PROGRAM)
    assert life.own_again < 3.0
    assert life.lost == 0.0


def test_the_slowest_machine_holds_all():
    slow = [*ALIKE[:3], Machine(400.0, 120.0)]

    assert 401.0 < relaunch(slow, ALIKE, 1, dice()).start < 402.5
    assert skypilot(slow, ALIKE, 1, dice()).start > 520.0


def test_skypilot_pulls_after_the_boot_and_hears_of_an_interruption_when_it_looks():
    life = skypilot(ALIKE, ALIKE, 1, dice())

    least = 90.0 + 120.0 + steps.SKYPILOT_RUNTIME[0] + steps.SKYPILOT_SET_UP
    assert least < life.start < least + 60.0
    assert life.own_start == pytest.approx(life.start - 147.0)
    assert steps.WARNING < life.sigterm < steps.WARNING + 15 + 5 + 5 + 30 + 6
    # All are lost: none is left to be stopped when it looks.
    assert skypilot(ALIKE, ALIKE, 4, dice()).sigterm == steps.WARNING
    assert life.idle > relaunch(ALIKE, ALIKE, 1, dice()).idle


def test_both_ways_have_the_same_machines_and_every_time_the_same_lives():
    drawn = lives(4, 20)

    assert drawn == lives(4, 20)
    assert {len(each) for each in drawn.values()} == {20}
    bare = [
        {round(life.start - life.own_start, 6) for life in lived_by} for lived_by in zip(*drawn.values(), strict=True)
    ]
    # A start is boot and pull, alike for all, beside its own.
    assert all(len(each) == 1 for each in bare)


def test_survivors_that_are_kept_wait_for_the_new_machines_alone():
    slow = [Machine(60.0, 100.0), *[Machine(300.0, 120.0)] * 3]

    kept = keeping(ALIKE, slow, 1, dice())
    assert kept.again < giving_back(ALIKE, slow, 1, dice()).again - 200.0
    assert kept.own_again < 4.0


def test_survivors_are_kept_where_the_application_would():
    many = [*ALIKE] * 4

    assert relaunch(ALIKE, ALIKE, 1, dice()) == keeping(ALIKE, ALIKE, 1, dice())
    assert relaunch(ALIKE, ALIKE, 3, dice()) == giving_back(ALIKE, ALIKE, 3, dice())
    assert relaunch(many, many, 2, dice()) == giving_back(many, many, 2, dice())


def test_the_simulated_stack_starts_a_gang_and_starts_it_again_on_the_machines_it_is_given():
    given = [Machine(90.0, 120.0), Machine(60.0, 100.0)]
    life = live(given, [Machine(50.0, 200.0), Machine(70.0, 100.0)], 1, dice())

    assert life.start - life.own_start == pytest.approx(147.0, abs=1.0)
    assert 0.5 < life.own_start < 15.0
    assert 0.5 < life.sigterm < 10.0
    # One is kept, and another one boots and pulls while the ranks save.
    assert life.again - life.own_again == pytest.approx(215.0 + steps.PROGRAM, abs=1.0)
    assert 0.5 < life.own_again < 15.0
    # The warned machine is left to EC2, and paid for until that ends it; the new one is from when it is launched.
    least = 2 * (life.start - life.own_start + steps.PROGRAM + life.again)
    assert least - 15.0 < life.idle < least + steps.WARNING


def test_the_simulated_stack_gives_all_back_that_live_if_most_are_lost():
    # One may be asked for before the second warning is heard of.
    life = live([Machine(60.0, 100.0)] * 3, [Machine(50.0, 100.0)] * 4, 2, dice())

    assert life.again - life.own_again == pytest.approx(115.0 + steps.SAVING + steps.PROGRAM, abs=1.0)
