import pytest

from policy.figures import Sample, difference, figures
from policy.replay import Outcome


def sample(block: int, optimum: float, **costs: float) -> Sample:
    outcomes = {title: Outcome(cost, 0.0 if cost < 3 else 1.0, 2, ()) for title, cost in costs.items()}
    return Sample(("a", block), 0, optimum, outcomes)


def test_a_policy_is_measured_over_the_sum_of_the_optimum():
    first, _ = figures([sample(0, 1.0, a=1.2, b=2.0), sample(1, 3.0, a=3.2, b=4.0)])

    assert (first.policy, first.over) == ("a", pytest.approx(10.0))
    assert (first.met, first.starts, first.cost) == (0.5, 2.0, pytest.approx(2.2))


def test_the_interval_is_that_of_resampled_blocks():
    same = figures([sample(block, 1.0, a=1.1) for block in range(20)])[0]
    mixed = figures([sample(block, 1.0, a=1.0 + block % 2) for block in range(20)])[0]

    assert same.interval == (pytest.approx(10.0), pytest.approx(10.0))
    low, high = mixed.interval
    assert 20 < low < mixed.over < high < 80


def test_a_difference_is_paired():
    points, (low, high) = difference([sample(block, 1.0, a=1.5 + block, b=1.6 + block) for block in range(9)], "a", "b")

    assert (points, low, high) == (pytest.approx(-10.0), pytest.approx(-10.0), pytest.approx(-10.0))
