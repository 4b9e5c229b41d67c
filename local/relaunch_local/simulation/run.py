"""One run of one seed: some simulated hours with faults, then without, until every job has ended."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from relaunch.usecases.reconcile_machines import is_instance_sweep_due
from relaunch.usecases.sweep_cluster import is_sweep_due
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.applying import Applying
from relaunch_local.simulation.aws.template import NOTICES_QUEUES
from relaunch_local.simulation.chance import Injection
from relaunch_local.simulation.checks.areas import Areas, SeedAreas
from relaunch_local.simulation.checks.costs import BillDifference
from relaunch_local.simulation.checks.coverage import Transition
from relaunch_local.simulation.checks.returns import LONGEST_BESIDE_SPOT, SpotWatch
from relaunch_local.simulation.checks.useless_machines import Waste
from relaunch_local.simulation.cluster_gang_jobs import ClusterGangJobs
from relaunch_local.simulation.commands import Commands
from relaunch_local.simulation.faults.absent_agents import AbsentAgents
from relaunch_local.simulation.faults.capacity import CapacityFaults
from relaunch_local.simulation.faults.cluster_troubles import ClusterTroubles
from relaunch_local.simulation.faults.clusters import ClusterFaults
from relaunch_local.simulation.faults.endless_machines import EndlessMachines
from relaunch_local.simulation.faults.failed_tasks import FailedTaskFaults
from relaunch_local.simulation.faults.group_losses import GroupLosses
from relaunch_local.simulation.faults.late_machines import LateMachines
from relaunch_local.simulation.faults.machines import MachineFaults
from relaunch_local.simulation.faults.mass_losses import MassLosses
from relaunch_local.simulation.faults.providers import ProviderFaults
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.faults.reservations import Reservations
from relaunch_local.simulation.faults.retirements import Retirements
from relaunch_local.simulation.faults.seldom_saves import SeldomSaves
from relaunch_local.simulation.faults.silent_hosts import SilentHosts
from relaunch_local.simulation.faults.spot_drought import OnDemandShortages, SpotDrought
from relaunch_local.simulation.faults.stalled_trainings import StalledTrainings
from relaunch_local.simulation.faults.useless_machines import UselessMachineFaults
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.people.questions import ask_everything
from relaunch_local.simulation.pull_requests import PullRequests
from relaunch_local.simulation.refreshes import Refreshes
from relaunch_local.simulation.retention import Retention
from relaunch_local.simulation.retries import Retries
from relaunch_local.simulation.trigger_jobs import TriggerJobs
from relaunch_local.simulation.trigger_workload import TriggerWorkload
from relaunch_local.simulation.turns import time_in_turn
from relaunch_local.simulation.verdict import Verdict
from relaunch_local.simulation.workload import Workload

_MINUTE = 60.0
# The emulated table makes a seed take twenty times as long: none of those with hundreds of jobs.
_OVER_DYNAMODB_EVERY = 200
_FIRST_OVER_DYNAMODB = 150
_DAY = timedelta(days=1)
# EventBridge may miss a schedule.
_MISSED_PASSES = 0.01
# Of the time of trainings, which start again after a failure.
_TURNS = 1.2
# A run of reconcile finds no job that is due later than this, whatever its clock skew.
_CLOCK_MARGIN = timedelta(seconds=30)
# Idle instances are terminated within the groups' 15 minutes, and one requested just then after another 15.
_MACHINE_GRACE_SECONDS = 3 * 900.0


@dataclass(frozen=True)
class SeedResult:
    """The result of a seed."""

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
    deadlines: Counter[str]
    """What became of the promised deadlines (checks/deadlines.py)."""
    waste: Waste
    """What was paid for machines that never ran a task."""
    trace: tuple[str, ...] = field(default=(), repr=False)
    areas: SeedAreas = field(default_factory=SeedAreas)
    """The use cases and effects that occurred."""
    difference: BillDifference = field(default_factory=BillDifference)
    """What the records of jobs and EC2's bill differed by."""


class EndOfRunError(Exception):
    """The run reached its limit of steps, or found what it is run for."""


class Schedule:
    """Invokes reconcile every minute."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Start within a minute."""
        self._account = account
        self.is_over = False
        """Whether there is nothing left for it to find."""
        account.clock.call_later(account.chance.stream("schedule").uniform(0.0, _MINUTE), self._tick)

    def _tick(self) -> None:
        account = self._account
        if self.is_over:
            return
        account.clock.call_later(_MINUTE, self._tick)
        if account.chance.strikes("schedule-missed", _MISSED_PASSES):
            return
        now = account.clock.now()
        dues = [due for each in (account.indexes, account.machine_indexes) if (due := each.next_due_at()) is not None]
        # A run that would find nothing is skipped.
        if is_sweep_due(now) or is_instance_sweep_due(now) or any(due <= now + _CLOCK_MARGIN for due in dues):
            account.lambdas.reconcile()


class SeedRun:
    """A run in progress."""

    def __init__(self, seed: int, options: Options) -> None:
        """Create the account, its workload and its faults."""
        self.account = SimulatedAccount(seed, options)
        self.options = options
        self.areas = Areas(self.account.runtime, self.account.chance)
        self.workload = Workload(self.account)
        self.account.invariants.groups.on_replaced = self.workload.cancelled.add
        self.capacity_faults = CapacityFaults(self.account, self.workload.cancel_any_job)
        self.rare_faults = RareFaults(self.account, self.workload.cancel_any_job)
        self.late_machines = LateMachines(self.account, self.workload.cancel_any_job)
        self.provider_faults = ProviderFaults(self.account, self.workload.cancel_any_job)
        SpotDrought(self.account)
        OnDemandShortages(self.account)
        StalledTrainings(self.account)
        SeldomSaves(self.account)
        self.silent_hosts = SilentHosts(self.account, self.workload.cancel_running_job)
        self.machine_faults = MachineFaults(self.account, self.workload.cancel_any_job)
        self.endless_machines = EndlessMachines(self.account)
        self.useless_machines = UselessMachineFaults(self.account)
        self.waste = Waste()
        self.steps_until_idle = 0
        self.spot_watch = self._watch_spot()
        self._let_instances_go()
        self.failed_tasks = FailedTaskFaults(self.account)
        Retries(self.account, self.workload)
        self.refreshes = Refreshes(self.account)
        self._let_people_work()
        self._trouble_cluster()
        self.retention = Retention(self.account)
        self.schedule = Schedule(self.account)

    def _trouble_cluster(self) -> None:
        ClusterFaults(self.account)
        ClusterTroubles(self.account)
        self.cluster_gangs = ClusterGangJobs(self.account)

    def _let_instances_go(self) -> None:
        AbsentAgents(self.account)
        MassLosses(self.account)
        GroupLosses(self.account, self.workload.cancel_any_job)
        Retirements(self.account)
        self.reservations = Reservations(self.account)

    def _let_people_work(self) -> None:
        self.applying = Applying(self.account)
        Commands(self.account, self.workload, self.applying)
        ask_everything(self.account)
        self.triggers = TriggerWorkload(self.account, self.applying)
        PullRequests(self.account, self.workload)

    def _watch_spot(self) -> SpotWatch | None:
        """Watch where jobs run that go back to spot, once nothing is refused any more."""
        account = self.account
        if not account.scenario.returning:
            return None
        scenario = account.scenario
        tasks = account.invariants.tasks
        return SpotWatch(
            account.clock, account.simulator, scenario, tasks, account.facts, is_on=lambda: account.chance.is_calm
        )

    def _check_returns(self) -> None:
        jobs = self.account.invariants.jobs
        for job_id, time in (self.spot_watch.longest if self.spot_watch is not None else {}).items():
            if jobs[job_id].definition.name == self.account.scenario.returning:
                message = f"{job_id}: {time} beside spot"
                is_short = time <= LONGEST_BESIDE_SPOT
                self.account.invariants.check("a job does not stay on on-demand beside spot", is_short, message)

    def run(self) -> SeedResult:
        """Run the seed and check it."""
        with self.areas.watch():
            self._run()
        return self._result()

    def _run(self) -> None:
        account = self.account
        try:
            outages_end_in = (account.outages.over_at - account.clock.now()).total_seconds()
            self._advance(max(account.scenario.chaos_seconds, outages_end_in))
            account.chance.is_calm = True
            calm_since = account.clock.now()
            account.trace.line("CALM")
            self._end_faults()
            self._wait_until_idle(calm_since)
            self.steps_until_idle = account.runtime.steps
            triggered = TriggerJobs(account, self.applying)
            Verdict(account, self.workload, self.rare_faults, self.useless_machines, triggered).check()
            self.cluster_gangs.check_end()
            self._check_returns()
            self._advance(_MACHINE_GRACE_SECONDS)
            self._check_instances()
            account.job_events.check_received()
            self.schedule.is_over = account.notices.is_left()
            account.notices.check_end()
            self.refreshes.check_end(calm_since)
            self.retention.check_end()
        except EndOfRunError:
            pass
        finally:
            account.close()

    def _end_faults(self) -> None:
        self.capacity_faults.end()
        self.rare_faults.end()
        self.late_machines.end()
        self.machine_faults.end()
        self.provider_faults.end()
        self.reservations.end()
        self.silent_hosts.end()
        self.failed_tasks.grant()
        self.triggers.end()

    def _advance(self, seconds: float) -> None:
        clock = self.account.clock
        limit = self.options.steps
        until = self.options.until
        end = clock.now() + timedelta(seconds=seconds)
        broken = self.account.invariants.broken
        while (limit is not None or until is not None) and clock.step(end):
            if until in broken or (limit is not None and self.account.runtime.steps >= limit):
                raise EndOfRunError
        clock.advance_to(end)

    def _wait_until_idle(self, calm_since: datetime) -> None:
        account = self.account
        limit = account.clock.now() + self.options.calm_limit + account.refusals.longest_wait()
        # Who had too many machines of no use gets the next one a day after the first, and may train for hours then.
        limit += _DAY if account.useless.have_lacked() else timedelta(0)
        limit = max(limit, self.workload.last_arrival + self.options.calm_limit)
        limit = max(limit, self.useless_machines.everything_over_at(account.clock.now()))
        while account.clock.now() < max(limit, self._turns_over_at(calm_since)) and not self._is_idle():
            self._advance(300.0)

    def _turns_over_at(self, calm_since: datetime) -> datetime:
        """Return when the jobs that are known are over, of which ends start others."""
        jobs = self.account.invariants.jobs.values()
        return calm_since + _TURNS * time_in_turn(jobs, self.account.scenario, calm_since)

    def _is_idle(self) -> bool:
        account = self.account
        # Notices of a receiver that is away are left for a day, and hold up nothing: they are waited for at the end.
        if any(each.open_bodies for name, each in account.queues.queues.items() if name not in NOTICES_QUEUES):
            return False
        if account.clock.now() < max(self.endless_machines.over_at, self.workload.last_arrival):
            return False
        jobs = account.invariants.jobs
        if len(jobs) < len(self.workload.accepted) or self.workload.accepted != self.workload.planned:
            return False
        if self.workload.github.left() or not self.triggers.is_over:
            return False
        is_sent = not any(job.outbox.unsent for job in jobs.values())
        return (
            is_sent
            and all(job.state.is_final and not job.pending for job in jobs.values())
            and not any(account.invariants.live_tasks(job_id) for job_id in jobs)
        )

    def _check_instances(self) -> None:
        account = self.account
        alive = [host.instance_id for host in account.simulator.instances.by_id.values() if host.is_alive]
        account.invariants.check("no machine outlives its tasks", not alive, ", ".join(alive))
        account.machines.check_end()
        self.waste = account.useless.check_end()
        account.costs.check_end(account.invariants.jobs)
        account.budgets.check_end()

    def _result(self) -> SeedResult:
        account = self.account
        invariants = account.invariants
        # Counted, because runs must have some.
        account.chance.happened["stray-task"] += invariants.live_orphans
        return SeedResult(
            account.chance.seed,
            tuple(invariants.violations),
            tuple(account.chance.injected),
            account.chance.happened,
            invariants.checks,
            len(invariants.jobs),
            sum(len(tasks) for tasks in invariants.tasks.values()),
            account.runtime.steps,
            (account.clock.now() - account.started_at).total_seconds(),
            Counter(str(job.state) for job in invariants.jobs.values()),
            account.trace.decided_by,
            account.deadlines.outcomes,
            self.waste,
            tuple(account.trace.lines),
            self.areas.result(),
            account.costs.difference,
        )


def prepare_seed(seed: int, options: Options | None = None) -> SeedRun:
    """Return the run of a seed, which has not begun."""
    chosen = options or Options()
    if seed % _OVER_DYNAMODB_EVERY == _FIRST_OVER_DYNAMODB and chosen.scenario is None:
        chosen = replace(chosen, dynamodb=True)
    return SeedRun(seed, chosen)


def run_seed(seed: int, options: Options | None = None) -> SeedResult:
    """Run one seed."""
    return prepare_seed(seed, options).run()
