"""Let the market policy of a job choose among the offerings that selection kept, and whether to leave on-demand."""

from collections.abc import Callable
from dataclasses import replace

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import (
    Measured,
    SavedCheckpoint,
    measure_overheads,
    measure_progress,
    resumed_step,
    starts_so_far,
)
from relaunch.core.lifecycle.events import MoveDeclined
from relaunch.core.lifecycle.market_choice import (
    MarketChoice,
    choose,
    choose_again,
    choose_return,
    is_in_market,
    narrow,
)
from relaunch.core.lifecycle.moves import decline_so_soon, next_move_at, pools_to_move_to, resumable_progress
from relaunch.core.lifecycle.spot_pools import find_pools, with_warning
from relaunch.core.market.policies import policy_named
from relaunch.core.market.situation import Action, Rule
from relaunch.core.market.thresholds import Thresholds
from relaunch.core.selection.selection import Selection
from relaunch.ports import CheckpointSource, LaunchDependencies, PermanentError, PortError
from relaunch.usecases.find_resume_uri import MissingCheckpointError, find_resume_uri
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
        begun = _with_first_step(job, deps.checkpoints)
    except PermanentError as error:
        raise UnreadableProgressError(str(error)) from error
    market = choose_market(begun, newest, selection, available, deps.load_thresholds)
    if market is None:
        return selection
    deps.log.decided(f"market: {market.choice.action}", job_id=job.job_id, reason=market.reason)
    return narrow(selection, market)


def gives_spot_back(
    job: Job, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies
) -> str | None:
    """Return why a job does not use a machine on spot that it claimed while its last task ran; None if it does.

    More was lost with that task than was known when the machine was claimed, so that only on-demand, which may be had,
    keeps the limit of the job.
    """
    try:
        newest = newest_of(job, deps.checkpoints)
    except PermanentError:
        return None  # its launch says so
    market = choose_market(job, newest, selection, available, deps.load_thresholds)
    if market is None or (market.choice.action, market.choice.rule) != (Action.ON_DEMAND, Rule.SAFETY_NET):
        return None
    is_to_be_had = any(each.purchase is PurchaseOption.ON_DEMAND for each in selection.kept)
    return market.reason if is_to_be_had else None


def _with_first_step(job: Job, checkpoints: CheckpointSource) -> Job:
    """Return the job with the step that its first attempt would resume from now, if it has none yet."""
    if job.attempt is not None or job.definition.total_steps is None:
        return job
    try:
        return replace(job, first_step=resumed_step(find_resume_uri(job.resume_from, checkpoints)))
    except MissingCheckpointError:
        # Its launch says so.
        return job


def choose_market(
    job: Job,
    newest: SavedCheckpoint | None,
    selection: Selection,
    available: AvailableOfferings,
    load_thresholds: Callable[[], Thresholds],
) -> MarketChoice | None:
    """Return what the policy of the job wants now; None if it has no limit, no known work, or nothing to choose from.

    `newest` is its newest checkpoint.
    """
    progress = measure_progress(job, newest, available.at)
    if not is_in_market(job) or not selection.kept or progress is None:
        return None
    pools = find_pools(selection, with_warning(available.pools, job), available.at)
    policy = policy_named(job.definition.policy, load_thresholds)
    measured = Measured(progress, measure_overheads(job, newest, available.at))
    return choose(job, policy, measured, selection, pools, available.at)


def find_move(
    job: Job, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies
) -> Selection | MoveDeclined:
    """Return the machines of our own on spot that a job on on-demand is to be moved to, or why it stays.

    Its task runs meanwhile, so that nothing is tried again before the next look.
    """
    may_move_at = available.at if is_in_market(job) else next_move_at(job, available.at)
    if may_move_at > available.at:
        return decline_so_soon(job, may_move_at, available.at)
    pools = pools_to_move_to(job, selection, find_pools(selection, available.pools, available.at))
    if not pools:
        return MoveDeclined("no machine of our own on spot that costs less satisfies it", None)
    try:
        newest = newest_of(job, deps.checkpoints)
    except PortError as error:
        return MoveDeclined(f"its checkpoints cannot be read: {error}", None)
    longest = starts_so_far(job, newest, available.at).checkpoint_seconds
    progress, overheads = resumable_progress(job, newest), measure_overheads(job, newest, available.at)
    if newest is None or newest.attempt != job.current_attempt.number or (progress is None and is_in_market(job)):
        return MoveDeclined("it has saved no checkpoint since it was launched", None, longest)
    if progress is not None and is_in_market(job):
        policy = policy_named(job.definition.policy, deps.load_thresholds)
        market = choose_again(job, policy, Measured(progress, overheads), pools, available.at)
    else:
        unsaved = available.at - newest.saved_at
        market = choose_return(job, overheads, progress, unsaved, pools, available.at)
    if market.choice.action is not Action.TRY:
        return MoveDeclined(market.reason, market.until, longest)
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
