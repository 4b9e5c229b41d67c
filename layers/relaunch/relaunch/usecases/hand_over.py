"""Hand a running task over to its next machine: because EC2 takes the machine away, or its market policy wants spot."""

from dataclasses import replace

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import Measured, measure_overheads, measured_so_far
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.events import MoveDeclined, NextMachineReady, TimePassed
from relaunch.core.lifecycle.machine_waits import needs_next_machine
from relaunch.core.lifecycle.market_choice import choose_again, choose_return, is_in_market, narrow
from relaunch.core.lifecycle.moves import (
    decline_so_soon,
    is_last_moment,
    may_move,
    next_move_at,
    pools_to_move_to,
    resumable_progress,
    why_it_stays,
)
from relaunch.core.lifecycle.paces import pools_at_pace, running_pace
from relaunch.core.lifecycle.spot_pools import find_pools
from relaunch.core.market.policies import policy_named
from relaunch.core.market.situation import Action
from relaunch.core.selection.selection import Selection
from relaunch.ports import LaunchDependencies, PortError
from relaunch.usecases.advance_job import apply_event
from relaunch.usecases.choose_placement import choose_placement, select_offerings
from relaunch.usecases.claim_machine import claim_machine, find_machines
from relaunch.usecases.find_checkpoints import newest_of
from relaunch.usecases.load_offerings import AvailableOfferings
from relaunch.usecases.replace_lost import replace_lost


def hand_over(job: Job, deps: LaunchDependencies) -> Job:
    """Request the next machine of a task that EC2 takes the machine away from, another one if EC2 refused that.

    A task that trains on is stopped once the next machine is ready, and at its last moment.
    """
    if is_last_moment(job, deps.clock.now()):
        return apply_event(job, TimePassed(), deps)
    if needs_next_machine(job):
        return choose_placement(job, deps) if job.definition.nodes == 1 else replace_lost(job, deps)
    return _consider_move(job, deps) if may_move(job) else _look_at_next(job, deps)


def _look_at_next(job: Job, deps: LaunchDependencies) -> Job:
    """Return the job after a look at the machines of its next placement."""
    if not job.machine_id:
        return job
    found = find_machines(job, deps)
    if isinstance(found, Job):
        return found
    return apply_event(job, NextMachineReady(job.machine_id), deps) if job.state is JobState.RUNNING else job


def _consider_move(job: Job, deps: LaunchDependencies) -> Job:
    """Claim a machine on spot for a task on on-demand, if its market policy wants that and there may be one."""
    if not deps.machine_settings.subnets:
        reason = "a task is moved to machines of the stack's own only, and the stack has none (MachineSubnets)"
        return apply_event(job, MoveDeclined(reason, None), deps)
    found = find_move(job, *select_offerings(job, deps), deps)
    # What it is to be moved to is a machine of our own.
    moved = claim_machine(job, found, deps) if isinstance(found, Selection) else apply_event(job, found, deps)
    return moved if isinstance(moved, Job) else job


def find_move(
    job: Job, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies
) -> Selection | MoveDeclined:
    """Return the machines of our own on spot that a job on on-demand is to be moved to, or why it stays.

    Its task runs meanwhile, so that nothing is tried again before the next look.
    """
    may_move_at = available.at if is_in_market(job) else next_move_at(job, available.at)
    if may_move_at > available.at:
        return decline_so_soon(job, may_move_at, available.at)
    pace = running_pace(job, selection)
    found = find_pools(selection, available.pools, available.at, job.definition.nodes)
    pools = pools_to_move_to(job, selection, pools_at_pace(found, selection, pace))
    if not pools:
        return MoveDeclined("no machine of our own on spot that costs less satisfies it", None)
    try:
        newest = newest_of(job, deps.checkpoints)
    except PortError as error:
        return MoveDeclined(f"its checkpoints cannot be read: {error}", None)
    longest = measured_so_far(job, newest, available.at).checkpoint_seconds
    progress = resumable_progress(job, newest, selection, pace)
    overheads = measure_overheads(job, newest, available.at)
    reason = why_it_stays(job, newest, progress)
    if newest is None or reason:
        return MoveDeclined(reason, None, longest)
    if progress is not None and is_in_market(job):
        policy = policy_named(job.definition.policy, deps.load_thresholds)
        market = choose_again(job, policy, Measured(progress, overheads), pools, available.at)
    else:
        unsaved = available.at - newest.saved_at
        market = choose_return(job, overheads, progress, unsaved, pools, available.at)
    if market.choice.action is not Action.TRY:
        return MoveDeclined(market.reason, market.until, longest)
    deps.log.decided("market: move", job_id=job.job_id, reason=market.reason)
    return narrow(selection, replace(market, pace=pace))
