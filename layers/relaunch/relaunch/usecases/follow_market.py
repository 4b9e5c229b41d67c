"""Let the market policy of a job choose among the offerings that selection kept, and whether to leave on-demand."""

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint, measure_progress
from relaunch.core.lifecycle.events import MoveDeclined
from relaunch.core.lifecycle.market_choice import choose, choose_again, is_in_market, narrow
from relaunch.core.lifecycle.moves import pools_to_move_to, resumable_progress
from relaunch.core.lifecycle.spot_pools import find_pools, warnings_of
from relaunch.core.market.policies import policy_named
from relaunch.core.market.situation import Action
from relaunch.core.selection.selection import Selection
from relaunch.ports import CheckpointSource, LaunchDependencies, PermanentError
from relaunch.usecases.load_offerings import AvailableOfferings


class UnreadableProgressError(PermanentError):
    """The checkpoints of a job, which say how much of its work is done, cannot be read."""


def follow_market(job: Job, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies) -> Selection:
    """Return the selection with what the policy of the job wants now; the same for a job without a limit.

    Raises:
        TransientError, UnreadableProgressError: its checkpoints cannot be read.
    """
    if not is_in_market(job) or not selection.kept:
        return selection
    try:
        newest = newest_of(job, deps.checkpoints)
    except PermanentError as error:
        raise UnreadableProgressError(str(error)) from error
    progress = measure_progress(job, newest, available.at)
    if progress is None:
        return selection
    runs = (*available.runs, *warnings_of(job))
    pools = find_pools(selection, available.memory, runs, available.at)
    policy = policy_named(job.definition.policy, deps.load_thresholds)
    market = choose(job, policy, progress, selection, pools, available.at)
    if market is None:
        return selection
    deps.log.decided(f"market: {market.choice.action}", job_id=job.job_id, reason=market.reason)
    return narrow(selection, market)


def find_move(
    job: Job, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies
) -> Selection | MoveDeclined:
    """Return the machines of our own on spot that a job on on-demand is to be moved to, or why it stays.

    Raises:
        TransientError: its checkpoints cannot be read.
    """
    try:
        newest = newest_of(job, deps.checkpoints)
    except PermanentError as error:
        return MoveDeclined(f"its checkpoints cannot be read: {error}", None)
    progress = resumable_progress(job, newest)
    if progress is None:
        return MoveDeclined("it has saved no checkpoint since it was launched", None)
    pools = pools_to_move_to(job, selection, find_pools(selection, available.memory, available.runs, available.at))
    market = choose_again(job, policy_named(job.definition.policy, deps.load_thresholds), progress, pools, available.at)
    if market.choice.action is not Action.TRY:
        return MoveDeclined(market.reason, market.until)
    deps.log.decided("market: move", job_id=job.job_id, reason=market.reason)
    return narrow(selection, market)


def newest_of(job: Job, checkpoints: CheckpointSource) -> SavedCheckpoint | None:
    """Return the newest complete checkpoint that the job itself left; None before its first launch.

    Raises:
        TransientError, PermanentError: its checkpoints cannot be read.
    """
    uri = job.definition.checkpoint_uri
    if uri is None or job.attempt is None:
        return None
    return checkpoints.newest_saved(uri, job.job_id)
