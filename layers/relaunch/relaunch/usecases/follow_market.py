"""Let the market policy of a job choose among the offerings that selection kept, and whether to leave on-demand."""

from collections.abc import Callable
from dataclasses import replace

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import Measured, measure_overheads
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step
from relaunch.core.lifecycle.market_choice import MarketChoice, choose, is_in_market, keeps_limit, least_late, narrow
from relaunch.core.lifecycle.paces import find_paces, progress_at_pace
from relaunch.core.lifecycle.spot_pools import find_pools, with_warning
from relaunch.core.market.policies import policy_named
from relaunch.core.market.situation import Action, Rule
from relaunch.core.market.thresholds import Thresholds
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.selection import Selection
from relaunch.ports import CheckpointSource, LaunchDependencies, PermanentError
from relaunch.usecases.find_checkpoints import MissingCheckpointError, find_resume_uri, newest_of
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
    job: Job, claimed: Offering, selection: Selection, available: AvailableOfferings, deps: LaunchDependencies
) -> str | None:
    """Return why a job does not use a machine on spot that it claimed while its last task ran; None if it does.

    More was lost with that task than was known when the machine was claimed, so that only on-demand, or only what is
    faster, keeps the limit of the job, and is there. The machine is there whatever EC2 has refused since.
    """
    try:
        newest = newest_of(job, deps.checkpoints)
    except PermanentError:
        return None  # its launch says so
    others = (each for each in selection.kept if each.purchase is not PurchaseOption.SPOT)
    with_claimed = Selection((claimed, *others), selection.rejected, selection.filter_counts, selection.work)
    market = choose_market(job, newest, with_claimed, available, deps.load_thresholds)
    if market is None:
        return None
    if (pace := market.pace) and not pace.is_kept_on(claimed) and pace.is_kept_on_any(selection.kept):
        return pace.rejection(claimed).reason
    if (market.choice.action, market.choice.rule) != (Action.ON_DEMAND, Rule.SAFETY_NET):
        return None
    is_to_be_had = any(each.purchase is PurchaseOption.ON_DEMAND for each in selection.kept)
    return market.reason if is_to_be_had else None


def _with_first_step(job: Job, checkpoints: CheckpointSource) -> Job:
    """Return the job with the step that its first attempt would resume from now, if it has none yet."""
    if job.attempt is not None or job.definition.total_steps is None:
        return job
    try:
        step = resumed_step(find_resume_uri(job.resume_from, checkpoints))
    except MissingCheckpointError:
        # Its launch says so.
        return job
    return replace(job, progress=replace(job.progress, first_step=step))


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
    if not is_in_market(job) or not selection.kept:
        return None
    known = with_warning(available.pools, job)
    pools = find_pools(selection, known, available.at, job.definition.nodes)
    policy = policy_named(job.definition.policy, load_thresholds)
    overheads = measure_overheads(job, newest, available.at)
    markets: list[MarketChoice] = []
    for pace in find_paces(job.definition, selection):
        progress = progress_at_pace(job, newest, selection, pace, available.at)
        if progress is None:
            return None
        market = choose(job, policy, Measured(progress, overheads), selection, pools, available.at, pace=pace)
        if market is None or keeps_limit(market, selection):
            return market
        markets.append(market)
    return least_late(markets, selection, job.definition)
