"""Explains what a job waits for, what happens next, and what its owner can change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.job import Handover, IntentKind, Job, PlacementState, StopKind
from relaunch.core.jobs.progress import describe_lack_of_progress
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT
from relaunch.core.lifecycle.long_waits import describe_bound
from relaunch.core.lifecycle.market_choice import describe_run_on_spot, is_in_market
from relaunch.core.lifecycle.moves import may_move
from relaunch.core.lifecycle.refusal_waits import (
    CHECKPOINT_GRANTS,
    describe_limit,
    lacks_useful_machine,
    latest_refusal,
    what_to_look_at,
)
from relaunch.core.lifecycle.restart_policy import describe_stop, next_time_limit
from relaunch.core.market.policies import LEAVE_ON_DEMAND

# A message usually waits for seconds; a wait this much longer than the time-out indicates a fault.
_OVERDUE = 2 * LAUNCH_TIMEOUT
_AGAIN = "a job keeps the definition it was accepted with: cancel it, change the definition, apply it, submit again"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The current situation of a job, for its owner.

    `waiting_for` is empty for a finished job. `next_at` is the latest time of `next_step`, None if unknown. `advice`
    lists what the owner can change, most useful first; it may be empty. `machines` say how far its machines of our own
    are, which the job itself does not know: `explain` leaves it empty.
    """

    waiting_for: str
    since: datetime | None
    next_step: str
    next_at: datetime | None = None
    advice: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()


def explain(job: Job, now: datetime) -> Explanation:
    """Explain the situation of a job at `now`."""
    if job.state.is_final:
        return _explain_end(job)
    explanation = _explain_open(job, now)
    return replace(explanation, advice=(*_lack_of_progress(job), *explanation.advice, *_failed_starts(job)))


def _lack_of_progress(job: Job) -> tuple[str, ...]:
    lack = describe_lack_of_progress(job)
    return (f"{lack}: `relaunch logs {job.job_id}` shows why it saves nothing new",) if lack else ()


def _failed_starts(job: Job) -> tuple[str, ...]:
    return tuple(
        f"it is kept from {each.instance}, which did not start it{f' ({each.error})' if each.error else ''}: "
        "look at that machine"
        for each in job.failed_starts
    )


def _explain_open(job: Job, now: datetime) -> Explanation:
    if job.state is JobState.WAITING:
        return _explain_waiting(job, now)
    if job.state is JobState.LAUNCHING:
        return _explain_launching(job)
    if job.state is JobState.RUNNING:
        return _explain_running(job, now)
    return _explain_stopping(job)


def _explain_waiting(job: Job, now: datetime) -> Explanation:
    waiting = job.waiting or Waiting(WaitReason.LAUNCH, job.state_since or job.accepted_at, "")
    explanation = _WAITS[waiting.reason](job, waiting, now)
    if waiting.reason not in _LONG_WAITS:
        return explanation
    return replace(explanation, next_step=f"{explanation.next_step}{describe_bound(job, now)}")


# The others last for minutes as a rule, or say themselves until when.
_LONG_WAITS = frozenset(
    {WaitReason.SLOT, WaitReason.CAPACITY, WaitReason.PRICE, WaitReason.MARKET, WaitReason.MACHINE_LIMIT}
)


def _wait_for_launch(job: Job, waiting: Waiting, now: datetime) -> Explanation:
    advice: tuple[str, ...] = ()
    if now - waiting.since > _OVERDUE:
        advice = (
            "this takes seconds as a rule: look at the attempts queue's dead-letter queue and launch_attempt's log",
        )
    return Explanation(
        "its launch: a message in the attempts queue",
        waiting.since,
        "an offering is chosen and the task is launched; should the message be lost, it is sent again",
        job.wake_at,
        advice,
    )


def _wait_for_image(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    image = ":".join(job.image) if job.image else "its commit"
    return Explanation(
        f"the image {image} in ECR",
        waiting.since,
        "it is launched when the image is pushed; without the image it fails",
        waiting.until,
        (
            f"see that the build pushes {image}",
            "wait_for_image in the definition has the repository, the tag and how long a job waits",
        ),
    )


def _wait_for_slot(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    is_stack = waiting.slot == "*"
    whose = "any definition" if is_stack else f"definition {job.definition.name}"
    cap = (
        "raise the stack's MaxRunningJobs"
        if is_stack
        else f"max_running_jobs is {job.definition.max_running_jobs}: {_AGAIN}"
    )
    return Explanation(
        f"a free slot: {waiting.detail}",
        waiting.since,
        f"when a job of {whose} ends, the one that waits longest is launched; it is looked at again anyway",
        job.wake_at,
        ("cancel a job that is not needed: `relaunch ps` lists them", cap),
    )


_WIDER = MappingProxyType(
    {
        PurchasePolicy.SPOT: "purchase is spot: spot-then-on-demand would let it take on-demand machines",
        PurchasePolicy.RESERVED: "purchase is reserved: reserved-then-spot would let it take spot machines",
    }
)


def _wait_for_capacity(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    advice = [_AGAIN]
    if wider := _WIDER.get(job.definition.purchase):
        advice.insert(0, wider)
    if job.definition.accelerator.instance_types:
        advice.insert(0, "accelerator.instance_types narrows the choice: more types have more capacity")
    return Explanation(
        f"capacity: {waiting.detail}",
        waiting.since,
        "every offering is looked at again",
        waiting.until or job.wake_at,
        (*advice, "give the stack more zones (MachineSubnets) or capacity providers (CapacityProviders)"),
    )


def _wait_for_price(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    cap = job.definition.max_price_usd_per_hour
    advice = ["the stack's own cap is MaxPricePerHour", _AGAIN]
    if cap is not None:
        advice.insert(0, f"max_price_per_hour is {cap:.2f} USD")
    if wider := _WIDER.get(job.definition.purchase):
        advice.insert(0, wider)
    return Explanation(
        f"a lower price: {waiting.detail}",
        waiting.since,
        "prices are looked at again",
        waiting.until or job.wake_at,
        tuple(advice),
    )


def _wait_for_backoff(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"a pause before the next launch: {waiting.detail}",
        waiting.since,
        "it is launched again",
        waiting.until or job.wake_at,
    )


def _wait_for_checkpoints(job: Job, waiting: Waiting, now: datetime) -> Explanation:
    kept = "what was saved is kept" if job.attempt is not None else "nothing was started"
    return Explanation(
        f"its checkpoints, which cannot be read: {waiting.detail}",
        waiting.since,
        f"they are read again; {kept}, and {describe_limit(job, now)}",
        waiting.until or job.wake_at,
        CHECKPOINT_GRANTS,
    )


def _wait_for_grant(job: Job, waiting: Waiting, now: datetime) -> Explanation:
    kept = "with its machine, which is kept" if job.machine_id else "without a machine until then"
    what = "why its machines are of no use" if lacks_useful_machine(job) else "what is refused"
    return Explanation(
        f"somebody to grant or mend {what}: {waiting.detail}",
        latest_refusal(job, now).since,
        f"it is tried again, {kept}; {describe_limit(job, now)}",
        waiting.until or job.wake_at,
        what_to_look_at(job, waiting.detail),
    )


def _wait_for_market(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"spot: {waiting.detail}",
        waiting.since,
        f"its policy, {job.definition.policy}, chooses again between spot, on-demand and waiting",
        waiting.until or job.wake_at,
        (f"an earlier `deadline`, less `patience` or `policy: on-demand-first` would start it sooner: {_AGAIN}",),
    )


def _wait_for_machine(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"its machine: {waiting.detail}{_why_there(job)}",
        waiting.since,
        "its task is launched when the machine has registered with all its accelerators; if it does not, or EC2 has "
        "none, another one is requested",
        waiting.until or job.wake_at,
        ("`relaunch machines` lists the machines of the stack",),
    )


def _wait_for_machine_limit(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"room for a machine: {waiting.detail}",
        waiting.since,
        "when a machine is ready or gone, the jobs that wait longest are launched; it is looked at again anyway",
        job.wake_at,
        (
            "`relaunch machines` lists the machines of the stack",
            "if the stack has as many as it may: raise its MaxMachines or MaxMachinesPricePerHour",
        ),
    )


_WAITS: Mapping[WaitReason, Callable[[Job, Waiting, datetime], Explanation]] = {
    WaitReason.LAUNCH: _wait_for_launch,
    WaitReason.IMAGE: _wait_for_image,
    WaitReason.SLOT: _wait_for_slot,
    WaitReason.CAPACITY: _wait_for_capacity,
    WaitReason.PRICE: _wait_for_price,
    WaitReason.BACKOFF: _wait_for_backoff,
    WaitReason.CHECKPOINT: _wait_for_checkpoints,
    WaitReason.REFUSED: _wait_for_grant,
    WaitReason.MARKET: _wait_for_market,
    WaitReason.MACHINE: _wait_for_machine,
    WaitReason.MACHINE_LIMIT: _wait_for_machine_limit,
}


def _explain_launching(job: Job) -> Explanation:
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
    start = f"its task to start on {chosen.offering}{status}{_why_there(job)}"
    if job.definition.target.capabilities.runs_pods:
        return _explain_pod(job, start)
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
        f"its machine will be taken away ({handover.reason})",
        handover.since,
        f"it trains on {until}; then it saves, is launched again {_next_place(job)}, and {_resumption(job)}",
        stop_by or next_time_limit(job, now),
    )


def _explain_pod(job: Job, start: str) -> Explanation:
    """Explain what a pod waits for, in the words of the scheduler or the kubelet where they said some."""
    why = f": {job.reason}" if job.reason else ""
    advice = (
        ()
        if job.current_attempt.node
        else ("a node with room: `kubectl describe nodes` shows what is allocated, and the pool may be scaled out",)
    )
    return Explanation(
        f"{start}{why}", job.current_attempt.placement.requested_at, "it is looked at again", job.wake_at, advice
    )


def _explain_running(job: Job, now: datetime) -> Explanation:
    attempt = job.current_attempt
    if attempt.handover is not None:
        return _explain_handover(job, attempt.handover, now)
    advice: tuple[str, ...] = ()
    if job.definition.checkpoint_uri is None and job.definition.purchase is not PurchasePolicy.ON_DEMAND:
        advice = ("the definition has no `checkpoint`: after an interruption the training starts over",)
    return Explanation(
        f"the training to finish; it runs on {attempt.placement.offering}{_market_words(job)}",
        attempt.started_at,
        "the job ends with its program; at its time limit it is stopped",
        next_time_limit(job, now),
        advice,
    )


def _why_there(job: Job) -> str:
    """Return why a market policy launches a job there; empty if none chose."""
    is_chosen = is_in_market(job) and bool(job.market_reason)
    return f"; its market policy chose that: {job.market_reason}" if is_chosen else ""


def _market_words(job: Job) -> str:
    """Return why a task runs where it is, if a market policy or the way back to spot says so, and what changes that."""
    purchase, has_policy = job.current_attempt.placement.offering.purchase, is_in_market(job)
    if purchase is PurchaseOption.SPOT:
        return _on_spot(job) if has_policy else ""
    looked = "its market policy last looked" if has_policy else "a move back to spot was last looked at"
    why = f"; when {looked}, {job.market_reason}" if job.market_reason else ""
    if may_move(job) and job.wake_at is not None:
        return f"{why}; whether to move it to spot is looked at again at {job.wake_at:%H:%M:%S} UTC"
    return f"{why}{_never_moved(job)}" if purchase is PurchaseOption.ON_DEMAND else why


def _on_spot(job: Job) -> str:
    if not job.market_reason:
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
        IntentKind.PLACEMENT_WITHDRAWN: "another offering is tried",
        IntentKind.START_WITHDRAWN: "after a pause another machine is tried",
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
    elif job.state is JobState.FAILED:
        advice = (_END_ADVICE.get(stop.kind if stop else None, f"`relaunch logs {job.job_id}` shows what it wrote"),)
    elif job.state is JobState.TIMED_OUT:
        advice = ("max_runtime and deadline are in the definition; `relaunch explain` shows where the time went",)
    reason = job.reason or (describe_stop(stop) if stop else "")
    return Explanation(
        "", job.ended_at, f"nothing: the job is {job.state}" + (f", {reason}" if reason else ""), None, advice
    )


def _made_no_progress(job: Job) -> bool:
    return job.attempts_without_progress >= job.definition.retry.max_attempts_without_progress


_END_ADVICE: Mapping[StopKind | None, str] = {
    None: "nothing was started: the timeline says why",
    StopKind.OUT_OF_MEMORY: "give the container more memory in the task definition, or the training smaller batches",
    StopKind.STARTS_NOWHERE: "see that the image, the command, and the secrets, volumes and log groups of the task "
    "definition exist",
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
