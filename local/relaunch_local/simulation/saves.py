"""What is checked of each job and machine that the application saves."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.machines.machine import Machine
from relaunch_local.simulation.checks.market import check_market_wait, check_move

if TYPE_CHECKING:
    from relaunch_local.simulation.account import SimulatedAccount


def job_saved(account: "SimulatedAccount", job: Job, timeline: Sequence[TimelineEntry]) -> None:
    """Check a job that was created or saved."""
    account.trace.saved(job, timeline)
    before = account.invariants.jobs.get(job.job_id)
    account.invariants.job_saved(job, timeline, is_new=job.version == 1)
    account.metrics.job_saved(before, job, timeline)
    if job.definition.target is not Target.ECS:
        return
    recipes = account.scenario.recipes
    now = account.clock.now()
    was_away = account.facts.outage_time(job.accepted_at, now) > timedelta(0)
    has_cap = job.definition.max_price_usd_per_hour is not None
    is_sold = not (has_cap or was_away) and account.on_demand.is_sold_to(job.definition)
    check_market_wait(account.invariants.check, job, recipes, account.objects, now, is_sold=is_sold)
    check_move(account.invariants.check, before, job, recipes, account.objects, now)
    account.choices.job_saved(before, job)
    account.wait_reasons.job_saved(before, job)
    account.machines.claims.job_saved(before, job)
    account.agents.job_saved(before, job)
    account.deadlines.job_saved(job)
    account.refusals.job_saved(job)


def machine_saved(account: "SimulatedAccount", machine: Machine) -> None:
    """Check a machine that was created or saved."""
    before = account.machines.machines.get(machine.machine_id)
    account.trace.machine_saved(before, machine)
    account.metrics.machine_saved(before, machine)
    if before is None:
        account.choices.machine_requested(machine, account.invariants.jobs)
    account.agents.machine_saved(before, machine)
    account.absent_agents.machine_saved(before, machine)
    account.free_hour.machine_saved(machine)
    account.machine_indexes.note(machine)
    account.machines.machine_saved(machine)
