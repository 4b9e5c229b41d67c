"""How long jobs take that train in turn, because few may run, or few machines of our own may live, at once."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch_local.simulation.aws.recipes import work_of
from relaunch_local.simulation.scenario import Scenario

# Of a job: its launch, and another after a failure of its start.
_LAUNCHES = timedelta(minutes=15)
# Four attempts of an hour at most, after which a job that gains no step fails.
_STALLED = timedelta(hours=4)


def time_in_turn(jobs: Iterable[Job], scenario: Scenario, since: datetime) -> timedelta:
    """Return how long the jobs train that were not over at a time, as many at once as may run.

    None trains for longer than its `max_runtime`, and each from its beginning at worst. Of jobs of several nodes as
    many train at once as have all of their machines.
    """
    waiting = (job.definition for job in jobs if job.definition.target is Target.ECS and _goes_on(job, since))
    times = (
        (min(_longest(each, scenario), each.max_runtime) + _LAUNCHES) / _at_once(each, scenario) for each in waiting
    )
    return sum(times, timedelta(0))


def _longest(definition: JobDefinition, scenario: Scenario) -> timedelta:
    recipe = scenario.recipes[definition.name]
    work = work_of(recipe) / scenario.slowest(definition.name)
    return work if recipe.stalls_after_seconds is None else max(work, _STALLED)


def _goes_on(job: Job, since: datetime) -> bool:
    return not job.state.is_final or (job.ended_at is not None and job.ended_at > since)


def _at_once(definition: JobDefinition, scenario: Scenario) -> int:
    """Return how many jobs of a definition may run at once, if no others do."""
    slots = min(definition.max_running_jobs, scenario.limits.max_running_jobs)
    if definition.purchase.options == {PurchaseOption.RESERVED}:
        lasting = [each.total // definition.nodes for each in scenario.machines.reservations if each.lasts]
        slots = min(slots, max(sum(lasting), 1))
    machines = scenario.machines.limits.totals(is_handover=False).machines
    if not scenario.machines.types or not machines:
        return slots
    return max(min(slots, machines // definition.nodes), 1)
