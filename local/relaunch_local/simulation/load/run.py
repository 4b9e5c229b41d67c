"""`python -m relaunch_local.simulation.load`: many events at once, against AWS's documented limits.

Every event must become one job, every job one task that runs to its end, and the last task must start not much later
than the tightest limit allows. Otherwise the exit status is not 0.
"""

import argparse
import json
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.budgets import Budget
from relaunch_local.ecs import Event, Timing
from relaunch_local.simulation.aws.delayed_ecs import TASK_STATE_CHANGE
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.faults.useless_machines import UselessMachineFaults
from relaunch_local.simulation.load.account import (
    DEFINITIONS,
    EVENTS_AT_SECONDS,
    USD_PER_HOUR,
    LoadAccount,
    LoadScenario,
    tasks_per_machine,
)
from relaunch_local.simulation.load.events import LoadEvents
from relaunch_local.simulation.load.limits import Limit, Load, limits_of, tightest
from relaunch_local.simulation.load.options import PROVISIONING_QUOTA, LoadOptions
from relaunch_local.simulation.run import Schedule
from relaunch_local.simulation.verdict import Verdict

MOST_RATIO = 1.10
"""How much longer than the tightest limit allows a load may take."""
MOST_RATIO_OWN = 1.35
"""The same on machines of our own, which their function also reads and saves: a third as long as CreateFleet takes."""
# Programs run until the last one has started, so that no instance is reused.
_WORK_MARGIN = 1.5
WORK_LEAST_SECONDS = 1_200.0
# A load that has not finished by then never will.
_LONGEST_RATIO = 8.0
_STEP_SECONDS = 10.0
_REPORT_EVERY_SECONDS = 5.0
_SHOWN_FAULTS = 10


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load; times are in simulated seconds, except `wall_seconds`.

    `calls` are those of ECS and EC2, `made` all calls of functions, by service and action, `made_until_running`
    those until the last task ran. `machines` is how many
    machines of our own were saved, those included that were given up before EC2 was asked. `conflicts` are the refused
    transactions, `shared_writes` the writes of the items that all jobs share, `busiest_second` the most in one second.
    """

    options: LoadOptions
    limits: tuple[Limit, ...]
    took_seconds: float
    accepted: int
    jobs: int
    tasks: int
    launched: int
    ends: Counter[str]
    deliveries: int
    repeated: int
    refused: Counter[str]
    calls: Counter[str]
    made: Counter[str]
    made_until_running: Counter[str]
    machines: int
    conflicts: Counter[str]
    shared_writes: Counter[str]
    busiest_second: Counter[str]
    dead_letters: int
    violations: tuple[str, ...]
    checks: int
    steps: int
    simulated_seconds: float
    wall_seconds: float
    memory_mib: float

    @property
    def tightest(self) -> Limit:
        """The limit that takes the most time."""
        return tightest(self.limits)

    @property
    def fleets(self) -> int:
        """How often CreateFleet was called."""
        return self.calls["create_fleet"]

    @property
    def ratio(self) -> float:
        """How much longer it took than the tightest limit allows."""
        return self.took_seconds / self.tightest.least_seconds

    @property
    def faults(self) -> list[str]:
        """Descriptions of everything that is wrong."""
        events = self.options.events
        counts = {"events accepted": self.accepted, "jobs": self.jobs, "jobs launched": self.launched}
        counts |= {"tasks": self.tasks, "jobs that succeeded": self.ends["SUCCEEDED"]}
        found = [f"{count:,} {name}, not {events:,}" for name, count in counts.items() if count != events]
        if self.dead_letters:
            found.append(f"{self.dead_letters} messages are dead")
        most = MOST_RATIO_OWN if self.options.is_own else MOST_RATIO
        if self.ratio > most:
            found.append(f"it took {self.ratio:.2f} times what {self.tightest.name} allows, more than {most}")
        if self.ratio < 1:
            found.append(f"it took less than {self.tightest.name} allows: the limit is computed or kept wrongly")
        return [*found, *self.violations]

    def to_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        numbers = ("took_seconds", "accepted", "jobs", "tasks", "launched", "deliveries", "repeated")
        return {
            "events": self.options.events,
            "instance_type": self.options.instance_type,
            "is_warm": self.options.is_warm,
            "is_own": self.options.is_own,
            "max_machines": self.options.max_machines,
            "budget_usd": self.options.budget_usd,
            "limits": [
                {"name": each.name, "documented": each.documented, "source": each.source, "least_s": each.least_seconds}
                for each in self.limits
            ],
            "tightest": self.tightest.name,
            "floor_s": self.tightest.least_seconds,
            "ratio": round(self.ratio, 4),
            **{name: getattr(self, name) for name in numbers},
            "ends": dict(self.ends),
            "refused": dict(self.refused),
            "calls": dict(self.calls),
            "made": dict(self.made),
            "made_until_running": dict(self.made_until_running),
            "machines": self.machines,
            "conflicts": dict(self.conflicts),
            "shared_writes": dict(self.shared_writes),
            "busiest_second": dict(self.busiest_second),
            "checks": self.checks,
            "dead_letters": self.dead_letters,
            "faults": self.faults,
            "simulated_s": round(self.simulated_seconds, 1),
            "wall_s": round(self.wall_seconds, 1),
            "memory_mib": round(self.memory_mib),
        }


class LoadVerdict(Verdict):
    """Checks a load as any other run, but finds the jobs of all events in one pass."""

    def _check_events(self) -> None:
        found: Counter[tuple[str, str]] = Counter()
        accepted = {(definition, token) for definition, token, _ in self._workload.accepted}
        for job in self._invariants.jobs.values():
            tokens = [token for token in _words(job.trigger.identity) if (job.definition.name, token) in accepted]
            found.update((job.definition.name, token) for token in tokens)
            self._check("no job without an event", len(tokens) == 1, f"{job.job_id}: {job.trigger.identity}")
        for each in sorted(accepted):
            self._check("an accepted event becomes exactly one job", found[each] == 1, f"{each}: {found[each]} jobs")


def _words(identity: str) -> set[str]:
    return set("".join(character if character.isalnum() else " " for character in identity).split())


def _load_of(options: LoadOptions) -> Load:
    per_machine = tasks_per_machine(options.instance_type)
    machines = 0 if options.is_warm else math.ceil(options.events / per_machine)
    return Load(
        options.events,
        DEFINITIONS,
        machines,
        per_machine,
        options.provisioning_quota,
        is_own=options.is_own,
        max_machines=options.max_machines,
        # Machines are used again only where there are not enough for all.
        work_seconds=WORK_LEAST_SECONDS if 0 < options.max_machines < machines else 0.0,
    )


class LoadRun:
    """A load in progress."""

    def __init__(self, options: LoadOptions, on_progress: Callable[[str], None]) -> None:
        """Plan the events; `on_progress` is called every few seconds."""
        self.options = options
        self._on_progress = on_progress
        self._began = self._reported_at = time.monotonic()
        self.load = _load_of(options)
        self.limits = tuple(limits_of(self.load, Timing()))
        self.floor_seconds = tightest(self.limits).least_seconds
        scenario = LoadScenario.of(options, self.load.work_seconds or self._work_seconds())
        self.account = LoadAccount(options.seed, scenario)
        self._set_budgets()
        self.events = LoadEvents(self.account)
        Schedule(self.account)
        self.began_at = self.account.clock.now() + timedelta(seconds=EVENTS_AT_SECONDS)
        self.running: dict[str, datetime] = {}
        """When the first task of each job was RUNNING."""
        self.made_until_running: Counter[str] = Counter()
        self.account.simulator.subscribe(self._observe)

    def _set_budgets(self) -> None:
        if not self.options.budget_usd:
            return
        names = (each.name for each in self.account.scenario.definitions)
        for scope in ("stack", *(f"definition/{name}" for name in names)):
            self.account.stores.budgets.set_budget(Budget(scope), self.options.budget_usd, None, {})

    def _work_seconds(self) -> float:
        return max(_WORK_MARGIN * self.floor_seconds, WORK_LEAST_SECONDS)

    def run(self) -> LoadResult:
        """Run until every job has ended, and check the run."""
        account = self.account
        longest = _LONGEST_RATIO * self.floor_seconds
        self._advance(lambda: len(self.running) >= self.options.events, longest)
        self.made_until_running = account.every_call
        self._advance(self._is_idle, longest + 2 * _WORK_MARGIN * self.floor_seconds + WORK_LEAST_SECONDS)
        LoadVerdict(account, self.events, RareFaults(account, lambda: None), UselessMachineFaults(account)).check()
        return self._result()

    def _observe(self, event: Event) -> None:
        detail = event["detail"]
        if event["detail-type"] == TASK_STATE_CHANGE and detail["lastStatus"] == "RUNNING":
            self.running.setdefault(detail["startedBy"].rpartition("/")[0], self.account.clock.now())

    def _is_idle(self) -> bool:
        jobs = self.account.invariants.jobs
        is_over = all(job.state.is_final and not job.pending and not job.outbox.unsent for job in jobs.values())
        return len(jobs) >= self.options.events and is_over

    def _advance(self, is_there: Callable[[], bool], longest_seconds: float) -> None:
        clock = self.account.clock
        limit = clock.now() + timedelta(seconds=longest_seconds)
        while not is_there() and clock.now() < limit:
            clock.advance(_STEP_SECONDS)
            if time.monotonic() - self._reported_at >= _REPORT_EVERY_SECONDS:
                self._reported_at = time.monotonic()
                self._on_progress(self._progress())

    def _progress(self) -> str:
        account = self.account
        seconds = (account.clock.now() - self.began_at).total_seconds()
        jobs = account.invariants.jobs
        ended = sum(job.state.is_final for job in jobs.values())
        return (
            f"{seconds:>7,.0f} s simulated in {self._reported_at - self._began:.0f} s: {len(jobs):,} jobs, "
            f"{len(self.running):,} launched, {ended:,} over, {account.refused.total():,} calls refused"
        )

    def _result(self) -> LoadResult:
        account = self.account
        jobs = account.invariants.jobs
        last = max(self.running.values(), default=account.clock.now())
        return LoadResult(
            options=self.options,
            limits=self.limits,
            took_seconds=(last - self.began_at).total_seconds(),
            accepted=len(self.events.accepted),
            jobs=len(jobs),
            tasks=sum(len(tasks) for tasks in account.invariants.tasks.values()),
            launched=len(self.running),
            ends=Counter(str(job.state) for job in jobs.values()),
            deliveries=self.events.deliveries,
            repeated=self.events.repeated,
            refused=account.refused,
            calls=account.calls_made,
            made=account.every_call,
            made_until_running=self.made_until_running,
            machines=account.machines_requested,
            conflicts=account.contention.refused,
            shared_writes=account.contention.writes,
            busiest_second=account.contention.busiest,
            dead_letters=len(account.queues.dead_letters),
            violations=tuple(account.invariants.violations),
            checks=account.invariants.checks.total(),
            steps=account.runtime.steps,
            simulated_seconds=(account.clock.now() - account.started_at).total_seconds(),
            wall_seconds=time.monotonic() - self._began,
            memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )


def run_load(options: LoadOptions, on_progress: Callable[[str], None] = lambda _text: None) -> LoadResult:
    """Run a load."""
    return LoadRun(options, on_progress).run()


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if anything is wrong."""
    arguments = _parse_arguments(words)
    options = LoadOptions(
        events=arguments.events,
        instance_type=arguments.machine,
        is_warm=arguments.warm,
        provisioning_quota=arguments.provisioning_quota,
        seed=arguments.seed,
        is_own=arguments.fleet,
        max_machines=arguments.max_machines,
        budget_usd=arguments.budgets,
    )
    result = run_load(options, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(result.to_json(), indent=2) if arguments.json else describe(result))
    return 1 if result.faults else 0


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    usual = LoadOptions()
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.load", description=__doc__)
    parser.add_argument("--events", type=int, default=usual.events, help="number of events")
    parser.add_argument("--machine", choices=sorted(USD_PER_HOUR), default=usual.instance_type)
    parser.add_argument("--warm", action="store_true", help="machines for all jobs are there; else there is none")
    parser.add_argument("--fleet", action="store_true", help="on machines of our own, not on a capacity provider's")
    parser.add_argument("--max-machines", type=int, default=0, help="MaxMachines, with --fleet; 0: any number")
    parser.add_argument("--budgets", type=float, default=0.0, metavar="USD", help="of the stack and each definition")
    parser.add_argument("--provisioning-quota", type=int, default=PROVISIONING_QUOTA, help="as Service Quotas has it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args(words)
    if arguments.events < 1 or arguments.provisioning_quota < 1:
        parser.error("--events and --provisioning-quota must be at least 1")
    if arguments.max_machines < 0:
        parser.error("--max-machines must be at least 1, or 0 for any number")
    if arguments.max_machines and not arguments.fleet:
        parser.error("--max-machines is a limit on machines of our own: add --fleet")
    if arguments.warm and arguments.fleet:
        parser.error("--warm is a load on a capacity provider's machines: leave out --fleet")
    return arguments


def describe(result: LoadResult) -> str:
    """Return the result as text: the limits, what was refused, and how long it took."""
    limit = result.tightest
    where = "with machines for all" if result.options.is_warm else "from no machine"
    rows = [("limit", "documented", "least time"), *((each.name, each.documented, f"{each.least_seconds:,.1f} s")
            for each in result.limits)]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows]
    ends = ", ".join(f"{count:,} {state}" for state, count in sorted(result.ends.items()))
    lines += [
        "",
        f"events    {result.accepted:,} at once, {result.repeated:,} of them delivered twice, {where}",
        f"jobs      {result.jobs:,}: {ends}; {result.tasks:,} tasks, {result.dead_letters} dead letters",
        "calls     " + _counts(result.calls),
        "refused   " + _counts(result.refused),
        "conflicts " + _counts(result.conflicts),
        "items     "
        + _counts(result.shared_writes, lambda name: f"{name} (at most {result.busiest_second[name]:,} a second)"),
        f"machines  {result.machines:,} of our own saved, {result.fleets:,} calls of CreateFleet",
        "until RUNNING, per job: "
        + ", ".join(f"{count / result.jobs:.2f} {name}" for name, count in result.made_until_running.most_common()),
        "per job   " + ", ".join(f"{count / result.jobs:.2f} {name}" for name, count in result.made.most_common()),
        f"checks    {result.checks:,}, {len(result.violations)} violations",
        f"run       {result.simulated_seconds:,.0f} s simulated in {result.wall_seconds:,.0f} s, "
        f"{result.memory_mib:,.0f} MiB",
        *(f"WRONG     {fault}" for fault in result.faults[:_SHOWN_FAULTS]),
        f"tightest limit: {limit.name} ({limit.documented}); floor {limit.least_seconds:,.1f} s; "
        f"took {result.took_seconds:,.1f} s; ratio {result.ratio:.3f}",
    ]
    return "\n".join(lines)


def _counts(counted: Counter[str], name_of: Callable[[str], str] = str) -> str:
    return ", ".join(f"{count:,} {name_of(name)}" for name, count in counted.most_common()) or "none"
