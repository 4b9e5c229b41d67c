"""What a machine offers, and what a task takes of it."""

import pytest

from relaunch.core.machines.machine import NOTHING, Resources

MACHINE = Resources(4096, 15_000, 1.0, 2)


@pytest.mark.parametrize(
    ("task", "fits"),
    [
        (NOTHING, True),
        (MACHINE, True),
        (Resources(4097), False),
        (Resources(0, 15_001), False),
        (Resources(gpus=1.01), False),
        (Resources(neuron_devices=3), False),
    ],
)
def test_every_resource_must_suffice(task: Resources, *, fits: bool):
    assert MACHINE.holds(task) is fits


def test_three_thirds_of_a_gpu_fit():
    third = Resources(gpus=1 / 3)

    assert MACHINE.less(third + third).holds(third)


def test_less_than_nothing_is_nothing():
    assert NOTHING.less(MACHINE) == NOTHING


def test_the_least_of_several():
    assert Resources.least([MACHINE, Resources(8192, 10_000, 4.0)]) == Resources(4096, 10_000, 1.0, 0)
    with pytest.raises(ValueError, match="empty"):
        Resources.least([])


def test_the_most_and_the_least_are_taken_of_each_resource():
    first, second = Resources(1, 8, 1.0), Resources(2, 4, 0.5)

    assert Resources.most((first, second)) == Resources(2, 8, 1.0)
    assert Resources.least((first, second)) == Resources(1, 4, 0.5)
