"""Request machines in the place of those that a job of several nodes loses, while its tasks save; keep the others."""

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.events import SurvivorsLeft
from relaunch.core.lifecycle.gangs import needs_replacements
from relaunch.core.lifecycle.survivors import choose_survivors
from relaunch.core.machines.groups import Survivors
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection
from relaunch.ports import LaunchDependencies
from relaunch.usecases.advance_job import apply_event
from relaunch.usecases.choose_placement import select_offerings
from relaunch.usecases.claim_machine import claim_machine
from relaunch.usecases.follow_market import UnreadableProgressError, follow_market

_FILTER = "survivors"
"""The filter that leaves the offering of the machines that live."""


def replace_lost(job: Job, deps: LaunchDependencies) -> Job:
    """Request as many machines as are lost, of the same offering, or give all back; return the job after that.

    The job whose machines do not know of the loss yet is returned as it is: they tell it once they do.

    Raises:
        TransientError: a temporary error; retry.
        StaleWriteError: the job was changed since it was loaded.
    """
    found = _choose(job, deps)
    if found is None:
        return job
    if isinstance(found, SurvivorsLeft):
        return apply_event(job, found, deps)
    selection = _select_same(job, found, deps)
    if isinstance(selection, SurvivorsLeft):
        return apply_event(job, selection, deps)
    deps.log.decided("survivors kept", job_id=job.job_id, reason=found.reason)
    claimed = claim_machine(job, selection, deps, is_handover=True, survivors=found)
    after = claimed if isinstance(claimed, Job) else job
    if not needs_replacements(after):
        return after
    # A limit of the stack, a budget, or how many machines may start: nothing is held for what others have.
    return apply_event(after, SurvivorsLeft("no other machine may be requested for it now"), deps)


def _choose(job: Job, deps: LaunchDependencies) -> Survivors | SurvivorsLeft | None:
    placement = job.current_attempt.placement
    # Stored before the job hears of it; its machine gets to know it after the job.
    warned = {each.instance_id for each in placement.ranks if deps.jobs.load_warning(each.instance_id) is not None}
    machines = [deps.machines.load_machine(each.machine_id) for each in placement.ranks]
    return choose_survivors(job, machines, warned, deps.clock.now())


def _select_same(job: Job, kept: Survivors, deps: LaunchDependencies) -> Selection | SurvivorsLeft:
    """Return the selection with the offering of the machines that live alone, or why it is not chosen again."""
    key = job.current_attempt.placement.offering
    selection, available = select_offerings(job, deps, kept.missing)
    try:
        wanted = follow_market(job, selection, available, deps)
    except UnreadableProgressError as error:
        return SurvivorsLeft(str(error))
    same = tuple(each for each in wanted.kept if each.key == key and each.is_own_machine)
    if not same:
        rejections = (each.rejection.reason for each in wanted.rejected if each.offering.key == key)
        return SurvivorsLeft(f"{key} is not selected again: {next(rejections, 'it is not offered any more')}")
    others = (each for each in wanted.kept if each not in same)
    passed = (RejectedOffering(each, _FILTER, Rejection(kept.reason, is_permanent=False)) for each in others)
    counts = (*wanted.filter_counts, (_FILTER, len(wanted.kept), len(same)))
    return Selection(same, (*passed, *wanted.rejected), counts, wanted.work, wanted.market_reason)
