"""How open spot stays for a stack of many machines: `python -m relaunch_local.simulation.spot_market`.

Jobs that only use spot and never end run on three types of about the same price. What a job does after a stop, what
the store keeps and which offering is chosen are the application's; the market is a model of two causes. The capacity of
each type runs short for some time, which takes all its machines and lets no launch succeed until it ends; and each
machine is interrupted on its own. Together they are the rate of interruptions that selection assumes for scarce types.
"""

import argparse
import heapq
import itertools
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import sqrt
from statistics import pvariance

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt import Attempt, Placement, PlacementState, Stop, StopKind
from relaunch.core.jobs.effects import CountRun, Effect, RememberCapacity
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.lifecycle.stopping import count_run, follow_stop
from relaunch.core.offerings.offering import SCARCE_PER_HOUR, CapacityFailure, Offering
from relaunch.core.offerings.spot_runs import Observed, find_shortage_risks, with_observed_rates
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.selection import prefer_low_risk, select
from relaunch_local.in_memory.stores import InMemoryCapacity

_START = datetime(2026, 3, 1, tzinfo=UTC)
_PRICES = {"g4dn.2xlarge": 0.30, "g5.xlarge": 0.35, "g6.xlarge": 0.32}
_SHORTAGE_EVERY = timedelta(hours=20)
_SHORTAGE_LASTS = timedelta(hours=1)
# The rest of the rate are the shortages.
_OWN_PER_HOUR = SCARCE_PER_HOUR - timedelta(hours=1) / (_SHORTAGE_EVERY + _SHORTAGE_LASTS)
_BOOT = timedelta(minutes=4)
_POLL = timedelta(minutes=5)
_SAMPLE = timedelta(minutes=5)
# As it was before interruptions counted for the rate.
_AVOIDED_AFTER_INTERRUPTION = timedelta(minutes=30)
_AVOIDED_AFTER_NO_CAPACITY = timedelta(minutes=15)
_DEFINITION = JobDefinition(
    name="train",
    task_definition="train",
    accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=8 * 1024)),
    purchase=PurchasePolicy.SPOT,
    checkpoint_uri="s3://checkpoints/",
    estimated_duration=timedelta(hours=12),
    max_runtime=timedelta(days=9_999),
    deadline=timedelta(days=9_999),
)
_OFFERINGS = tuple(
    Offering(load_catalogue()[name], PurchaseOption.SPOT, price_usd_per_hour=price, capacity_provider=name)
    for name, price in _PRICES.items()
)


@dataclass(frozen=True, slots=True)
class MarketResult:
    """The share of time that an average offering is open to a job, and the launches by their end."""

    open_share: float
    launches: int
    failed_launches: int
    running_share: float


@dataclass
class SpotMarket:
    """Some machines over some days; `shuts_for_all`: an interruption lets all jobs avoid its offering, as before."""

    machines: int
    seed: int = 0
    shuts_for_all: bool = False
    now: datetime = _START
    capacity: InMemoryCapacity = field(default_factory=InMemoryCapacity)
    _queue: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _jobs: dict[int, Job] = field(default_factory=dict)
    _short_until: dict[str, datetime] = field(default_factory=dict)
    _launches: int = 0
    _failed: int = 0
    _open: list[float] = field(default_factory=list)
    _running: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Schedule the first events; the market draws from a stream of its own, the same for every rule."""
        self._numbers = itertools.count()
        self._market = random.Random(f"{self.seed}/market")  # noqa: S311 - no secret
        self._own = random.Random(f"{self.seed}/own")  # noqa: S311 - no secret
        for name in _PRICES:
            self._after(self._exponential(self._market, _SHORTAGE_EVERY), partial(self._fall_short, name))
        for number in range(self.machines):
            self._jobs[number] = _new_job(number)
            self._after(timedelta(minutes=number), partial(self._choose, number))
        self._after(_SAMPLE, self._sample)

    def run(self, days: float) -> MarketResult:
        """Run the market for some days."""
        end = _START + timedelta(days=days)
        while self._queue[0][0] <= end:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        mean_open, mean_running = (sum(each) / len(each) for each in (self._open, self._running))
        return MarketResult(mean_open, self._launches, self._failed, mean_running)

    def _after(self, delay: timedelta, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._numbers), action))

    def _exponential(self, stream: random.Random, mean: timedelta) -> timedelta:
        return mean * stream.expovariate(1.0)

    def _fall_short(self, name: str) -> None:
        lasts = self._exponential(self._market, _SHORTAGE_LASTS)
        self._short_until[name] = self.now + lasts
        self._after(lasts + self._exponential(self._market, _SHORTAGE_EVERY), lambda: self._fall_short(name))
        for number, job in self._jobs.items():
            if job.state is JobState.RUNNING and job.current_attempt.placement.offering.instance_type == name:
                attempt = job.current_attempt.number
                within = timedelta(seconds=self._own.uniform(0.0, 300.0))
                self._after(within, partial(self._interrupt, number, attempt))

    def _choose(self, number: int) -> None:
        memory, runs, _ = self.capacity.load_capacity(self.now)
        if self.shuts_for_all:
            runs = ()
        offerings = with_observed_rates(_OFFERINGS, runs, self.now)
        limits = StackLimits().selection
        selection = select(_DEFINITION, None, offerings, memory, self.now, limits)
        selection = prefer_low_risk(selection, find_shortage_risks(runs, self.now))
        if not selection.kept:
            retry_at = min(selection.retry_at or self.now + _POLL, self.now + _POLL)
            self._after(max(retry_at - self.now, timedelta(seconds=15)), lambda: self._choose(number))
            return
        self._launch(number, selection.kept[0])

    def _launch(self, number: int, chosen: Offering) -> None:
        job = self._jobs[number]
        placement = Placement(
            1, chosen.key, chosen.capacity_provider or "", 0.3, self.now, PlacementState.PLACED, f"task-{number}"
        )
        attempt = Attempt((job.attempt.number if job.attempt else 0) + 1, placement)
        self._jobs[number] = replace(job, state=JobState.LAUNCHING, attempt=attempt)
        self._launches += 1
        short_for = max(self._short_until.get(chosen.instance_type.name, self.now) - self.now, timedelta(0))
        deadline = StackLimits().provisioning_deadline(is_managed=False)
        if short_for + _BOOT > deadline:
            self._after(deadline, lambda: self._fail(number))
        else:
            self._after(short_for + _BOOT, lambda: self._start(number))

    def _fail(self, number: int) -> None:
        self._failed += 1
        self._stop(number, StopKind.NO_CAPACITY)

    def _start(self, number: int) -> None:
        job = self._jobs[number]
        name = job.current_attempt.placement.offering.instance_type
        attempt = replace(job.current_attempt, started_at=self.now)
        self._jobs[number] = replace(job, state=JobState.RUNNING, attempt=attempt)
        self._do(count_run(self._jobs[number], Observed.START, self.now))
        own = self._exponential(self._own, timedelta(hours=1 / _OWN_PER_HOUR))
        is_short = self._short_until.get(name, self.now) > self.now
        self._after(timedelta(0) if is_short else own, lambda: self._interrupt(number, attempt.number))

    def _interrupt(self, number: int, attempt: int) -> None:
        job = self._jobs[number]
        if job.state is JobState.RUNNING and job.current_attempt.number == attempt:
            self._stop(number, StopKind.INTERRUPTION)

    def _stop(self, number: int, kind: StopKind) -> None:
        job = self._jobs[number]
        stopped = follow_stop(job, Stop(kind, self.now), self.now).job
        self._do(stopped.pending)
        self._after(timedelta(0), lambda: self._choose(number))
        if self.shuts_for_all and kind is StopKind.INTERRUPTION:
            until = self.now + _AVOIDED_AFTER_INTERRUPTION
            offering = job.current_attempt.placement.offering
            self.capacity.remember(CapacityFailure(offering, "interrupted", self.now, until))
        self._jobs[number] = stopped

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case RememberCapacity():
                    until = self.now + _AVOIDED_AFTER_NO_CAPACITY if self.shuts_for_all else effect.until
                    self.capacity.remember(CapacityFailure(effect.offering, effect.reason, effect.at, until))
                case CountRun():
                    self.capacity.count_run(effect.run)
                case _:
                    pass  # the launch follows by itself

    def _sample(self) -> None:
        shut = len(self.capacity.load_capacity_memory(self.now))
        self._open.append(1 - shut / len(_PRICES))
        running = sum(job.state is JobState.RUNNING for job in self._jobs.values())
        self._running.append(running / self.machines)
        self._after(_SAMPLE, self._sample)


def _new_job(number: int) -> Job:
    return Job(f"train-{number}", _DEFINITION, TriggerFacts("api", "", ""), Revision("", "train", 1, ()), _START)


def describe(machines: tuple[int, ...], days: float, seeds: Sequence[int]) -> str:
    """Return a table in Markdown: each number of machines with the rule as it was and as it is; at least two seeds.

    Failed launches per success, and their difference from the rule as it was, have the half-width of their 95 %
    confidence interval: a jackknife over the seeds, each of which has the same shortages for both rules.
    """
    lines = [
        "| machines | an interruption | open | failed launches per success | difference | running |",
        "|---|---|---|---|---|---|",
    ]
    for count in machines:
        before, now = ([SpotMarket(count, seed, shuts).run(days) for seed in seeds] for shuts in (True, False))
        difference = _with_spread(partial(_difference, before, now), len(seeds), "+.4f")
        for results, rule, compared in (
            (before, "shuts its offering for all", ""),
            (now, "counts for the rate", difference),
        ):
            opened = sum(each.open_share for each in results) / len(seeds)
            running = sum(each.running_share for each in results) / len(seeds)
            failed = _with_spread(partial(_failed_per_success, results), len(seeds), ".4f")
            lines.append(f"| {count} | {rule} | {opened:.1%} | {failed} | {compared} | {running:.1%} |")
    return "\n".join(lines)


def _failed_per_success(results: Sequence[MarketResult], chosen: Collection[int]) -> float:
    failed = sum(results[number].failed_launches for number in chosen)
    return failed / (sum(results[number].launches for number in chosen) - failed)


def _difference(before: Sequence[MarketResult], now: Sequence[MarketResult], chosen: Collection[int]) -> float:
    return _failed_per_success(now, chosen) - _failed_per_success(before, chosen)


def _with_spread(statistic: Callable[[Collection[int]], float], count: int, style: str) -> str:
    without_one = [statistic(set(range(count)) - {number}) for number in range(count)]
    return f"{statistic(range(count)):{style}} ± {1.96 * sqrt((count - 1) * pvariance(without_one)):.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.spot_market")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(describe(tuple(options.machines), options.days, seeds))


if __name__ == "__main__":
    main()
