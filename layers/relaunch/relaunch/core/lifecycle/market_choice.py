"""Which purchase options a job may be launched with now: its market policy decides, if it has a limit on its time.

That is a job with a deadline or with patience, on ECS, whose work is known (core.jobs.progress). What is reserved is
paid for anyway and goes before all others.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.durations import write_minutes
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import Measured, Overheads
from relaunch.core.jobs.progress import Progress, measure_progress
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.lifecycle.paces import Pace, pools_at_pace
from relaunch.core.lifecycle.spot_pools import RETRY_INTERVAL
from relaunch.core.market.policies import DEFAULT_POLICY, PolicyName
from relaunch.core.market.returning import return_to_spot
from relaunch.core.market.situation import Action, Choice, Place, Policy, Pool, Rule, Situation
from relaunch.core.offerings.offering import Offering
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection

FILTER_NAME = "market"
"""The filter that rejects what a market policy does not want now."""
# One machine that does not register in time (five minutes) and another one that is refused after minutes, and the
# minute between two runs of reconcile. A budget: five in a hundred on-demand starts fail in the goals of the policy.
ON_DEMAND_RESERVE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class MarketChoice:
    """What a market policy chose at `at`, in which situation; `reason` is why, in a sentence.

    `policy` is its name: what `value` and `threshold` of the choice compare differs between policies. `pace` is that of
    the work and the prices in the situation.
    """

    choice: Choice
    situation: Situation
    at: datetime
    policy: PolicyName = DEFAULT_POLICY
    pace: Pace | None = None

    @property
    def until(self) -> datetime | None:
        """Return when the policy chooses again if nothing happens; None if only an event changes the choice."""
        return None if self.choice.until is None else self.at + timedelta(hours=self.choice.until)

    @property
    def reason(self) -> str:
        """Return why the job is, or is to be, where the policy wants it, and what would change that."""
        if self.choice.rule is Rule.OUTAGE and self.choice.action is Action.ON_DEMAND:
            return _NO_LONGER
        if self.choice.rule is Rule.STAYS_ON_DEMAND:
            return self._why_it_stays()
        return _REASONS[self.choice.rule].format(**self._times())

    def _times(self) -> dict[str, str]:
        choice = self.choice
        situation = self.situation
        spare = situation.spare or 0.0
        is_allowed = situation.on_demand_usd_per_hour is not None
        latest = ""
        if situation.spare is not None and is_allowed and situation.place is not Place.ON_DEMAND:
            latest = f"; on-demand is taken from {_clock(self.at, spare)} UTC on at the latest"
        again = "" if choice.until is None else f"; the next look is at {_clock(self.at, choice.until)} UTC"
        return {
            "latest": latest,
            "value": _duration(abs(choice.value)),
            "needed": _duration(choice.threshold),
            "short": _duration(abs(spare)),
            "again": again,
        }

    def _why_it_stays(self) -> str:
        """Return what a move back to spot lacks: time to spare, or a pool that may be tried."""
        value = self.choice.value
        needed = self.choice.threshold
        until = self.choice.until
        then = "" if until is None else f"; if nothing changes, a move may pay from {_clock(self.at, until)} UTC on"
        if self.policy is PolicyName.UNIFORM_PROGRESS and value > 0:
            behind = f"with two more starts it would be {_duration(value)} behind even progress to its limit"
            return f"leaving on-demand for spot does not pay: {behind}{then}"
        if self.policy is PolicyName.UNIFORM_PROGRESS or value > needed:
            return f"leaving on-demand for spot has to wait: what it could be moved to was refused lately{then}"
        least = (
            f"a move needs more than {_duration(needed)}"
            if math.isfinite(needed)
            else "no time to spare is enough for a move"
        )
        return f"leaving on-demand for spot does not pay: it has {_duration(value)} to spare, and {least}{then}"


_NO_LONGER = "no spot that costs less is to be had, and to wait for it does not pay with the time that its limit leaves"
_REASONS = {
    Rule.RUNS_ON_SPOT: "it runs on spot until that is taken away",
    Rule.SAFETY_NET: "only on-demand instances keep its limit from now on: spot would need {short} more than it leaves",
    Rule.SPOT_MAY_BE_HAD: "spot may be had, and is cheaper{latest}",
    Rule.BEHIND: "it is {value} behind even progress to its limit, so that it takes on-demand",
    Rule.AHEAD: "it is {value} ahead of even progress to its limit, and waits for spot{latest}{again}",
    Rule.OUTAGE: "no spot is to be had, and its limit leaves time to wait{latest}{again}",
    Rule.COMES_BACK: "leaving on-demand for spot pays: it has {value} to spare, and a move needs {needed}",
    Rule.NO_ON_DEMAND: "no spot is to be had, and it may not run on on-demand{again}",
    Rule.ON_DEMAND_FIRST: "its policy is on-demand first",
    Rule.EARNS: "leaving on-demand for spot pays: it is expected to run there for {value}, and {needed} are enough",
    Rule.EARNS_TOO_LITTLE: "leaving on-demand for spot does not pay: it is expected to run there for {value}, and a "
    "move needs more than {needed}",
    Rule.REFUSED_LATELY: "leaving on-demand for spot has to wait: what it could be moved to was refused lately{again}",
}


def describe_run_on_spot(definition: JobDefinition) -> str:
    """Return what ends the run of a job on spot, and what its market policy does then; no time is known for that."""
    policy = definition.policy
    takes_on_demand = PurchaseOption.ON_DEMAND in definition.purchase.options
    if not takes_on_demand:
        then = "takes other spot that may be had, or waits for some: it may not run on on-demand"
    elif policy is PolicyName.ON_DEMAND_FIRST:
        then = "takes on-demand, and spot only if there is none"
    else:
        then = "takes other spot that may be had, waits for some while its limit leaves time, or else takes on-demand"
    return f"{_REASONS[Rule.RUNS_ON_SPOT]}; then its policy, {policy}, {then}"


def is_in_market(job: Job) -> bool:
    """Return whether a market policy decides where the job runs, if its work is known."""
    return follows_market(job.definition)


def follows_market(definition: JobDefinition) -> bool:
    """Return whether a market policy decides where jobs of the definition run, if their work is known."""
    has_limit = definition.deadline is not None or definition.patience is not None
    return has_limit and definition.target.capabilities.offers_instance_types


def choose(  # noqa: PLR0913 - a choice depends on all of them
    job: Job,
    policy: Policy,
    measured: Measured,
    selection: Selection,
    pools: tuple[Pool, ...],
    now: datetime,
    *,
    pace: Pace | None = None,
) -> MarketChoice | None:
    """Return where an idle job is to be launched; None if something reserved was kept, which costs nothing more.

    What was `measured` is at this pace.
    """
    if any(each.purchase is PurchaseOption.RESERVED for each in selection.kept):
        return None
    price = _on_demand_price(job, selection, pace)
    situation = _situation(job, measured, price, pools_at_pace(pools, selection, pace), now)
    return MarketChoice(policy(situation), situation, now, job.definition.policy, pace)


def keeps_limit(market: MarketChoice, selection: Selection) -> bool:
    """Return whether a job that is reckoned at the pace of the choice keeps its limit.

    On a machine that is not on-demand it has to have time to spare. On-demand has to be in time if it is taken as soon
    as there is any: the time for starts that fail is for waiting, too, until one is tried again that is refused now.
    """
    pace = market.pace
    if pace is None or (market.situation.spare or 0.0) > 0:
        return True
    time = market.situation.on_demand_time or 0.0
    return _is_on_demand(pace.offering) and time > _hours(pace.wait_for(selection, market.at))


def least_late(markets: Sequence[MarketChoice], selection: Selection, definition: JobDefinition) -> MarketChoice:
    """Return the choice of a job that keeps its limit at no pace.

    It is that at the fastest pace while nothing but its padding and a start is missing, also if a deadline has to wait
    for what is as fast. Then it is that of the cheapest on-demand machine, of those for which anything as fast was
    kept: a limit that is lost is worth no more money. Where the speed of nothing that was kept is known, it is taken.
    """
    waits = definition.deadline is not None
    now = [each for each in markets if each.pace is None or each.pace.is_kept_on_any(selection.kept)]
    now = now or [replace(markets[-1], pace=None)]
    fastest = (markets if waits else now)[-1]
    wait = fastest.pace.wait_for(selection, fastest.at) if fastest.pace else timedelta(0)
    if (fastest.situation.time_left or 0.0) - _hours(wait) >= fastest.situation.work_left:
        return fastest
    return next((each for each in now if each.pace and _is_on_demand(each.pace.offering)), now[0])


def choose_again(job: Job, policy: Policy, measured: Measured, pools: tuple[Pool, ...], now: datetime) -> MarketChoice:
    """Return whether a job that runs on on-demand is to stay there, or to try one of these pools."""
    # 0 stands for a price that is not known: as while it is idle, what has a price costs less.
    price = attempt_price(job.current_attempt).usd_per_hour or math.inf
    situation = replace(_situation(job, measured, price, pools, now), place=Place.ON_DEMAND)
    return MarketChoice(policy(situation), situation, now, job.definition.policy)


def choose_return(
    job: Job,
    overheads: Overheads,
    progress: Progress | None,
    unsaved: timedelta,
    pools: tuple[Pool, ...],
    now: datetime,
) -> MarketChoice:
    """Return whether a job without a limit that runs on on-demand is to stay there, or to try one of these pools.

    `unsaved` is the time since its newest checkpoint. A job of unknown length is taken to run for as long again as it
    has run, and so is one that has outlived its estimate.
    """
    ran = job.run_time(now)
    left = progress.left if progress is not None and progress.left > timedelta(0) else ran
    situation = Situation(
        place=Place.ON_DEMAND,
        work_done=_hours(ran),
        work_left=_hours(left),
        elapsed=_hours(now - job.accepted_at),
        time_left=None,
        overhead=_hours(overheads.start),
        # 0 stands for a price that is not known: what has a price costs less.
        on_demand_usd_per_hour=attempt_price(job.current_attempt).usd_per_hour or math.inf,
        pools=pools,
        retry_interval=_hours(RETRY_INTERVAL),
        unsaved=_hours(unsaved),
        between_checkpoints=_hours(overheads.checkpoint_interval),
    )
    return MarketChoice(return_to_spot(situation), situation, now, job.definition.policy)


_SOMETIME = datetime.fromtimestamp(0, UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)
_NO_TRIGGER = TriggerFacts("", "", "")
_NO_REVISION = Revision("", "", 0, ())


def spare_at_acceptance(definition: JobDefinition) -> timedelta | None:
    """Return the time to spare of a job when it is accepted: less than none if only on-demand keeps its limit.

    None if no policy decides where it runs, or its work is not known before its first checkpoint.
    """
    job = Job("", definition, _NO_TRIGGER, _NO_REVISION, _SOMETIME)
    progress = measure_progress(job, None, _SOMETIME)
    if progress is None or not follows_market(definition):
        return None
    spare = _situation(job, Measured(progress), None, (), _SOMETIME).spare
    return None if spare is None else timedelta(hours=spare)


def _situation(
    job: Job, measured: Measured, on_demand_usd_per_hour: float | None, pools: tuple[Pool, ...], now: datetime
) -> Situation:
    progress = measured.progress
    left = _hours(measured.progress.left)
    overhead = _hours(measured.overheads.start)
    reserve = _hours(ON_DEMAND_RESERVE + _most_lost(job, measured))
    elapsed = _hours(now - job.accepted_at)
    if job.definition.deadline is not None:
        time_left = _hours(job.definition.deadline) - elapsed
    else:
        waited = now - job.accepted_at - job.run_time(now) - job.held_back_in_all(now)
        patience = _hours((job.definition.patience or timedelta(0)) - waited)
        most = progress.at_most_left(job.definition.padding)
        time_left = _hours(most) + 2 * overhead + reserve + patience
    return Situation(
        place=Place.IDLE,
        work_done=_hours(progress.done),
        work_left=left,
        elapsed=elapsed,
        time_left=time_left,
        overhead=overhead,
        on_demand_usd_per_hour=on_demand_usd_per_hour,
        pools=pools,
        padding=job.definition.padding,
        reserve=reserve,
        retry_interval=_hours(RETRY_INTERVAL),
    )


def _most_lost(job: Job, measured: Measured) -> timedelta:
    """Return the work that one interruption of spot may lose: all of it without checkpoints."""
    left = measured.progress.at_most_left(job.definition.padding)
    return left if job.definition.checkpoint_uri is None else min(measured.overheads.checkpoint_interval, left)


def _on_demand_price(job: Job, selection: Selection, pace: Pace | None) -> float | None:
    """Return the lowest on-demand price, also of what cannot be had just now; None if the job may not run on it.

    It is infinite if no price of it is known: as in a selection, what has a price goes before what has none. Where work
    is reckoned at a pace, it is the price of the work that this does in an hour.
    """
    if PurchaseOption.ON_DEMAND not in job.definition.purchase.options:
        return None
    rejected = (each.offering for each in selection.rejected if not each.rejection.is_permanent)
    offered = [each for each in (*selection.kept, *rejected) if each.purchase is PurchaseOption.ON_DEMAND]
    offered = [each for each in offered if pace is None or pace.is_kept_on(each)]
    known = ((each, each.expected_usd_per_hour) for each in offered)
    prices = (usd / (pace.compared(each) if pace else 1.0) for each, usd in known if usd is not None)
    return min(prices, default=math.inf) if offered else None


def narrow(selection: Selection, market: MarketChoice) -> Selection:
    """Return the selection with only what the policy wants now, and why; the rest is rejected, with the reason.

    Without any on-demand offering a policy that wants one takes what there is: nothing else keeps its limit. What may
    be too slow is not taken, as it does not keep it either, while it may wait for what is as fast (`keeps_limit`).
    """
    choice = market.choice
    reason = market.reason
    pace = market.pace
    fast = [each for each in selection.kept if pace is None or pace.is_kept_on(each)]
    if choice.action is Action.ON_DEMAND:
        wanted = {each.key for each in fast if each.purchase is PurchaseOption.ON_DEMAND}
        if not wanted:
            wanted = {each.key for each in fast}
            taken = ", so that it takes what there is" if fast else ""
            reason = f"{reason}; none is to be had just now{taken}"
    elif choice.action is Action.TRY:
        names = {choice.pool, *choice.alternatives}
        wanted = {each.key for each in fast if str(each.key) in names}
    else:
        wanted = set()
    kept = [each for each in fast if each.key in wanted]
    kept.sort(key=lambda each: choice.action is Action.TRY and str(each.key) != choice.pool)
    refused = [_rejected(each, market) for each in fast if each.key not in wanted]
    if pace is not None:
        slow = ((each, pace.rejection(each)) for each in selection.kept if not pace.is_kept_on(each))
        until = None if fast else min(market.at + pace.wait_for(selection, market.at), market.until or _NEVER)
        refused += [RejectedOffering(each, FILTER_NAME, _too_slow(why, until, reason)) for each, why in slow]
    counts = selection.filter_counts
    if refused:
        counts = (*counts, (FILTER_NAME, len(selection.kept), len(kept)))
    return Selection(tuple(kept), (*refused, *selection.rejected), counts, selection.work, reason)


def _too_slow(why: Rejection, until: datetime | None, reason: str) -> Rejection:
    """Return why a machine is left out, and what is awaited where nothing is left."""
    return why if until is None else replace(why, reason=f"{reason}, and {why.reason}", retry_at=until)


def market_wait(selection: Selection) -> Rejection | None:
    """Return why and until when a market policy waits, if that is why nothing was kept."""
    if selection.kept or selection.last_filter != FILTER_NAME:
        return None
    return next(each.rejection for each in selection.rejected if each.filter_name == FILTER_NAME)


def with_market_reason(job: Job, selection: Selection | None) -> Job:
    """Return the job with why its policy launches it there; the same job if there is no new selection."""
    return job if selection is None else replace(job, market=replace(job.market, reason=selection.market_reason))


def _is_on_demand(offering: Offering) -> bool:
    return offering.purchase is PurchaseOption.ON_DEMAND


def _rejected(offering: Offering, market: MarketChoice) -> RejectedOffering:
    rejection = Rejection(market.reason, is_permanent=False, retry_at=market.until)
    return RejectedOffering(offering, FILTER_NAME, rejection)


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)


def _duration(hours: float) -> str:
    return write_minutes(timedelta(hours=hours)) if math.isfinite(hours) else ""


def _clock(at: datetime, hours: float) -> str:
    then = at + timedelta(hours=max(hours, 0.0))
    return f"{then:%Y-%m-%d %H:%M}" if then.date() != at.date() else f"{then:%H:%M}"
