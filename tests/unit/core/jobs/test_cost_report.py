"""Costs by day: what they are added up by, and in which order they are shown."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from fakes.builders import NOW, make_job, make_placement, make_running_attempt
from relaunch.core.jobs.cost import CostEntry, CostKey, cost_key, task_costs
from relaunch.core.jobs.cost_report import CostRow, months_between, sum_costs
from relaunch.core.machines.charges import DayCost

KEY = CostKey("resnet", "acme/vision", "github", "g5.xlarge", "spot")
OTHER = CostKey("bert", "", "arn:aws:iam::111122223333:user/sara", "p5.48xlarge", "on-demand")
FIRST = date(2026, 11, 30)
SECOND = date(2026, 12, 1)


def test_a_job_is_added_up_by_its_definition_its_repository_and_who_asked_for_it():
    job = make_job()
    offering = make_placement().offering
    pushed = replace(
        job, trigger=replace(job.trigger, source="github", environment={"RELAUNCH_GIT_REPOSITORY": "acme/vision"})
    )
    assert cost_key(pushed, offering) == KEY
    asked = replace(job, trigger=replace(job.trigger, caller="arn:aws:iam::111122223333:user/sara"))
    assert cost_key(asked, None) == CostKey("resnet", "", "arn:aws:iam::111122223333:user/sara", "", "")


def test_a_task_elsewhere_costs_its_price_on_each_day_and_is_compared_with_on_demand():
    midnight = NOW.replace(hour=0, minute=0, second=0) + timedelta(days=1)
    placement = make_placement(price_usd_per_hour=1.0, limit_usd_per_hour=4.0)
    attempt = replace(make_running_attempt(), placement=placement, started_at=midnight - timedelta(hours=1))
    job = make_job(attempt=attempt)
    entry = task_costs(job, attempt, timedelta(hours=3))
    first = midnight.date() - timedelta(days=1)
    second = midnight.date()
    assert entry.days == (DayCost(first, 1.0, 4.0, 1.0), DayCost(second, 2.0, 8.0, 2.0))

    unpriced = replace(attempt, placement=replace(placement, price_usd_per_hour=0.0, limit_usd_per_hour=0.0))
    assert task_costs(job, unpriced, timedelta(hours=1)).days == (DayCost(first, 0.0, 0.0, 1.0, 1.0),)
    # One whose start nobody saw is counted from its request.
    unseen = replace(attempt, started_at=None)
    (day,) = task_costs(job, unseen, timedelta(hours=1)).days
    assert day.day == placement.requested_at.date()


@pytest.mark.parametrize(
    ("first", "last", "months"),
    [
        (date(2026, 11, 3), date(2026, 11, 29), ("2026-11",)),
        (date(2025, 11, 30), date(2026, 2, 1), ("2025-11", "2025-12", "2026-01", "2026-02")),
    ],
)
def test_months_between(first: date, last: date, months: tuple[str, ...]):
    assert months_between(first, last) == months


PAID = [
    CostEntry(KEY, (DayCost(FIRST, 1.0, 4.0, 2.0), DayCost(SECOND, 2.0, 4.0, 2.0))),
    CostEntry(OTHER, (DayCost(FIRST, 9.0, 9.0, 0.1),)),
]
RUNNING = [CostEntry(KEY, (DayCost(SECOND, 0.5, 2.0, 1.0, 1.0),))]


def test_the_highest_costs_come_first_and_what_runs_is_part_of_them():
    assert sum_costs(PAID, RUNNING, ("definition",)) == [
        CostRow(("bert",), 9.0, 9.0, 0.1),
        CostRow(("resnet",), 3.5, 10.0, 5.0, 1.0, 0.5),
    ]
    assert sum_costs(PAID, RUNNING, ()) == [CostRow((), 12.5, 19.0, 5.1, 1.0, 0.5)]
    assert sum_costs([], [], ()) == []


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        (("day", "definition"), [("2026-11-30", "bert"), ("2026-11-30", "resnet"), ("2026-12-01", "resnet")]),
        (("month",), [("2026-11",), ("2026-12",)]),
        (("repository", "caller"), [("", OTHER.caller), ("acme/vision", "github")]),
        (("type", "purchase"), [("p5.48xlarge", "on-demand"), ("g5.xlarge", "spot")]),
    ],
)
def test_groups(by: tuple[str, ...], groups: list[tuple[str, ...]]):
    assert [each.group for each in sum_costs(PAID, RUNNING, by)] == groups


def test_the_saving_and_the_days_of_an_entry():
    assert CostRow((), 1.0, 4.0).saving == 0.75
    assert CostRow((), 0.0, 0.0).saving is None
    assert PAID[0].within(SECOND, SECOND).days == PAID[0].days[1:]
