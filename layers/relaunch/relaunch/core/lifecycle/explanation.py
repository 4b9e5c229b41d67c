"""Explains what a job waits for, what happens next, and what its owner can change."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.attempt import Handover, IntentKind, PlacementState, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import describe_lack_of_progress
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.long_waits import describe_bound
from relaunch.core.lifecycle.market_choice import describe_run_on_spot, is_in_market
from relaunch.core.lifecycle.moves import may_move
from relaunch.core.lifecycle.refusal_waits import what_lets_pods_in
from relaunch.core.lifecycle.restart_policy import describe_stop, next_time_limit
from relaunch.core.lifecycle.stalls import describe_stall
from relaunch.core.lifecycle.unconfirmed_stops import describe_unconfirmed
from relaunch.core.lifecycle.wait_explanation import Explanation, explain_waiting, why_there
from relaunch.core.lifecycle.withdrawals import REFUSED_FOR
from relaunch.core.market.policies import LEAVE_ON_DEMAND
from relaunch.core.revisions.images import NOT_IN_ECR

_OF_QUEUES = (
    "`kubectl get localqueues,workloads` shows the queue and its place: one that is not there lets nothing start",
)


def explain(job: Job, now: datetime) -> Explanation:
    """Explain the situation of a job at `now`."""
    if job.state.is_final:
        return _explain_end(job)
    explanation = _explain_open(job, now)
    said = (*_lack_of_progress(job), *_stall(job), *explanation.advice, *_failed_starts(job))
    return replace(explanation, advice=said)


def _lack_of_progress(job: Job) -> tuple[str, ...]:
    lack = describe_lack_of_progress(job)
    return (f"{lack}: `relaunch logs {job.job_id}` shows why it saves nothing new",) if lack else ()


def _stall(job: Job) -> tuple[str, ...]:
    stall = describe_stall(job)
    what_to_do = f"`relaunch logs {job.job_id}` shows what it does, and it is paid for until somebody stops it"
    return (f"{stall}: {what_to_do}",) if stall else ()


def _failed_starts(job: Job) -> tuple[str, ...]:
    return tuple(
        f"it is kept from {each.instance}, which did not start it{f' ({each.error})' if each.error else ''}: "
        "look at that machine"
        for each in job.faults.failed_starts
    )


def _explain_open(job: Job, now: datetime) -> Explanation:
    if job.state is JobState.WAITING:
        return explain_waiting(job, now)
    if job.state is JobState.LAUNCHING:
        return _explain_launching(job, now)
    if job.state is JobState.RUNNING:
        return _explain_running(job, now)
    return replace(_explain_stopping(job), advice=describe_unconfirmed(job, now))


def _explain_launching(job: Job, now: datetime) -> Explanation:
    attempt = job.current_attempt
    chosen = attempt.placement
    if job.cancel_requested:
        next_step = "its task is stopped as soon as the cluster tells which it is, and the job ends CANCELLED"
        return Explanation("the answer to its launch, to cancel it", job.state_since, next_step, job.wake_at)
    if chosen.state is PlacementState.PENDING:
        next_step = "the launch is sent, or sent again as the same placement, which is harmless"
        return Explanation(
            f"the answer to the launch on {chosen.offering}", chosen.requested_at, next_step, job.wake_at
        )
    status = f" (the cluster says {attempt.task_status})" if attempt.task_status else ""
    start = f"its task to start on {chosen.offering}{status}{why_there(job)}"
    if job.definition.target.capabilities.runs_pods:
        return _explain_pod(job, start, now)
    return Explanation(
        start,
        chosen.requested_at,
        "if it has not started by then, it is withdrawn and another offering is tried",
        job.wake_at,
    )


def _explain_handover(job: Job, handover: Handover, now: datetime) -> Explanation:
    stop_by = handover.stop_by
    if handover.is_move:
        return Explanation(
            f"a machine on spot: {handover.reason}",
            handover.since,
            f"it trains on until that machine is ready; then it saves, is launched again there, and {_resumption(job)}",
            next_time_limit(job, now),
        )
    if job.machine_id:
        latest = f", at the latest {stop_by:%H:%M:%S} UTC" if stop_by is not None else ""
        until = f"until the next machine is ready{latest}"
    else:
        # EC2 is being asked for one, or had none.
        until = (
            f"until {stop_by:%H:%M:%S} UTC" if stop_by is not None else "until there is a next machine that is ready"
        )
    return Explanation(
        f"its next machine: this one will be taken away ({handover.reason})",
        handover.since,
        f"it trains on {until}; then it saves, is launched again {_next_place(job)}, and {_resumption(job)}",
        stop_by or next_time_limit(job, now),
    )


def _explain_pod(job: Job, start: str, now: datetime) -> Explanation:
    """Explain what a pod waits for, in the words of the scheduler or the kubelet where they said some."""
    why = f": {job.reason}" if job.reason else ""
    requested_at = job.current_attempt.placement.requested_at
    if (refused_since := job.current_attempt.refused_since) is not None:
        leaves_at = refused_since + REFUSED_FOR
        next_step = f"refused until {leaves_at:%H:%M} UTC, it leaves its slot to others and is launched again later"
        return Explanation(f"{start}{why}", requested_at, next_step, job.wake_at, what_lets_pods_in(job.reason))
    if (since := job.current_attempt.suspended_since) is not None:
        next_step = f"the queue lets it start{describe_bound(job, now)}"
        return Explanation(
            f"its place in a queue of the cluster{why}", since, next_step, job.wake_at, _OF_QUEUES, is_look=True
        )
    advice = (
        ()
        if job.current_attempt.node
        else ("a node with room: `kubectl describe nodes` shows what is allocated, and the pool may be scaled out",)
    )
    return Explanation(f"{start}{why}", requested_at, "it is looked at again", job.wake_at, advice)


def _explain_running(job: Job, now: datetime) -> Explanation:
    attempt = job.current_attempt
    if attempt.handover is not None:
        return _explain_handover(job, attempt.handover, now)
    advice: tuple[str, ...] = ()
    if job.definition.checkpoint_uri is None and job.definition.purchase is not PurchasePolicy.ON_DEMAND:
        advice = ("give the definition a `checkpoint`: without one the training starts over after an interruption",)
    advice += _too_slow(job, now)
    return Explanation(
        f"the training to finish; it runs on {attempt.placement.offering}{_market_words(job)}",
        attempt.started_at,
        "the job ends with its program; at its time limit it is stopped",
        next_time_limit(job, now),
        advice,
    )


def _too_slow(job: Job, now: datetime) -> tuple[str, ...]:
    """Say that its time limit ends a training before it is done, at the rate at which it trains."""
    done_at = job.noted.finishes_at if job.noted is not None else None
    stopped_at = next_time_limit(job, now)
    if done_at is None or done_at <= stopped_at:
        return ()
    runtime_ends_at = now + job.definition.max_runtime - job.run_time(now)
    limit = "max_runtime" if stopped_at == runtime_ends_at else "deadline"
    return (
        f"at its rate it is done about {done_at:%Y-%m-%d %H:%M} UTC, and `{limit}` ends it at "
        f"{stopped_at:%Y-%m-%d %H:%M} UTC: raise that in the definition, and `relaunch apply`; once it has ended, "
        f"`relaunch retry {job.job_id}` {_resumption(job)}",
    )


def _market_words(job: Job) -> str:
    """Return why a task runs where it is, if a market policy or the way back to spot says so, and what changes that."""
    purchase = job.current_attempt.placement.offering.purchase
    has_policy = is_in_market(job)
    if purchase is PurchaseOption.SPOT:
        return _on_spot(job) if has_policy else ""
    looked = "its market policy last looked" if has_policy else "a move back to spot was last looked at"
    why = f"; when {looked}, {job.market.reason}" if job.market.reason else ""
    if may_move(job) and job.wake_at is not None:
        return f"{why}; whether to move it to spot is looked at again at {job.wake_at:%H:%M:%S} UTC"
    return f"{why}{_never_moved(job)}" if purchase is PurchaseOption.ON_DEMAND else why


def _on_spot(job: Job) -> str:
    if not job.market.reason:
        return "; its market policy decides where it runs once a checkpoint says how much work is left"
    # Why it was launched there, and until when it would have waited, is over.
    return f"; {describe_run_on_spot(job.definition)}"


def _never_moved(job: Job) -> str:
    """Return why a task on on-demand is never moved to spot; empty if it may be, or spot is not wanted."""
    definition = job.definition
    has_prices = definition.target.capabilities.offers_instance_types
    if PurchaseOption.SPOT not in definition.purchase.options or not has_prices:
        return ""
    if definition.policy not in LEAVE_ON_DEMAND:
        return f"; its policy, {definition.policy}, does not move it to spot"
    return "" if definition.checkpoint_uri else "; without a `checkpoint` it is not moved to spot"


def _explain_stopping(job: Job) -> Explanation:
    intent = job.current_attempt.intent
    kind = intent.kind if intent else None
    if job.cancel_requested:
        kind = IntentKind.CANCEL
    goes_on = f"it is launched again {_next_place(job)}, and {_resumption(job)}"
    follows = {
        None: "how it ended decides: the job ends, or is launched again",
        IntentKind.INTERRUPTION: goes_on,
        IntentKind.MOVE: goes_on,
        IntentKind.RANK_ENDED: "how the first of its ranks ended decides what follows, once all have stopped",
        IntentKind.BUDGET: f"it waits until its budget has room, and {_resumption(job)}",
        IntentKind.PLACEMENT_WITHDRAWN: "another offering is tried",
        IntentKind.START_WITHDRAWN: "after a pause another machine is tried",
        IntentKind.START_REFUSED: "it waits without a slot until that is granted, and is tried again",
        IntentKind.STARTS_NOWHERE: "the job fails",
        IntentKind.CANCEL: "the job ends CANCELLED",
        IntentKind.TIME_OUT: "the job ends TIMED_OUT",
    }[kind]
    why = f": {intent.detail}" if intent else ""
    return Explanation(
        f"its task to stop{why}",
        intent.at if intent else job.state_since,
        f"{follows}; if it is not reported as STOPPED, StopTask is sent again",
        job.wake_at,
    )


def _next_place(job: Job) -> str:
    return "on the machine that is requested for it already" if job.machine_id else "on another offering"


def _resumption(job: Job) -> str:
    return "resumes from its newest checkpoint" if job.definition.checkpoint_uri else "starts over"


def _explain_end(job: Job) -> Explanation:
    stop = job.attempt.stop if job.attempt else None
    advice: tuple[str, ...] = ()
    if job.state is JobState.FAILED and _made_no_progress(job):
        advice = (
            f"`relaunch logs {job.job_id}` shows why it saved nothing new; `relaunch retry` resumes from its newest "
            "checkpoint",
            "retry.max_attempts_without_progress in the definition allows more attempts, for a program that saves more "
            "seldom",
        )
    elif job.state is JobState.FAILED and stop is None and NOT_IN_ECR in job.reason:
        advice = (_PUSH.format(job_id=job.job_id),)
    elif job.state is JobState.FAILED:
        is_of_pod = job.definition.target.capabilities.runs_pods and stop is not None and stop.kind in _NEVER_STARTED
        kind = stop.kind if stop is not None and not is_of_pod else None
        advice = (_END_ADVICE.get(kind, f"`relaunch logs {job.job_id}` shows what it wrote"),)
    elif job.state is JobState.TIMED_OUT:
        advice = (
            "raise max_runtime or deadline in the definition; `relaunch explain --full` shows where the time went",
        )
    reason = job.reason or (describe_stop(stop, job.definition.target) if stop else "")
    return Explanation("", job.ended_at, "nothing, the job is over" + (f": {reason}" if reason else ""), None, advice)


def _made_no_progress(job: Job) -> bool:
    return job.progress.attempts_without_progress >= job.definition.retry.max_attempts_without_progress


_PUSH = "push the image first, by the workflow that builds it or `docker push`; then `relaunch retry {job_id}`"

_NEVER_STARTED = frozenset({StopKind.STARTS_NOWHERE, StopKind.START_REFUSED})
_END_ADVICE: Mapping[StopKind | None, str] = {
    None: "correct what the reason names, then `relaunch retry`",
    StopKind.OUT_OF_MEMORY: "give the container more memory in the task definition, or the training smaller batches",
    StopKind.STARTS_NOWHERE: "see that the image, the command in it, and the secrets, volumes and log groups of the "
    "task definition exist",
    StopKind.START_REFUSED: "grant the roles of its task definition (executionRoleArn, taskRoleArn) what the reason "
    "names, then `relaunch retry`",
    StopKind.NOT_STARTED: "see what its machines have in common: their image and its driver, the disk, the way to the "
    "registry; then `relaunch retry`",
    StopKind.IMAGE: "see that the image exists and that the task's execution role may pull it",
    StopKind.INTERRUPTION: "allow on-demand or more instance types, or set a deadline",
    StopKind.HOST_LOST: "allow on-demand or more instance types, or set a deadline",
}


def time_left(explanation: Explanation, now: datetime) -> timedelta | None:
    """Return the time until the next step; None if unknown, zero if it is due."""
    if explanation.next_at is None:
        return None
    return max(explanation.next_at - now, timedelta(0))
