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
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.events import SurvivorsLeft
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.machines.groups import Survivors
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.records import dataclass

USUAL_BOOT_SECONDS = 90.0
"""From launch to registration, where no machine of the job says how long it took: a judgement, as in the simulation."""
SURVIVE_FIVE_MINUTES = 0.85
"""The share of the machines on spot living after a loss in their pool that live five minutes later.

Of full gangs of the traces of "Can't Be Late" (NSDI 2024; V100, 2023, ticks of five minutes) that lost machines, 51,
60 and 78 % of those of 4 lost exactly one in that tick, and 4, 9 and 12 % of those of 16: 0.85 for each of the others
gives 61 % and 9 %. When in the tick they were lost the traces do not say: evenly is assumed.
"""
LEAST_SHARE = 0.5
"""The share of the machines that must live: of fewer the others are mostly on their way out."""
_FIVE_MINUTES = 300.0
# e to this power is as good as for ever.
_MOST = 50.0
# Half boot within the median, 95 % within twice of it.
_SPREAD = math.log(2) / 1.645
_SLOWEST = (
    *(0.000, 0.589, 0.869, 1.049, 1.180, 1.282, 1.364, 1.434, 1.494, 1.547, 1.593, 1.635),
    *(1.673, 1.708, 1.739, 1.769, 1.796, 1.822, 1.846, 1.868, 1.890, 1.910, 1.929, 1.947),
    *(1.964, 1.981, 1.997, 2.012, 2.026, 2.040, 2.054, 2.067),
)
"""By how many standard deviations the slowest of 1, 2, 3… machines, up to 32, is expected to be above the median.

These are the quantiles of Blom (1958) for the largest of a normal sample; `statistics` takes a cold start longer.
"""


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
    """Return what keeping the other machines of `nodes` costs while `missing` boot, and booting all of them.

    `boot` is the usual time from launch to registration, `saving` how long the tasks take to stop, both in seconds.
    On spot another one may be lost, half-way through on average; the wait until then is for nothing then (`vain`), that
    of the new machines too, and all are booted anyway. With the probability p of that, keeping costs
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
    """Return how many times the median the slowest of so many boots takes, as expected: they are log-normal."""
    return math.exp(_SPREAD * _SLOWEST[min(machines, len(_SLOWEST)) - 1])


def usual_boot(machines: Iterable[Machine | None]) -> float:
    """Return the median time from launch to registration of these machines, in seconds."""
    boots = [
        (each.registered_at - (each.paid_since or each.launched_at)).total_seconds()
        for each in machines
        if each is not None and each.registered_at and each.launched_at
    ]
    if not boots:
        return USUAL_BOOT_SECONDS
    # The clocks of EC2 and of a function differ.
    return max(sorted(boots)[len(boots) // 2], 1.0)
