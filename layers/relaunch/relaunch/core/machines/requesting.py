"""Actions of the transition table for machines that EC2 has not launched yet.

Each is a pure function of (machine, event, now, limits) and returns the decision to save.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.charges import first_holdings
from relaunch.core.machines.decision import MachineDecision, MachineTotals, micro_usd, move, set_next_check
from relaunch.core.machines.ending import gone, terminate
from relaunch.core.machines.events import (
    ClaimReleased,
    FleetAnswer,
    FleetAnswered,
    FleetAsked,
    FleetDeferred,
    FleetRefused,
    InstanceLaunched,
    MachineDue,
    RequestExpired,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AskFleet,
    Claim,
    FleetRequest,
    Machine,
    MachineEffect,
    MachineState,
    RememberFailures,
    RememberLaunch,
)
from relaunch.core.machines.refusals import find_failures, judge
from relaunch.core.machines.starts import StartsByCause, started

REFUSED = "refused"
"""The timeline event of a machine whose request EC2 refused."""
# A machine whose message was lost is asked for again after this time: longer than a message usually takes, and than the
# function that calls EC2 may run.
ASK_TIMEOUT = timedelta(seconds=90)
# Registration is an event; the cluster is only asked in case it was lost.
FIRST_LOOK = timedelta(minutes=2)
NEXT_LOOK = timedelta(minutes=1)
# RunInstances, which CreateFleet calls, refills two requests per second ("Request throttling", EC2 API Reference).
_DEFERRED_SECONDS = 5
_LONGEST_DEFERRED_SECONDS = 120
_UNCERTAIN_SECONDS = 5
SENT_AGAIN_FOR = timedelta(minutes=2)
"""How long a request of unknown outcome is sent again with its client token; later its instance is only looked for.

How long EC2 keeps the token of CreateFleet is not published.
"""
LOOKED_FOR = timedelta(minutes=6)
"""How long after the last call an instance is looked for by its tags.

A function that was calling has ended after a minute, and what EC2 describes is up to a minute behind; the documentation
of the EC2 API tells callers to wait for up to five ("Eventual consistency in the Amazon EC2 API").
"""


def request_machine(  # noqa: PLR0913 - what it is requested for, and what else lives
    machine_id: str,
    request: FleetRequest,
    claim: Claim,
    now: datetime,
    limits: MachineTotals,
    *,
    family: str = "",
    known: StartsByCause = MappingProxyType({}),
    beside_usd_per_hour: float = 0.0,
    on_demand: Mapping[str, float] = MappingProxyType({}),
) -> MachineDecision:
    """Return the decision that creates a machine with the claim of the job that needs it.

    `family` is the task definition family of its task; `known` are the machines that start, by cause.
    `beside_usd_per_hour` is what its volume and its address cost, `on_demand` the known on-demand prices of its types.
    """
    price = request.usd_per_hour
    machine = Machine(
        machine_id,
        request,
        now,
        claims=(claim,),
        usd_per_hour=price,
        state_since=now,
        family=family,
        holdings=first_holdings(claim, now),
        beside_usd_per_hour=beside_usd_per_hour,
        on_demand=dict(on_demand),
    )
    names = sorted({each.offering.instance_type for each in request.overrides})
    zones = sorted({each.offering.zone or "" for each in request.overrides})
    within = f" from {request.reservation}" if request.reservation else ""
    place = f" ({request.place + 1} of {request.size})" if request.size > 1 else ""
    detail = f"{request.purchase} {', '.join(names)} in {', '.join(zones)}{within}{place}"
    decision = move(
        machine,
        MachineState.REQUESTED,
        now,
        event="requested",
        detail=detail,
        wake_at=now + ASK_TIMEOUT,
        effects=(AskFleet(),) if request.place == 0 else (),
    )
    # A group is counted once, by its first machine: it is one request.
    starts = started(machine, known, now) if request.place == 0 else ()
    return replace(decision, added=MachineTotals(1, micro_usd(price)), limits=limits, starts=starts)


def ask_fleet(machine: Machine, _event: FleetAsked, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Store that EC2 is being asked: from now on an instance may exist.

    Who asked before and saved no answer may have ended in between: the outcome of that call is unknown.
    """
    uncertain_since = machine.uncertain_since or machine.asked_at
    return set_next_check(replace(machine, asked_at=now, uncertain_since=uncertain_since), now + ASK_TIMEOUT)


def fleet_answered(machine: Machine, event: FleetAnswered, now: datetime, limits: MachineLimits) -> MachineDecision:
    """Handle the answer of EC2 to the request."""
    match event.answer:
        case InstanceLaunched():
            return _launched(machine, event.answer, now, limits)
        case FleetRefused(refusals) if not settles(machine, event.answer):
            # The instance is looked for. The alert comes at once.
            verdict = judge(machine.request, refusals)
            alerted = replace(machine, is_alert=machine.is_alert or verdict.is_alert)
            return _again(alerted, verdict.reason, now, _UNCERTAIN_SECONDS)
        case FleetRefused(refusals):
            verdict = judge(machine.request, refusals)
            refused = replace(machine, refusal=verdict.consequence, is_alert=verdict.is_alert)
            before = _remember(machine, event.answer, now)
            return gone(refused, now, event=REFUSED, detail=verdict.reason, before=before)
        case FleetDeferred(reason):
            # It had no effect; an earlier call may have had one.
            asked_at = machine.asked_at if machine.uncertain_since else None
            return _again(replace(machine, asked_at=asked_at), reason, now, _deferred_seconds(machine, now))
        case _:  # FleetUncertain
            uncertain = replace(machine, uncertain_since=machine.uncertain_since or now)
            return _again(uncertain, event.answer.reason, now, _UNCERTAIN_SECONDS)


def settles(machine: Machine, answer: FleetAnswer) -> bool:
    """Return whether it is known from an answer of EC2 what became of the request.

    Of a call that failed as a whole it is not where an earlier one may have had an effect.
    """
    is_refused = isinstance(answer, FleetRefused) and not (answer.is_raised and machine.uncertain_since is not None)
    return is_refused or isinstance(answer, InstanceLaunched)


def _as_asked(machine: Machine, answer: InstanceLaunched) -> InstanceLaunched:
    """Return the answer with the purchase option of the request: EC2 describes what is reserved as on-demand."""
    return replace(answer, offering=replace(answer.offering, purchase=machine.request.purchase))


def _price_of(machine: Machine, answer: InstanceLaunched) -> float:
    """Return the price of what EC2 has chosen, that of the machine if nobody asked for it."""
    override = machine.request.override_of(answer.offering)
    return override.usd_per_hour if override else machine.usd_per_hour


def _launched(machine: Machine, answer: InstanceLaunched, now: datetime, limits: MachineLimits) -> MachineDecision:
    answer = _as_asked(machine, answer)
    usd_per_hour = _price_of(machine, answer)
    cheaper = MachineTotals(0, micro_usd(usd_per_hour) - micro_usd(machine.usd_per_hour))
    launched = replace(
        machine,
        instance_id=answer.instance_id,
        offering=answer.offering,
        launched_at=now,
        paid_since=min(answer.at or now, now),
        usd_per_hour=usd_per_hour,
        uncertain_since=None,
    )
    detail = f"{answer.instance_id}: {answer.offering}"
    effects = (*_remember(machine, answer, now), *_remember_launch(answer, now))
    if answer.is_part:
        verdict = judge(machine.request, answer.refusals)
        refused = replace(launched, refusal=verdict.consequence, is_alert=verdict.is_alert)
        decision = terminate(refused, now, event=REFUSED, detail=verdict.reason)
    elif not machine.claims:
        decision = terminate(launched, now, event="launched", detail=f"{detail}; nobody needs it", before=effects)
    else:
        wake_at = now + min(FIRST_LOOK, limits.registration_deadline)
        decision = move(
            launched, MachineState.STARTING, now, event="launched", detail=detail, wake_at=wake_at, effects=effects
        )
    return replace(decision, added=cheaper)


def _remember(machine: Machine, answer: InstanceLaunched | FleetRefused, now: datetime) -> tuple[MachineEffect, ...]:
    # That EC2 does not have several at once says nothing of one.
    failures = find_failures(machine.request, answer, now) if machine.request.size == 1 else ()
    return (RememberFailures(failures),) if failures else ()


def _remember_launch(answer: InstanceLaunched, now: datetime) -> tuple[MachineEffect, ...]:
    is_spot = answer.offering.purchase is PurchaseOption.SPOT
    return (RememberLaunch(answer.offering, now),) if is_spot else ()


def launched_after_all(
    machine: Machine, event: FleetAnswered, now: datetime, _limits: MachineLimits
) -> MachineDecision:
    """Count and terminate an instance that was launched for a machine that had been given up."""
    answer = event.answer
    if not isinstance(answer, InstanceLaunched):
        raise TypeError(f"no instance was launched: {answer}")
    answer = _as_asked(machine, answer)
    # EC2 may show an instance as running for a while after it said that it is terminated, or that it knows none.
    launched_at = machine.launched_at if machine.instance_id == answer.instance_id else None
    found = replace(
        machine,
        instance_id=answer.instance_id,
        offering=answer.offering,
        launched_at=launched_at or now,
        paid_since=machine.paid_since if launched_at else min(answer.at or now, now),
        usd_per_hour=_price_of(machine, answer),
    )
    decision = terminate(found, now, event="launched late", detail=answer.instance_id)
    return replace(decision, added=MachineTotals(1, micro_usd(found.usd_per_hour)))


def _again(machine: Machine, reason: str, now: datetime, delay_seconds: int) -> MachineDecision:
    wake_at = now + timedelta(seconds=delay_seconds) + ASK_TIMEOUT
    effects = (AskFleet(delay_seconds),)
    noted = replace(machine, reason=reason)
    return move(noted, machine.state, now, event="asked again", detail=reason, wake_at=wake_at, effects=effects)


def _deferred_seconds(machine: Machine, now: datetime) -> int:
    """Return the delay before a throttled request is sent again: it grows with its age and has jitter."""
    age = int((now - machine.created_at).total_seconds())
    mean = min(max(age // 2, _DEFERRED_SECONDS), _LONGEST_DEFERRED_SECONDS)
    return mean // 2 + zlib.crc32(f"{machine.machine_id}/{machine.version}".encode()) % (mean + 1)


def request_expired(machine: Machine, event: RequestExpired, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Give up a request of which no instance came."""
    expired = replace(machine, refusal=event.consequence)
    return gone(expired, now, event="expired", detail=event.reason)


def wake_requested(machine: Machine, _event: MachineDue, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Ask EC2 again: the message may be lost."""
    return set_next_check(machine, now + ASK_TIMEOUT, (AskFleet(),))


def withdraw(machine: Machine, _event: ClaimReleased, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Give up a request that EC2 was never asked for."""
    unclaimed = replace(machine, claims=())
    return gone(unclaimed, now, event="withdrawn", detail="nobody needs it any more; EC2 was not asked")


def may_send(machine: Machine, now: datetime) -> bool:
    """Return whether the request may be sent (again): a job needs it, and its outcome is not unknown for long.

    A function that was killed may have sent it without saving the answer.
    """
    unknown_since = machine.uncertain_since or machine.asked_at
    return bool(machine.claims) and (unknown_since is None or now - unknown_since < SENT_AGAIN_FOR)


def expiry_reason(machine: Machine) -> str:
    """Return why a request is given up that is not sent any more and has no instance."""
    if not machine.claims:
        return "nobody needs it any more, and no instance has its tag"
    return f"its outcome was unknown for {SENT_AGAIN_FOR}, and no instance has its tag"


def is_surely_absent(machine: Machine, now: datetime) -> bool:
    """Return whether an instance that cannot be found by its tags does not exist."""
    return machine.asked_at is None or now - machine.asked_at >= LOOKED_FOR
