"""Machines of a job of several nodes that live when others of it are lost: kept for its next attempt, or given back.

EC2 takes machines of a job of N nodes, or has
  ├─ fewer than half of them live, or the job is out of time ──▶ all are given back, N others are selected
  ├─ waiting for k others is expected to cost more than booting N ──▶ the same
  └─ else ──▶ k more of the same offering are requested while the tasks save; those that live keep their ranks
       ├─ all N are ready, and all tasks have stopped ──▶ the next attempt is placed on them
       └─ EC2 refuses the k, one of the N is lost or warned, or they are not ready within the time that a machine has to
          register ──▶ all are given back, N others are selected

Both ways pay for the boots of the k, and pull on them. What differs is that those that live are paid while the k boot,
or as many others while these do. What is against keeping them is that losses come together: of the machines that live
after a loss in a pool of spot, 15 % are lost within five minutes (SURVIVE_FIVE_MINUTES), and what was waited until then
is paid for nothing.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import NormalDist, median

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision, move
from relaunch.core.lifecycle.events import SurvivorsLeft
from relaunch.core.lifecycle.gangs import has_gang
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.machines.groups import first_ids_of
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.records import dataclass

USUAL_BOOT_SECONDS = 90.0
"""From launch to registration, where no machine of the job says how long it took: the median of docs/machines.md."""
SURVIVE_FIVE_MINUTES = 0.85
"""The share of the machines on spot living after a loss in their pool that live five minutes later.

Of full gangs of the traces of "Can't Be Late" (NSDI 2024; V100, 2023, ticks of five minutes) that lost machines, 51,
60 and 78 % of those of 4 lost exactly one in that tick, and 4, 9 and 12 % of those of 16: 0.85 for each of the others
gives 61 % and 9 %. When in the tick they were lost the traces do not say: evenly is assumed.
"""
LEAST_SHARE = 0.5
"""The share of the machines that must live: of fewer the others are mostly on their way out."""
_FIVE_MINUTES = 300.0
KEPT_AT_MOST = timedelta(minutes=10)
"""How long machines wait at most, however long others of their type may take to register.

A machine without a task powers itself off after IdleMinutes, which are ten at least (infrastructure/machines.yaml).
"""
# e to this power is as good as for ever.
_MOST = 50.0
# Half boot within the median, 95 % within twice of it.
_SPREAD = math.log(2) / 1.645


@dataclass(frozen=True, slots=True)
class Survivors:
    """The machines that are kept, by rank; empty where another one is to be requested. `reason` says why."""

    ranks: tuple[str, ...]
    reason: str

    @property
    def missing(self) -> int:
        """Return how many machines are to be requested."""
        return self.ranks.count("")

    def with_new(self, machine_ids: Iterable[str]) -> tuple[str, ...]:
        """Return the machines of all ranks: those that are kept have theirs, new ones the others in their order."""
        new = iter(machine_ids)
        return tuple(each or next(new) for each in self.ranks)


NO_SURVIVORS = Survivors((), "")
"""No machine is kept: all are requested."""


def needs_replacements(job: Job, _event: object = None) -> bool:
    """Return whether those machines of a job of several nodes that are lost may be replaced, and the others kept.

    EC2 takes one away, or has: its tasks are stopped for that, and it is not decided yet.
    """
    attempt = job.attempt
    if attempt is None or job.state is not JobState.STOPPING or not has_gang(attempt):
        return False
    is_interrupted = attempt.intent is not None and attempt.intent.kind is IntentKind.INTERRUPTION
    is_taken = attempt.warned_at is not None or attempt.host_ended_at is not None
    is_decided = bool(job.machine_id) or attempt.leaves_survivors
    return is_interrupted and is_taken and not (is_decided or job.cancel_requested)


def choose_survivors(
    job: Job, machines: Sequence[Machine | None], warned: Collection[str], now: datetime
) -> Survivors | SurvivorsLeft | None:
    """Return which machines of its current attempt a job keeps, or why none; None while nobody knows of a loss.

    `machines` are those of its ranks, None for one that is not stored any more; `warned` are the instances of which a
    warning is known that the machine may not have yet.
    """
    attempt = job.current_attempt
    gone = {*warned, *attempt.lost_instances}
    lost = [each is None or each.instance_id in gone or _is_lost(each, job) for each in machines]
    if not any(lost):
        return None
    living = [
        each
        for each, is_lost in zip(machines, lost, strict=True)
        if each is not None and not (is_lost or _is_doubtful(each))
    ]
    nodes = len(machines)
    if len(living) < LEAST_SHARE * nodes:
        return SurvivorsLeft(f"{len(living)} of {nodes} machines live")
    over = out_of_time(job, now)
    if over is not None:
        return SurvivorsLeft(over.reason)
    saving = job.noted.save_seconds if job.noted is not None else 0.0
    is_spot = attempt.placement.offering.purchase is PurchaseOption.SPOT
    wait = expected_wait(nodes, nodes - len(living), usual_boot(machines), saving, is_spot=is_spot)
    if not wait.is_worth_it:
        return SurvivorsLeft(str(wait))
    kept = {each.machine_id for each in living}
    ranks = tuple(each.machine_id if each is not None and each.machine_id in kept else "" for each in machines)
    return Survivors(ranks, f"{len(living)} of {nodes} machines are kept: {wait}")


def _is_lost(machine: Machine, job: Job) -> bool:
    is_claimed = machine.claim_of(job.job_id) is not None
    return machine.is_left or machine.state is not MachineState.READY or not is_claimed


def _is_doubtful(machine: Machine) -> bool:
    return machine.is_unusable or machine.away_since is not None


@dataclass(frozen=True, slots=True)
class Wait:
    """What keeping each machine that lives is expected to cost, and giving it back, in seconds of a machine."""

    keeping_seconds: float
    booting_seconds: float

    @property
    def is_worth_it(self) -> bool:
        """Return whether keeping costs less."""
        return self.keeping_seconds < self.booting_seconds

    def __str__(self) -> str:
        """Return both in words."""
        return (
            f"each would wait for {self.keeping_seconds:.0f} s, and another one in its place boots for "
            f"{self.booting_seconds:.0f} s, as expected"
        )


def expected_wait(nodes: int, missing: int, boot: float, saving: float, *, is_spot: bool) -> Wait:
    """Return what keeping the other machines of `nodes` costs while `missing` boot, and booting all anew.

    `boot` is the usual time from launch to registration, `saving` how long the tasks take to stop, both in seconds.
    On spot it may be in vain: half-way through, on average, another one is lost; then the wait until then is paid for
    nothing, that of the new machines too, and all are booted anyway. With the probability p of that, keeping costs
    (1 - p) * wait + p * (vain + booting), and is worth it if wait + p / (1 - p) * vain is less than booting.
    """
    living = nodes - missing
    ready = boot * _last_of(missing)
    exponent = min(-math.log(SURVIVE_FIVE_MINUTES) * living * ready / _FIVE_MINUTES, _MOST) if is_spot else 0.0
    half = ready / 2
    vain = max(half - saving, 0.0) + half * missing / living
    keeping = max(ready - saving, 0.0) + math.expm1(exponent) * vain
    return Wait(keeping, boot * _last_of(nodes))


def _last_of(machines: int) -> float:
    """Return how many times the median the slowest of so many boots takes, as expected.

    Boots are log-normal; the quantile is that of Blom (1958) for the expected largest of a sample.
    """
    return math.exp(_SPREAD * NormalDist().inv_cdf((machines - 0.375) / (machines + 0.25)))


def usual_boot(machines: Iterable[Machine | None]) -> float:
    """Return the median time from launch to registration of these machines, in seconds."""
    boots = [
        (each.registered_at - (each.paid_since or each.launched_at)).total_seconds()
        for each in machines
        if each is not None and each.registered_at and each.launched_at
    ]
    # The clocks of EC2 and of a function differ.
    return max(median(boots), 1.0) if boots else USUAL_BOOT_SECONDS


def kept_until(machines: Sequence[Machine], limits: MachineLimits) -> datetime | None:
    """Return until when the machines of a job wait for those that were requested later; None if none does.

    That is for as long as a machine has to register, from the request on, and KEPT_AT_MOST.
    """
    if len(first_ids_of(each.machine_id for each in machines)) == 1:
        return None
    newest = max(machines, key=lambda each: each.created_at)
    instance_type = newest.request.overrides[0].offering.instance_type
    return newest.created_at + min(limits.registration_deadline_of(instance_type), KEPT_AT_MOST)


def leave_survivors(job: Job, event: SurvivorsLeft, now: datetime, _limits: StackLimits) -> Decision:
    """Note that all machines are given back once the tasks have stopped."""
    left = replace(job, machine_id="", attempt=replace(job.current_attempt, leaves_survivors=True))
    wake_at = job.wake_at or now
    return move(left, job.state, now, event="machines not kept", detail=event.reason, wake_at=wake_at)
