"""Count the jobs that wait.

Two reads of indexes, both bounded by the limits of the stack, however many jobs there are. Indexes lag behind the
table, by less than a second as a rule: the limits may be exceeded by the jobs that are accepted in that time, and by
one for each function that has counted and has not created its job yet.
"""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.waiting_jobs import (
    WaitingJobs,
    count_waiting,
    limit_of_caller,
    limits_of_requests,
    read_limit,
)
from relaunch.ports import JobDependencies


def count_waiting_jobs(definition: JobDefinition, deps: JobDependencies) -> WaitingJobs:
    """Count the waiting jobs of a definition and of the stack.

    Raises:
        TransientError: throttled or unreachable.
    """
    return _without_slot_holders(definition, deps.jobs.load_open(read_limit(deps.limits)), deps)


def find_reached_limit(
    definition: JobDefinition, deps: JobDependencies, *, through_api: bool = False, caller: str = ""
) -> str:
    """Return why no further job of the definition may wait, empty if it may; as a rule by one read.

    `through_api`: a request of job_api would start it, that of `caller`, if the URL was called.

    Raises:
        TransientError: throttled or unreachable.
    """
    open_jobs = deps.jobs.load_open(read_limit(deps.limits))
    limits: tuple[int, ...] = (definition.max_waiting_jobs, deps.limits.max_waiting_jobs)
    if through_api:
        of_requests = limits_of_requests(*limits, has_triggers=bool(definition.triggers))
        limits = (*of_requests, limit_of_caller(deps.limits.max_waiting_jobs))
    if len(open_jobs) < min(limits):
        return ""
    waiting = _without_slot_holders(definition, open_jobs, deps, caller)
    return waiting.reached_limit_of_requests if through_api else waiting.reached_limit


def _without_slot_holders(
    definition: JobDefinition, open_jobs: list[str], deps: JobDependencies, caller: str = ""
) -> WaitingJobs:
    slot_holders = deps.jobs.load_slot_holders(deps.limits.max_running_jobs)
    return count_waiting(definition, open_jobs, slot_holders, deps.limits, caller)
