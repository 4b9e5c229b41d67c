"""A running task on on-demand is moved to spot when that pays: claim a machine, save, stop, go on.

The market policy of the job says when, if it has a limit on its time; a job without one goes by what the spell is
expected to earn (core.market.returning), and is moved a few times a day at most. The machine comes first, as when EC2
recommends to leave one: until it is ready the task trains on, so that a refusal costs nothing. A capacity provider
cannot be asked for an instance without a task, so that moves lead to machines of our own only.

So does the task on a machine that EC2 takes away, but not beyond the last moment to save.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Handover
from relaunch.core.jobs.budgets import STOPPED_BEFORE, left_of_lease
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.progress import Progress, SavedCheckpoint
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import CLOSE_LOOK, HEARTBEAT, POLL_INTERVAL, Decision, move, set_next_check
from relaunch.core.lifecycle.events import HostWarned, MachineClaimed, MachineLimitReached, MoveDeclined
from relaunch.core.lifecycle.gangs import has_gang
from relaunch.core.lifecycle.machine_waits import claim_next_machine, describe_limit
from relaunch.core.lifecycle.market_choice import is_in_market
from relaunch.core.lifecycle.paces import Pace, progress_at_pace
from relaunch.core.lifecycle.restart_policy import next_time_limit
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.market.policies import LEAVE_ON_DEMAND
from relaunch.core.market.situation import Pool
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS, WARNING_SECONDS, find_stop_timeout
from relaunch.core.selection.selection import Selection

# From the last moment to SIGTERM in 95 of 100 cases: a message, a cold start, StopTask and the agent's second. A
# budget; the metric WarningToStop shows all of it but the agent's second.
_MOMENT_TO_SIGTERM = timedelta(seconds=10)
# The maximum delay of an SQS message.
_LONGEST_DELAY_SECONDS = 900

WARNING_TO_LAST_MOMENT = timedelta(seconds=WARNING_SECONDS - STOP_TIMEOUT_SECONDS) - _MOMENT_TO_SIGTERM
"""From a warning to the last moment of a task with the stop time-out that Relaunch sets."""


def may_keep_training(job: Job, limits: MachineLimits) -> bool:
    """Return whether the task may train on after a warning: it runs, on a machine of our own, and the stack wants it.

    A task that has not started has nothing to lose, and a capacity provider's next machine cannot be requested.
    """
    return job.state is JobState.RUNNING and keeps_training(job, limits)


def keeps_training(job: Job, limits: MachineLimits) -> bool:
    """Return whether a warning lets the task train on while it runs."""
    attempt = job.current_attempt
    # The machines of several nodes would be paid twice until the next ones are ready.
    return limits.task_stop is TaskStop.WHEN_NEXT_READY and bool(attempt.placement.machine_id) and not has_gang(attempt)


def last_moment(job: Job, warned_at: datetime, ends_at: datetime | None = None) -> datetime:
    """Return when the task must be stopped after a warning at `warned_at`, so that it has its whole stop time-out.

    `ends_at` is when the interruption begins, if the warning says it. The moment is before the warning if the stop
    time-out is longer than what the warning leaves.
    """
    ends_at = ends_at or warned_at + timedelta(seconds=WARNING_SECONDS)
    timeout = find_stop_timeout(job.definition, job.revision)
    stop_seconds = timeout.seconds if timeout is not None else STOP_TIMEOUT_SECONDS
    return ends_at - timedelta(seconds=stop_seconds) - _MOMENT_TO_SIGTERM


def leaves_less_time(job: Job, warned_at: datetime, event: HostWarned) -> bool:
    """Return whether the task has to be stopped earlier for this warning than for the one that is known.

    EC2 interrupts a spot instance also while its retirement, or the end of its Capacity Block, is weeks ahead.
    """
    handover = job.current_attempt.handover
    known = (handover.stop_by if handover is not None else None) or last_moment(job, warned_at)
    return event.at != warned_at and last_moment(job, event.at, event.ends_at) < known


def is_last_moment(job: Job, now: datetime) -> bool:
    """Return whether a task that trains on has to be stopped now."""
    stop_by = stops_by(job)
    return stop_by is not None and now >= stop_by


def stops_by(job: Job) -> datetime | None:
    """Return the last moment of a task that trains on, None for others and after a rebalance recommendation."""
    attempt = job.attempt
    if job.state is not JobState.RUNNING or attempt is None or attempt.handover is None:
        return None
    return attempt.handover.stop_by


def next_look(job: Job, now: datetime) -> datetime:
    """Return when a running job is to be checked next."""
    # A lease that was not renewed in time, or has no room, is tried each minute: a function may end before it does.
    is_short = bool(job.reserved.usd) and left_of_lease(job, job.reserved.usd, now) < STOPPED_BEFORE
    limit = min(now + (CLOSE_LOOK if is_short else HEARTBEAT), next_time_limit(job, now))
    attempt = job.attempt
    stop_by = attempt.handover.stop_by if attempt is not None and attempt.handover is not None else None
    return limit if stop_by is None else min(limit, stop_by)


def _delay_until(stop_by: datetime, now: datetime) -> int:
    return min(math.ceil((stop_by - now).total_seconds()), _LONGEST_DELAY_SECONDS)


def keep_training(job: Job, reason: str, stop_by: datetime | None, now: datetime, *, event: str) -> Decision:
    """Let the task train on while the next machine is requested, until that is ready or `stop_by` is reached."""
    attempt = job.current_attempt
    since = attempt.handover.since if attempt.handover is not None else now
    job = replace(job, attempt=replace(attempt, handover=Handover(since, reason, stop_by)))
    # The last moment has a message of its own, sent first, beside that of the warning, which comes back then
    # (observe_capacity).
    timer = () if stop_by is None else (RequestLaunch(_delay_until(stop_by, now)),)
    # There may be none, as at the limit on machines.
    latest = "" if stop_by is None else f"until {stop_by:%H:%M:%S} UTC, or "
    detail = f"{reason}; it trains on {latest}until a next machine is ready"
    effects = (*timer, RequestLaunch())
    return move(job, JobState.RUNNING, now, event=event, detail=detail, wake_at=next_look(job, now), effects=effects)


_DAY = timedelta(hours=24)
# A pool whose spells end at once costs a start and what was not saved each time: an hour between two moves, and eight
# in any 24 hours, cost two points of what is saved in a pool that lasts (docs/market-policy.md).
PAUSE = timedelta(hours=1)
"""The least time between two moves of a job without a limit on its time."""
MOST_IN_A_DAY = 8
"""The moves of such a job in any 24 hours."""


def may_move(job: Job, _event: object = None) -> bool:
    """Return whether the task may be moved to spot, which its definition wants: it is on on-demand, and can resume."""
    attempt = job.attempt
    if attempt is None or job.state is not JobState.RUNNING:
        return False
    is_free = not (has_gang(attempt) or job.machine_id or job.cancel_requested or attempt.handover or attempt.warned_at)
    is_on_demand = attempt.placement.offering.purchase is PurchaseOption.ON_DEMAND
    definition = job.definition
    wants_to = definition.policy in LEAVE_ON_DEMAND and PurchaseOption.SPOT in definition.purchase.options
    may_resume = definition.checkpoint_uri is not None and definition.target.capabilities.offers_instance_types
    return is_free and is_on_demand and wants_to and may_resume


def with_move(job: Job, now: datetime) -> Job:
    """Return the job, whose task is stopped now to be moved."""
    return replace(job, market=replace(job.market, moved_at=(*job.market.moved_at, now)[-MOST_IN_A_DAY:]))


def next_move_at(job: Job, now: datetime) -> datetime:
    """Return from when on a job without a limit may be moved: an hour after its last move, and eight times a day."""
    after_last = [at + PAUSE for at in job.market.moved_at[-1:]]
    after_most = [job.market.moved_at[0] + _DAY] if len(job.market.moved_at) == MOST_IN_A_DAY else []
    return max((now, *after_last, *after_most))


def decline_so_soon(job: Job, until: datetime, now: datetime) -> MoveDeclined:
    """Return why a task stays where it is that was moved lately."""
    count = sum(now - at < _DAY for at in job.market.moved_at)
    times = "once" if count == 1 else f"{count} times"
    reason = f"it was moved to spot {times} within 24 hours, and is not moved again before {until:%H:%M} UTC"
    return MoveDeclined(reason, until)


def resumable_progress(
    job: Job, newest: SavedCheckpoint | None, selection: Selection, pace: Pace | None
) -> Progress | None:
    """Return the work done and left at a pace if the running task were stopped now and saved nothing more.

    None if nothing says how much work the job is, or the task has saved no checkpoint yet: only one that has is known
    to be resumed.
    """
    if newest is None or newest.attempt != job.current_attempt.number:
        return None
    return progress_at_pace(job, newest, selection, pace, newest.saved_at)


def why_it_stays(job: Job, newest: SavedCheckpoint | None, progress: Progress | None) -> str:
    """Return why a task is not moved, whatever spot costs; empty if it may be.

    One that has done all the work that its estimate and its padding expect, and goes on, may need all the time that is
    left until its deadline.
    """
    is_saved = newest is not None and newest.attempt == job.current_attempt.number
    if not is_saved or (progress is None and is_in_market(job)):
        return "it has saved no checkpoint since it was launched"
    if job.definition.deadline is None or progress is None:
        return ""
    is_outlived = progress.at_most_left(job.definition.padding) <= timedelta(0)
    return "it has outlived its estimate, and may need all the time until its deadline" if is_outlived else ""


def pools_to_move_to(job: Job, selection: Selection, pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Return the pools of machines of our own that cost less than the task does."""
    offerings = (*selection.kept, *(each.offering for each in selection.rejected))
    own = {str(each.key) for each in offerings if each.is_own_machine}
    paid = attempt_price(job.current_attempt).usd_per_hour or math.inf
    return tuple(each for each in pools if each.name in own and each.usd_per_hour < paid)


def claim_machine_to_move_to(job: Job, event: MachineClaimed, now: datetime, limits: StackLimits) -> Decision:
    """Let the task train on until the machine on spot is ready."""
    decision = claim_next_machine(job, event, now, limits)
    claimed = decision.job
    handover = Handover(now, claimed.market.reason, is_move=True)
    return replace(decision, job=replace(claimed, attempt=replace(claimed.current_attempt, handover=handover)))


def decline_at_limit(reached: MachineLimitReached) -> MoveDeclined:
    """Return why a task stays where it is while the stack has no room for one more machine.

    What the limits keep for handovers is not for moves, though both replace a machine: a move that comes later costs
    money, and is tried again; a task that finds no next machine in two minutes loses its place to jobs that wait.
    """
    parameter = " (MaxMachines)" if reached.limit == "machines" else " (MaxMachinesPricePerHour)"
    limit = describe_limit(reached) + ("" if reached.detail else parameter)
    reason = (
        f"leaving on-demand for spot pays, but {limit}, and a move takes one more until the task has left the old one"
    )
    return MoveDeclined(reason, None)


def move_declined(job: Job, event: MoveDeclined, now: datetime, _limits: StackLimits) -> Decision:
    """Keep why the task stays where it is, and look again when the policy says so.

    How long it has run without a checkpoint is kept as well: once there is one, its time does not say whether others
    before it were deleted.
    """
    at_latest = next_look(job, now)
    wake_at = at_latest if event.until is None else min(max(event.until, now + POLL_INTERVAL), at_latest)
    longest = max(job.measured.checkpoint_seconds, event.checkpoint_seconds)
    market = replace(job.market, reason=event.reason)
    measured = replace(job.measured, checkpoint_seconds=longest)
    return set_next_check(replace(job, market=market, measured=measured), wake_at)
