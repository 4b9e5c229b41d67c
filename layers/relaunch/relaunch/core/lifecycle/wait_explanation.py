"""Explains what a waiting job waits for, what happens next, and what its owner can change."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import Waiting, WaitReason
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT
from relaunch.core.lifecycle.groups import slot_of
from relaunch.core.lifecycle.long_waits import describe_bound
from relaunch.core.lifecycle.market_choice import is_in_market
from relaunch.core.lifecycle.refusal_waits import (
    CHECKPOINT_GRANTS,
    describe_limit,
    lacks_useful_machine,
    latest_refusal,
    what_to_look_at,
)
from relaunch.core.records import dataclass
from relaunch.core.selection.offering_filters import OWN_PRICE_CAP

# A message usually waits for seconds; a wait this much longer than the time-out indicates a fault.
_OVERDUE = 2 * LAUNCH_TIMEOUT
_AGAIN = (
    "cancel the job, change the definition, apply it and submit again: a job keeps the definition it was accepted with"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The current situation of a job, for its owner.

    `waiting_for` is empty for a finished job. `next_at` is the latest time of `next_step`, None if unknown. `advice`
    lists what the owner can change, most useful first; it may be empty. `machines` say how far its machines of our own
    are, which the job itself does not know: `explain` leaves it empty. `is_look`: at `next_at` the job is looked at
    again at the latest, whether or not there is anything to do.
    """

    waiting_for: str
    since: datetime | None
    next_step: str
    next_at: datetime | None = None
    advice: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    is_look: bool = False


def explain_waiting(job: Job, now: datetime) -> Explanation:
    """Explain what a WAITING job waits for."""
    waiting = job.waiting or Waiting(WaitReason.LAUNCH, job.state_since or job.accepted_at, "")
    explanation = _WAITS[waiting.reason](job, waiting, now)
    if waiting.reason not in _LONG_WAITS:
        return explanation
    return replace(explanation, next_step=f"{explanation.next_step}{describe_bound(job, now)}")


# The others last for minutes as a rule, or say themselves until when.
_LONG_WAITS = frozenset(
    {
        WaitReason.SLOT,
        WaitReason.CAPACITY,
        WaitReason.PRICE,
        WaitReason.MARKET,
        WaitReason.MACHINE_LIMIT,
        WaitReason.BUDGET,
    }
)


def _wait_for_launch(job: Job, waiting: Waiting, now: datetime) -> Explanation:
    advice: tuple[str, ...] = ()
    if now - waiting.since > _OVERDUE:
        advice = (
            "look at the attempts queue's dead-letter queue and launch_attempt's log: this takes seconds as a rule",
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
            "change wait_for_image in the definition: the repository, the tag, or how long a job waits",
        ),
    )


def _wait_for_slot(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    if waiting.slot == slot_of(job) != "":
        return _wait_for_group(job, waiting)
    is_stack = waiting.slot == "*"
    whose = "any definition" if is_stack else f"definition {job.definition.name}"
    cap = (
        "raise the stack's MaxRunningJobs"
        if is_stack
        else f"raise max_running_jobs, which is {job.definition.max_running_jobs}: {_AGAIN}"
    )
    return Explanation(
        f"a free slot: {waiting.detail}",
        waiting.since,
        f"when a job of {whose} ends, the one that waits longest is launched; it is looked at again anyway",
        job.wake_at,
        ("cancel a job that is not needed: `relaunch ps` lists them", cap),
        is_look=True,
    )


def _wait_for_group(job: Job, waiting: Waiting) -> Explanation:
    return Explanation(
        f"its concurrency group: {waiting.detail}",
        waiting.since,
        "it is launched when that job has ended, unless a newer job of the group is accepted, which replaces it; it is "
        "looked at again anyway",
        job.wake_at,
        ("cancel that job; with concurrency.cancel_in_progress in the definition the next newer job would do so",),
        is_look=True,
    )


_WIDER = MappingProxyType(
    {
        PurchasePolicy.SPOT: "set purchase to spot-then-on-demand, which lets it take on-demand machines",
        PurchasePolicy.RESERVED: "set purchase to reserved-then-spot, which lets it take spot machines",
    }
)


_MORE = "give the stack more zones (MachineSubnets) or capacity providers (CapacityProviders)"
_MORE_NODES = "another GPU model, or more nodes in the cluster's pools, may have room"


def _wait_for_capacity(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    advice = [_AGAIN]
    if wider := _WIDER.get(job.definition.purchase):
        advice.insert(0, wider)
    if job.definition.accelerator.instance_types:
        advice.insert(0, "name more accelerator.instance_types, or none: more types have more capacity")
    return Explanation(
        f"capacity: {waiting.detail}",
        waiting.since,
        "every offering is looked at again",
        waiting.until or job.wake_at,
        (*advice, _MORE if job.definition.target.capabilities.runs_on_ec2 else _MORE_NODES),
    )


def _wait_for_price(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    cap = job.definition.max_price_usd_per_hour
    advice = [wider] if (wider := _WIDER.get(job.definition.purchase)) else []
    is_own = cap is not None and OWN_PRICE_CAP in waiting.detail
    if is_own:
        advice.append(f"raise max_price_per_hour, which is {cap:.4g} USD")
    if advice:
        advice.append(_AGAIN)
    if not is_own:
        advice.append(f"raise the stack's {'MaxSpotRatio' if 'MaxSpotRatio' in waiting.detail else 'MaxPricePerHour'}")
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
        f"its machine: {waiting.detail}{why_there(job)}",
        waiting.since,
        "its task is launched when the machine has registered with all its accelerators; if it does not, or EC2 has "
        "none, another one is requested",
        waiting.until or job.wake_at,
        ("look at `relaunch machines`, which lists the machines of the stack",),
    )


def _wait_for_machine_limit(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"room for a machine: {waiting.detail}",
        waiting.since,
        "when a machine is ready or gone, the jobs that wait longest are launched; a limit that is raised wakes none "
        "of them, and a new job may come first then; it is looked at again anyway",
        job.wake_at,
        (
            "look at `relaunch machines`, which lists the machines of the stack",
            "raise the stack's MaxMachines or MaxMachinesPricePerHour, if it has as many as it may",
        ),
        is_look=True,
    )


def _wait_for_budget(job: Job, waiting: Waiting, _now: datetime) -> Explanation:
    return Explanation(
        f"its budget: {waiting.detail}",
        waiting.since,
        "it is launched when the budget has room for an hour: another job gives back what it did not need, a month "
        "begins (UTC), or the budget is raised",
        job.wake_at,
        (
            "`relaunch budgets` lists what each budget has left, `relaunch costs` what it was spent on",
            "raise it, if you may: `relaunch budgets set`",
        ),
        is_look=True,
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
    WaitReason.BUDGET: _wait_for_budget,
}


def why_there(job: Job) -> str:
    """Return why a market policy launches a job there; empty if none chose."""
    is_chosen = is_in_market(job) and bool(job.market.reason)
    return f"; its market policy chose that: {job.market.reason}" if is_chosen else ""
