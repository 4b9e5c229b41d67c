"""What jobs have shown of their speed: each attempt counts once, newer ones more, and only of the same work."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.definitions.accelerator import Accelerators
from relaunch.core.selection.rates import (
    KEPT_ATTEMPTS,
    KEPT_FOR,
    ObservedRate,
    RateRecord,
    learned_rates,
    with_rate,
    work_of,
)
from relaunch.core.selection.speeds import LearnedRate

DEFINITION = make_definition(command=("train",))
NONE = RateRecord(DEFINITION.name, "2x A10G")
TWO_A10G = Accelerators("A10G", 2)
DAY = timedelta(days=1)


def rate(job: str = "a", steps_per_second: float = 1.0, *, attempt: int = 1, step: int = 100, days: float = 0, **more):
    work = more.pop("work", work_of(DEFINITION))
    return ObservedRate(job, attempt, step, NOW - days * DAY, steps_per_second, work, **more)


def record(rates: Sequence[ObservedRate]) -> RateRecord:
    found = NONE
    for each in rates:
        found = with_rate(found, each)
    return found


def learned(*rates: ObservedRate) -> LearnedRate | None:
    return learned_rates([record(rates)], DEFINITION, NOW).get(TWO_A10G)


def test_an_attempt_counts_once_in_any_order_and_by_its_newest_checkpoint() -> None:
    first = rate(days=1)
    second = rate(steps_per_second=2.0, step=200)
    other = rate("b", days=0.5)

    found = {record(order) for order in permutations((first, second, first, other, second))}

    assert found == {replace(NONE, observed=(other, second))}
    assert with_rate(record([second]), first) == record([second])
    assert with_rate(kept := record([second]), second) is kept, "nothing is written for it"


def test_the_newest_attempts_are_kept_and_an_older_one_changes_nothing() -> None:
    full = record([rate(str(number), days=20 - number) for number in range(KEPT_ATTEMPTS)])

    newer = with_rate(full, rate("newer"))

    assert [each.job_id for each in newer.observed] == [*map(str, range(1, KEPT_ATTEMPTS)), "newer"]
    assert with_rate(full, rate("older", days=30)) is full
    assert full.forgotten_at == NOW - (20 - KEPT_ATTEMPTS + 1) * DAY + KEPT_FOR


def test_of_few_jobs_the_next_may_be_a_tenth_off_on_both_sides() -> None:
    assert learned() is None
    assert learned(rate(save_seconds=30)) == LearnedRate(pytest.approx(1 / 1.1), 1.0, pytest.approx(1.1), 1, 30)
    again = learned(rate(), rate(attempt=2))
    assert again is not None
    assert (again.jobs, again.slow) == (1, pytest.approx(1 / 1.1)), "its attempts are of one job"
    assert learned(rate(), rate("b", 2.0), rate("c", 3.0)) == LearnedRate(1.0, 2.0, 3.0, 3)


def test_what_is_newer_counts_more_and_in_the_end_nothing_is_left() -> None:
    old = [rate(str(number), 1.0, days=50) for number in range(2)]
    new = [rate("x", 2.0), rate("y", 2.0)]

    found = learned(*old, *new)

    assert found is not None
    assert (found.slow, found.middle, found.jobs) == (2.0, 2.0, 4), "two of 50 days ago weigh a sixth of one"
    assert learned(rate(days=60)) is None


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ({"command": ("train", "--batch", "64")}, True),
        ({"environment": {"BATCH": "64"}}, True),
        ({"task_definition": "other"}, True),
        ({"container": "other"}, True),
        ({"total_steps": 7}, False),
        ({"estimated_duration": DAY}, False),
    ],
)
def test_another_command_or_environment_is_other_work(changed: dict[str, object], is_other: bool) -> None:
    other = rate(work=work_of(replace(DEFINITION, **changed)))  # type: ignore[arg-type]

    assert (learned(other) is None) is is_other
