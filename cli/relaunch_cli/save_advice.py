"""How often a training should save, for `explain` and `plan`: by what its jobs measured, and what interrupts them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from relaunch.core.jobs.cost import attempt_price
from relaunch.core.selection.checkpoint_interval import SaveTimes, advise

if TYPE_CHECKING:
    from relaunch.core.jobs.state import NotedProgress
    from relaunch.ports import JobHistory, JobListing
    from relaunch.usecases.plan_jobs import Plan

_MOST_READ = 100


def advise_job(history: "JobHistory") -> tuple[str, ...]:
    """Return how often the training of an open job should save; nothing where its save time was not measured.

    How often it is interrupted is what its newest selection expected of the offering that it runs on.
    """
    job = history.job
    attempt = job.attempt
    if job.noted is None or attempt is None or job.state.is_final:
        return ()
    chosen = attempt.placement.offering
    of_type = (chosen.instance_type, chosen.purchase.value)
    rows = [row for each in history.selections for row in each.rows]
    rates = [row["interruptions_per_hour"] for row in rows if (row["instance_type"], row["purchase"]) == of_type]
    if not rates or not isinstance(rates[-1], int | float):
        return ()
    said = advise(_times(job.noted, rates[-1]), attempt_price(attempt).usd_per_hour or None)
    return (said,) if said else ()


def with_save_advice(plans: "Sequence[Plan]", jobs: "JobListing") -> "list[Plan]":
    """Return the plans; those of a definition whose newest jobs measured their saves say how often it should."""
    if not any(plan.selection is not None and plan.selection.kept for plan in plans):
        return list(plans)
    listed, _ = jobs.list_jobs(_MOST_READ)
    measured: dict[str, NotedProgress] = {}
    for job in listed:
        if job.noted is not None and job.noted.save_seconds and job.noted.interval_seconds:
            measured.setdefault(job.definition, job.noted)
    return [_with_advice(plan, measured) for plan in plans]


def _with_advice(plan: "Plan", measured: "Mapping[str, NotedProgress]") -> "Plan":
    noted = measured.get(plan.definition.name)
    if noted is None or plan.selection is None or not plan.selection.kept:
        return plan
    chosen = plan.selection.kept[0]
    rate = chosen.interruption_rate_of(plan.definition.nodes)
    said = advise(_times(noted, rate), chosen.expected_usd_per_hour)
    return replace(plan, save_notices=(f"at its latest measured job, {said}",)) if said else plan


def _times(noted: "NotedProgress", interruptions_per_hour: float) -> SaveTimes:
    save, interval = (timedelta(seconds=each) for each in (noted.save_seconds, noted.interval_seconds))
    return SaveTimes(save, interval, interruptions_per_hour)
