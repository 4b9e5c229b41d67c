"""Runs many seeds on all processors, and reports the results."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from relaunch_local.simulation.checks.areas import AreaCounts
from relaunch_local.simulation.checks.costs import BillDifference
from relaunch_local.simulation.checks.coverage import Transition, rows_unreached, transitions_unreached
from relaunch_local.simulation.checks.useless_machines import Waste
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, run_seed

# Every kind of fault, and its least count per thousand seeds: with fewer, the simulation does not test what it claims.
LEAST_PER_THOUSAND: Mapping[str, int] = {
    "agent-lost": 4,
    "agents-away": 4,
    "agent-connects-late": 400,
    "agent-disconnected": 300,
    "agent-reconnects": 400,
    "machine-starts-nothing": 500,
    "asynchronous-retry": 20,
    # The next five in every fourth seed with a cluster.
    "best-effort-released": 1,
    "job-suspended": 2,
    "node-unheard": 2,
    "pod-cleaned": 2,
    "pods-refused": 2,
    "cluster-job-deleted": 10,
    "node-lost": 10,
    "pod-deleted": 10,
    "pod-evicted": 10,
    # In 5 % of the seeds the jobs in a cluster have several nodes.
    "cluster-events-forgotten": 8,
    "cluster-nodes-full": 10,
    "rank-deleted": 3,
    "rank-evicted": 3,
    "rank-hung": 3,
    "rank-preempted": 3,
    "bucket-closed": 150,
    "bucket-key-denied": 150,
    "call-answer-late": 500,
    "call-answer-lost": 2_000,
    "call-refused": 1_500,
    "call-repeated-by-sdk": 1_500,
    "call-throttled": 1_500,
    "call-unanswered": 1_000,
    "capacity-block-of-others-ends": 200,
    "capacity-changed": 300,
    "delivery-refused": 30,
    "describe-behind": 100,
    "event-delayed": 300,
    "event-duplicated": 2_000,
    "event-lost": 800,
    "event-not-taken": 500,
    "event-reordered": 2_000,
    "event-retried-for-hours": 40,
    "fleet-answer-empty": 150,
    "fleet-answer-untrue": 80,
    "fleet-call-refused": 200,
    "fleet-launch-refused": 600,
    "function-killed": 1_500,
    "function-out-of-memory": 300,
    "function-stalled": 400,
    "function-timed-out": 10,
    "gpu-fails": 30,
    # Few deliveries fail, and the sweep asks for those of every other seed.
    "github-answer-lost": 8,
    "github-asked-again": 20,
    "github-pushed-again": 100,
    "github-pushed-twice": 100,
    "github-redelivered": 100,
    "github-unavailable": 8,
    "group-at-its-maximum": 40,
    # In 5 % of the seeds the jobs of one definition have several nodes.
    "group-launched-beside-errors": 6,
    "group-launched-in-part": 6,
    "group-machine-lacks-a-gpu": 8,
    "group-machine-never-joins": 8,
    "group-machines-lost": 4,
    "group-machines-warned": 2,
    "group-reclaimed": 2,
    "group-revision-deregistered": 1,
    "group-refused-with-two-errors": 2,
    "group-seen-in-parts": 30,
    "group-answered-in-part": 20,
    "group-without-addresses": 20,
    "host-disconnects": 200,
    "host-gpus-late": 200,
    "host-invisible-for-long": 200,
    "host-late": 200,
    "host-never-joins": 200,
    "host-hung": 4,
    "host-silent": 40,
    "host-without-gpus": 100,
    "host-without-user-data": 100,
    "image-useless": 12,
    "index-behind": 800,
    # In 15 % of the seeds, where a training has 25 minutes left.
    "instance-retired": 50,
    "instance-unknown": 100,
    "instances-behind": 300,
    "launches-refused": 12,
    "launches-throttled": 500,
    "loop-of-16-passes": 1,
    # A consequence of scale-out-late: there is an avoidance that it refutes.
    "machine-arrived-late": 400,
    "machine-ended-by-its-host": 200,
    "machine-interrupted": 800,
    "machine-interrupted-as-a-task-lands": 100,
    "machine-interrupted-at-short-notice": 200,
    "machine-lost-while-disconnected": 150,
    "machine-lost-without-warning": 500,
    "machine-shuts-down-for-long": 8,
    "outage": 50,
    "pool-reclaimed": 8,
    "zone-lost": 15,
    "message-delayed": 300,
    "message-delete-lost": 300,
    "message-duplicated": 1_000,
    "message-reordered": 1_000,
    "no-on-demand-for-a-while": 60,
    # In every fifth seed somebody is sent notices.
    "notice-answer-lost": 40,
    "notice-limited": 60,
    "notice-refused": 80,
    "notice-unanswered": 30,
    "no-spot-at-first": 60,
    "object-overwritten": 100,
    "poison-message": 50,
    "placement-refused": 12,
    "pool-empty": 1_000,
    "pool-refuses": 1_000,
    "pool-useless": 30,
    "price-changed": 100,
    "program-blames-its-machine": 30,
    "provider-not-active": 150,
    "provider-without-instance": 100,
    "pull-hangs": 300,
    "quota-reached": 100,
    "rebalance-recommended": 100,
    "registrations-overlap": 100,
    "requests-of-others": 300,
    "reservation-cancelled": 4,
    "reservation-taken-by-others": 100,
    "reservations-unreadable": 6,
    "retry-from-no-step": 15,
    "retry-sent-twice": 120,
    "revision-deregistered": 80,
    "run-instances-refused": 1,
    "run-task-forbidden": 60,
    "run-task-unanswered": 100,
    "scale-out-late": 1_500,
    "scaling-switched-off": 150,
    "schedule-missed": 1_000,
    # In 15 % of the seeds schedules, events and topics start jobs; the last two only where Scheduler fails for long.
    "scheduled-time-late": 20,
    "scheduled-time-sent-twice": 20,
    "scheduled-time-given-up": 0,
    "scheduled-time-redriven": 0,
    "start-fails-everywhere": 30,
    "start-fails-for-minutes": 30,
    "start-fails-on-a-machine": 30,
    "start-fails-with-unknown-words": 30,
    "start-refused": 30,
    "starting-machine-lost": 150,
    "starting-machine-warned": 60,
    "stop-races-with-exit": 40,
    "stop-without-effect": 200,
    # An orphaned task that is live: mostly one that ECS denied for longer than it documents.
    "sidecar-died": 200,
    "slack-thread-deleted": 5,
    "status-failed": 40,
    "status-limited": 20,
    "status-taken-late": 30,
    "status-unanswered": 15,
    "status-without-right": 20,
    "stray-task": 3,
    "subnet-full": 250,
    "task-denied-too-long": 80,
    "task-forgotten": 60,
    "task-missing": 50,
    "task-stopped-by-others": 20,
    "task-visible-late": 200,
    "termination-without-effect": 12,
    "topic-message-late": 20,
    "topic-message-twice": 20,
    "training-left-by-itself": 40,
    "training-stalled": 40,
    "user-cancels": 200,
    "user-retries": 300,
    "vcpu-quota-reached": 300,
    "warning-of-a-machine-long-gone": 100,
    "warning-twice": 100,
    "warning-without-interruption": 100,
}
# With fewer seeds a kind may be missing by chance.
_ENOUGH_SEEDS = 500
_ENOUGH_FOR_EVERY_ROW = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that violated an invariant."""

    seed: int
    violations: tuple[str, ...]


@dataclass
class Report:
    """The results of many seeds."""

    seeds: int = 0
    jobs: int = 0
    tasks: int = 0
    steps: int = 0
    simulated_seconds: float = 0.0
    wall_seconds: float = 0.0
    injected: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """By kind: injected faults, and their consequences (time-outs, retries, loops, orphaned tasks)."""
    checks: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    decided_by: Counter[Transition] = field(default_factory=Counter)
    """How often each transition of the table was made."""
    deadlines: Counter[str] = field(default_factory=Counter)
    """How many promised deadlines were kept, were excused and by what, or were broken (checks/deadlines.py)."""
    waste: Waste = field(default_factory=Waste)
    """The most that one seed paid for machines that never ran a task."""
    useless_hours: float = 0.0
    difference: BillDifference = field(default_factory=BillDifference)
    """The largest difference of the record of any job from EC2's bill."""
    areas: AreaCounts = field(default_factory=AreaCounts)
    """In how many seeds each use case and each effect occurred."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def violation_count(self) -> int:
        """The number of failed checks."""
        return sum(len(failure.violations) for failure in self.failures)

    @property
    def too_rare(self) -> dict[str, tuple[int, int]]:
        """Kinds of faults below their least count: the count and the least count."""
        if self.seeds < _ENOUGH_SEEDS:
            return {}
        wanted = {kind: max(1, least * self.seeds // 1_000) for kind, least in LEAST_PER_THOUSAND.items()}
        return {kind: (self.faults[kind], least) for kind, least in wanted.items() if self.faults[kind] < least}

    @property
    def rows_unreached(self) -> list[str]:
        """Rows of the transition table that decided nothing, if there were enough seeds for all of them."""
        return rows_unreached(self.decided_by) if self.seeds >= _ENOUGH_FOR_EVERY_ROW else []

    @property
    def areas_too_rare(self) -> list[str]:
        """Use cases and effects that occurred too rarely, or too rarely with a fault, if there were enough seeds."""
        return self.areas.too_rare(self.seeds) if self.seeds >= _ENOUGH_FOR_EVERY_ROW else []

    @property
    def is_good(self) -> bool:
        """Whether no invariant was violated, and every fault, row, use case and effect was tried."""
        return not (self.failures or self.too_rare or self.rows_unreached or self.areas_too_rare)

    def add(self, result: SeedResult) -> None:
        """Add the result of one seed."""
        self.seeds += 1
        self.jobs += result.jobs
        self.tasks += result.tasks
        self.steps += result.steps
        self.simulated_seconds += result.simulated_seconds
        self.injected += len(result.faults)
        self.faults.update(result.happened)
        self.checks.update(result.checks)
        self.ends.update(result.ends)
        self.decided_by.update(result.decided_by)
        self.deadlines.update(result.deadlines)
        self.areas.add(result.areas)
        self.waste = self.waste.worst(result.waste)
        self.useless_hours += result.waste.hours
        self.difference = self.difference.worst(result.difference)
        if result.violations:
            self.failures.append(Failure(result.seed, result.violations))

    def summary_line(self) -> str:
        """Return the last line of the output."""
        return f"{self.injected} faults, {self.jobs} jobs, {self.violation_count} violations"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "seeds": self.seeds,
            "jobs": self.jobs,
            "tasks": self.tasks,
            "steps": self.steps,
            "simulated_hours": round(self.simulated_seconds / 3600, 1),
            "wall_seconds": round(self.wall_seconds, 1),
            "injected": self.injected,
            "faults": dict(sorted(self.faults.items())),
            "checks": dict(sorted(self.checks.items())),
            "ends": dict(sorted(self.ends.items())),
            "deadlines": dict(sorted(self.deadlines.items())),
            "useless_machines": {
                "most_per_job_and_day": self.waste.per_job,
                "most_per_cause_and_day": self.waste.per_cause,
                "most_hours_of_a_seed": round(self.waste.hours, 2),
                "hours": round(self.useless_hours, 2),
            },
            "bill": {
                "most_usd_from_it": round(self.difference.usd, 9),
                "most_usd_beyond_what_is_known": round(self.difference.beyond_usd, 9),
            },
            "transitions": {str(each): count for each, count in sorted(self.decided_by.items())},
            "transitions_unreached": [str(each) for each in transitions_unreached(self.decided_by)],
            "rows_unreached": self.rows_unreached,
            "areas": self.areas.to_json(),
            "areas_too_rare": self.areas_too_rare,
            "too_rare": {kind: list(counts) for kind, counts in self.too_rare.items()},
            "failures": [{"seed": each.seed, "violations": list(each.violations)} for each in self.failures],
            "violations": self.violation_count,
        }


def run_seeds(
    seeds: Iterable[int],
    options: Options | None = None,
    *,
    processes: int | None = None,
    on_result: Callable[[SeedResult], None] = lambda _result: None,
    stop_after_failures: int | None = None,
) -> Report:
    """Run seeds and return their report; with `processes` 1 in this process.

    `on_result` is called with each result; `stop_after_failures` ends the run after so many failing seeds.
    """
    chosen = options or Options()
    todo = list(seeds)
    report = Report()
    began = time.monotonic()
    for result in _results(todo, chosen, processes or min(multiprocessing.cpu_count(), max(len(todo), 1))):
        report.add(result)
        on_result(result)
        if stop_after_failures is not None and len(report.failures) >= stop_after_failures:
            break
    report.failures.sort(key=lambda failure: failure.seed)
    report.wall_seconds = time.monotonic() - began
    return report


def _results(seeds: Sequence[int], options: Options, processes: int) -> Iterable[SeedResult]:
    if processes == 1:
        yield from (run_seed(seed, options) for seed in seeds)
        return
    # Forked, so that the catalogue, the template and all imports are loaded already.
    context = multiprocessing.get_context("fork")
    with context.Pool(processes) as pool:
        yield from pool.imap_unordered(partial(run_seed, options=options), seeds, chunksize=5)
