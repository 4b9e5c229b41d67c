"""One run of one seed: faults for some simulated hours, then peace, in which everything has to come to an end."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from relaunch.usecases.sweep_cluster import is_sweep_due
from relaunch_local.simulation.aws.account import Cloud
from relaunch_local.simulation.checks.coverage import Transition
from relaunch_local.simulation.checks.verdict import Verdict
from relaunch_local.simulation.faults.capacity import AvailableOfferings
from relaunch_local.simulation.faults.chance import Injection
from relaunch_local.simulation.faults.rare import Mishaps
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.workload import Outside

_MINUTE = 60.0
# A schedule may be missed now and then; it is EventBridge's like every other event.
_MISSED_PASSES = 0.01
# No pass of reconcile finds anything that is due later than this, whatever its clock says.
_CLOCK_MARGIN = timedelta(seconds=30)
# Machines without a task go within the groups' 15 minutes, and what is asked for just then after one more round.
_MACHINE_GRACE_SECONDS = 3 * 900.0


@dataclass(frozen=True)
class SeedResult:
    """What came of a seed."""

    seed: int
    violations: tuple[str, ...]
    faults: tuple[Injection, ...]
    happened: Counter[str]
    checks: Counter[str]
    jobs: int
    tasks: int
    steps: int
    simulated_seconds: float
    ends: Counter[str]
    decided_by: Counter[Transition]
    trace: tuple[str, ...] = field(default=(), repr=False)


class StepLimitError(Exception):
    """The run was to end after so many steps."""


class Schedule:
    """Calls reconcile every minute, whenever that minute begins."""

    def __init__(self, cloud: Cloud) -> None:
        """Begin within a minute."""
        self._cloud = cloud
        cloud.clock.call_later(cloud.chance.stream("schedule").uniform(0.0, _MINUTE), self._tick)

    def _tick(self) -> None:
        cloud = self._cloud
        cloud.clock.call_later(_MINUTE, self._tick)
        if cloud.chance.strikes("schedule-missed", _MISSED_PASSES):
            return
        due_at, now = cloud.indexes.next_due_at(), cloud.clock.now()
        is_sweeping = any(is_sweep_due(now + skew) for skew in (-_CLOCK_MARGIN, timedelta(0), _CLOCK_MARGIN))
        # A pass that would find nothing is not simulated.
        if is_sweeping or (due_at is not None and due_at <= now + _CLOCK_MARGIN):
            cloud.lambdas.reconcile()


class SeedRun:
    """A run in progress."""

    def __init__(self, seed: int, options: Options) -> None:
        """Prepare the account and plan what happens in it."""
        self.cloud = Cloud(seed, options)
        self.options = options
        self.outside = Outside(self.cloud)
        self.market = AvailableOfferings(self.cloud, self.outside.cancel_somebody)
        self.mishaps = Mishaps(self.cloud, self.outside.cancel_somebody)
        Schedule(self.cloud)

    def run(self) -> SeedResult:
        """Let it all happen, and judge it."""
        cloud = self.cloud
        try:
            self._advance(cloud.scenario.chaos_seconds)
            cloud.chance.is_calm = True
            cloud.trace.line("CALM")
            self.market.calm_down()
            self.mishaps.calm_down()
            self._come_to_rest()
            Verdict(cloud, self.outside, self.mishaps).judge()
            self._advance(_MACHINE_GRACE_SECONDS)
            self._check_machines()
        except StepLimitError:
            pass
        finally:
            cloud.close()
        return self._result()

    def _advance(self, seconds: float) -> None:
        clock, limit = self.cloud.clock, self.options.steps
        end = clock.now() + timedelta(seconds=seconds)
        if limit is None:
            clock.advance_to(end)
            return
        while clock.step(end):
            if self.cloud.runtime.steps >= limit:
                raise StepLimitError

    def _come_to_rest(self) -> None:
        cloud = self.cloud
        limit = cloud.clock.now() + self.options.calm_limit
        while cloud.clock.now() < limit and not self._is_at_rest():
            self._advance(300.0)

    def _is_at_rest(self) -> bool:
        cloud = self.cloud
        if any(queue.open_bodies for queue in cloud.queues.queues.values()):
            return False
        jobs = cloud.invariants.jobs
        if len(jobs) < len(self.outside.accepted) or self.outside.accepted != self.outside.planned:
            return False
        return all(job.state.is_final and not job.pending for job in jobs.values()) and not any(
            cloud.invariants.live_tasks(job_id) for job_id in jobs
        )

    def _check_machines(self) -> None:
        cloud = self.cloud
        idle = [host.instance_id for host in cloud.simulator.instances.by_id.values() if host.is_alive]
        cloud.invariants.check("no machine outlives its tasks", not idle, ", ".join(idle))

    def _result(self) -> SeedResult:
        cloud = self.cloud
        invariants = cloud.invariants
        # Rare, and what they are stopped for: that they happen at all is part of what is tried.
        cloud.chance.happened["stray-task"] += invariants.live_orphans
        return SeedResult(
            cloud.chance.seed,
            tuple(invariants.violations),
            tuple(cloud.chance.injected),
            cloud.chance.happened,
            invariants.checks,
            len(invariants.jobs),
            sum(len(tasks) for tasks in invariants.tasks.values()),
            cloud.runtime.steps,
            (cloud.clock.now() - cloud.started_at).total_seconds(),
            Counter(str(job.state) for job in invariants.jobs.values()),
            cloud.trace.decided_by,
            tuple(cloud.trace.lines),
        )


def run_seed(seed: int, options: Options | None = None) -> SeedResult:
    """Run one seed from its beginning to its end."""
    return SeedRun(seed, options or Options()).run()
