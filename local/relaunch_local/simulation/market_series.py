"""One job on machines of our own, in a spot market that follows a series: what it is paid for, and where it ran."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.market.policies import PolicyName
from relaunch_local.ecs import Purchase, SpotPrice, Timing
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.checks.returns import SpotWatch
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import CHECKPOINTS, PlannedEvent, Scenario

_TYPE = "g5.xlarge"
_ZONE = "us-east-1a"
_TIMING = Timing(boot=40.0, registration=60.0, pull=120.0)
_WARNING = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class SeriesJob:
    """A job of so many hours of work, that has so many; spot costs `1 / price_ratio` of on-demand.

    `deadline_hours` is None for a job without a limit on its time, `is_estimated` whether its definition says how long
    it is, and `checkpoint_seconds` None for one that saves nothing.
    """

    work_hours: float
    deadline_hours: float | None
    price_ratio: float
    policy: PolicyName = PolicyName.CHEAPEST
    is_estimated: bool = True
    checkpoint_seconds: float | None = 600.0


@dataclass(frozen=True, slots=True)
class SeriesEnd:
    """How a job ended: its state, what its machines cost in hours of on-demand, its attempts and moves.

    `longest_beside_spot` is for how many hours it ran on an on-demand instance at most while EC2 would have launched
    spot all the time.
    """

    state: JobState
    on_demand_hours: float
    hours: float
    attempts: int
    moves: int
    longest_beside_spot: float = 0.0


def run_series(job: SeriesJob, available: Sequence[bool], gap_hours: float, seed: int = 0) -> SeriesEnd:
    """Run a job from the first value of a series on; spot ends where a value is the first without capacity.

    Raises:
        RuntimeError: the job did not end.
    """
    account = SeedRun(seed, Options(without_faults=True, scenario=_scenario_of(job))).account
    scenario = account.scenario
    tasks = account.invariants.tasks
    watch = SpotWatch(account.clock, account.simulator, scenario, tasks, account.facts)
    try:
        _schedule(account, available, timedelta(hours=gap_hours))
        if not account.clock.run_until(lambda: any(each.state.is_final for each in account.invariants.jobs.values())):
            raise RuntimeError("the job did not end")
        (ended,) = account.invariants.jobs.values()
        beside = watch.longest.get(ended.job_id, timedelta(0))
        return replace(_end_of(ended, account), longest_beside_spot=beside / timedelta(hours=1))
    finally:
        account.close()


def _end_of(ended: Job, account: SimulatedAccount) -> SeriesEnd:
    account.clock.advance(3_600.0)
    now = account.clock.now()
    paid = sum(line.cost_usd(now) for line in account.simulator.instances.bill)
    stops = account.invariants.stops[ended.job_id].values()
    ended_at = ended.ended_at or now
    return SeriesEnd(
        state=ended.state,
        on_demand_hours=paid / account.scenario.on_demand_usd_per_hour[_TYPE],
        hours=(ended_at - ended.accepted_at) / timedelta(hours=1),
        attempts=len(stops),
        moves=sum(stop.kind is StopKind.MOVED for stop in stops),
    )


def _schedule(account: SimulatedAccount, available: Sequence[bool], gap: timedelta) -> None:
    """Set the capacity of spot at each change; the warning comes before, so that machines end with their spell."""
    was_up = True
    for number, is_up in enumerate(available):
        if is_up is was_up:
            continue
        at = (number * gap).total_seconds()
        if is_up:
            account.clock.call_later(at, lambda: account.simulator.set_capacity(_TYPE, Purchase.SPOT, None))
        else:
            account.clock.call_later(max(at - _WARNING.total_seconds(), 0.0), lambda: _end_spell(account))
        was_up = is_up


def _end_spell(account: SimulatedAccount) -> None:
    account.simulator.set_capacity(_TYPE, Purchase.SPOT, 0)
    for host in list(account.simulator.instances.by_id.values()):
        if host.is_alive and host.purchase is Purchase.SPOT:
            account.simulator.instances.interrupt(host)


def _scenario_of(job: SeriesJob) -> Scenario:
    definition = JobDefinition(
        name="resnet",
        task_definition="trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        triggers=(GithubTrigger("acme/resnet", "push"),),
        environment={"RECIPE": "resnet"},
        purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
        checkpoint_uri=f"s3://{CHECKPOINTS}/resnet/" if job.checkpoint_seconds is not None else None,
        estimated_duration=timedelta(hours=job.work_hours) if job.is_estimated else None,
        deadline=timedelta(hours=job.deadline_hours) if job.deadline_hours is not None else None,
        max_runtime=timedelta(days=60),
        policy=job.policy,
        padding=0.0,
    )
    limits = MachineLimits(warm_time=timedelta(0))
    scenario = Scenario(
        intensity=0.0,
        chaos_seconds=0.0,
        providers=(),
        capacity={},
        definitions=(definition,),
        recipes={"resnet": Recipe(job.work_hours * 3_600, job.checkpoint_seconds, save_seconds=4.0)},
        events=(PlannedEvent(1.0, "push", "resnet", "5e07" * 10),),
        limits=StackLimits(machines=limits),
        timing=_TIMING,
        provisioning_quota=500,
        machines=MachineScenario((_TYPE,), (_ZONE,), limits),
    )
    usd_per_hour = scenario.on_demand_usd_per_hour[_TYPE] / job.price_ratio
    return replace(scenario, spot_prices=[SpotPrice(_TYPE, _ZONE, usd_per_hour)])
