"""How long jobs take that train one after the other, because few machines of our own may live at once."""

from collections.abc import Iterable
from datetime import timedelta

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch_local.simulation.aws.recipes import work_of
from relaunch_local.simulation.scenario import Scenario


def time_in_turn(jobs: Iterable[Job], scenario: Scenario) -> timedelta:
    """Return how long the jobs that are not over train on as many machines as may live; 0 without a limit.

    None trains for longer than its `max_runtime`, and each from its beginning at worst. Of jobs of several nodes as
    many train at once as have all of their machines.
    """
    machines = scenario.machines.limits.totals(is_handover=False).machines
    if not scenario.machines.types or not machines:
        return timedelta(0)
    waiting = (job.definition for job in jobs if job.definition.target is Target.ECS and not job.state.is_final)
    times = (
        min(work_of(scenario.recipes[each.name]) / scenario.slowest(each.name), each.max_runtime)
        / max(machines // each.nodes, 1)
        for each in waiting
    )
    return sum(times, timedelta(0))
