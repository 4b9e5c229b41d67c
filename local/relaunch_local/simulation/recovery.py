"""`python -m relaunch_local.simulation.recovery`: how long an interrupted training is away, by the way to a machine.

Each seed trains one job without any fault but one spot interruption, at a time drawn from the seed; another run of the
seed has no capacity for what was selected first, and another one, on machines of our own, every fault of calls,
messages, events and functions from the warning on. Calls and events take the simulation's usual time, instances of
capacity providers that of `TIMING`, machines of our own the one drawn for each (FaultyEc2).
"""

import argparse
import itertools
import json
import math
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.moves import last_moment
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import SpotPrice, Timing
from relaunch_local.ecs.engine.fleet import FleetFault
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.garbage import collect_rarely
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.paid_time import IDLE_PARTS, IdleTime, PaidInstances
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import PlannedEvent, Scenario

# Managed scaling publishes its metric once a minute ("Amazon ECS cluster auto scaling"); a GPU AMI boots, loads its
# driver and registers within about two minutes, and an image of some GB is pulled in about two.
TIMING = Timing(scale_out=60.0, boot=40.0, registration=60.0, pull=120.0)
_LEAST_SEEDS = 20
_RECIPE = Recipe(work_seconds=7_200.0, checkpoint_seconds=600.0, save_seconds=20.0)
_WORKED_SECONDS = (300.0, 3_600.0)
_TYPES = ("g5.xlarge", "g6.xlarge")
# From a rebalance recommendation to the warning. EC2 promises nothing: it may be the same moment, and one report has 17
# minutes to nine hours (aws/aws-node-termination-handler#141).
_RECOMMENDED_AHEAD_SECONDS = (0.0, 600.0)
# Managed scaling ends an instance 15 minutes after its last task.
_PAID_AFTER = timedelta(seconds=1_000)


class Way(StrEnum):
    """The way to a machine; `rebalance`: a recommendation comes before the warning, and the stack heeds it."""

    NO_INSTANCE = "capacity providers, no instance is there"
    INSTANCE = "capacity providers, an instance is there"
    OWN = "machines of our own, stopped at the warning"
    OWN_READY = "machines of our own, stopped when the next is ready"
    OWN_REBALANCE = "rebalance: machines of our own, stopped at the recommendation"
    OWN_READY_REBALANCE = "rebalance: machines of our own, stopped when the next is ready"

    @property
    def is_own(self) -> bool:
        """Return whether machines are our own."""
        return self not in (Way.NO_INSTANCE, Way.INSTANCE)

    @property
    def has_rebalance(self) -> bool:
        """Return whether the recommendation is heeded."""
        return self in (Way.OWN_REBALANCE, Way.OWN_READY_REBALANCE)

    @property
    def task_stop(self) -> TaskStop:
        """Return when the task is stopped."""
        is_late = self in (Way.OWN_READY, Way.OWN_READY_REBALANCE)
        return TaskStop.WHEN_NEXT_READY if is_late else TaskStop.AT_WARNING


@dataclass(frozen=True, slots=True)
class Recovery:
    """The seconds of each part of one recovery, from the first notice of EC2 to the next task's start.

    `event_to_running` is from the event to the first start. `warning_to_sigterm` counts from the recommendation where
    that is heeded. `sigterm_to_running` is from the last step on the machine that was lost to the first step on the
    next one; `own_share` of it, and from the moment when the task is to be stopped, is neither saving, nor a machine's
    start, nor a pull. `idle` is what the whole job pays for machines without a task.
    """

    event_to_running: float
    warning_to_sigterm: float
    sigterm_to_stopped: float
    stopped_to_run_task: float
    run_task_to_running: float
    own_share: float
    idle: IdleTime

    @property
    def warning_to_running(self) -> float:
        """The whole, in seconds."""
        return self.warning_to_sigterm + self.sigterm_to_running

    @property
    def sigterm_to_running(self) -> float:
        """From the last step on the one machine to the first on the next, in seconds."""
        return self.sigterm_to_stopped + self.stopped_to_run_task + self.run_task_to_running


PARTS = (*(each.name for each in fields(Recovery) if each.name != "idle"), "sigterm_to_running", "warning_to_running")


def measure(seed: int, way: Way) -> Recovery:
    """Interrupt the job of one seed.

    Raises:
        RuntimeError: the job did not run again, or did not end.
    """
    scenario = scenario_of(seed, way)
    account = SeedRun(seed, Options(without_faults=True, scenario=scenario)).account
    instances = PaidInstances(account.simulator)
    try:
        noticed_at, warned_at = _interrupt(account, way)
        if not account.clock.run_until(lambda: len(_started(account)) > 1):
            raise RuntimeError(f"the job of seed {seed} did not run again")
        first, second = _started(account)[:2]
        hosts = account.simulator.instances.by_id.values()
        registered_at = next(each.registered_at for each in hosts if each.arn == second["containerInstanceArn"])
        (job,) = account.invariants.jobs.values()
        if not account.clock.run_until(lambda: all(each.state.is_final for each in account.invariants.jobs.values())):
            raise RuntimeError(f"the job of seed {seed} did not end")
        ends_at = account.clock.now() + _PAID_AFTER
        account.clock.advance_to(ends_at)
        event_at = account.started_at + timedelta(seconds=scenario.events[0].at_seconds)
        idle = instances.idle_time(_tasks(account), event_at, ends_at)
    finally:
        account.close()
    moments = [noticed_at, *(_time(first, name) for name in ("stoppingAt", "stoppedAt"))]
    moments += [_time(second, name) for name in ("createdAt", "startedAt")]
    to_sigterm, to_stopped, to_run_task, to_running = (
        (after - before).total_seconds() for before, after in itertools.pairwise(moments)
    )
    waited = trained_on = 0.0
    if way.is_own and registered_at is not None:
        waited = max((registered_at - moments[2]).total_seconds(), 0.0)
        if way.task_stop is TaskStop.WHEN_NEXT_READY:
            stops_at = min(registered_at, last_moment(job, warned_at))
            trained_on = max((stops_at - noticed_at).total_seconds(), 0.0)
    return Recovery(
        event_to_running=(_time(first, "startedAt") - event_at).total_seconds(),
        warning_to_sigterm=to_sigterm,
        sigterm_to_stopped=to_stopped,
        stopped_to_run_task=to_run_task,
        run_task_to_running=to_running,
        own_share=to_sigterm - trained_on + to_run_task - waited,
        idle=idle,
    )


def measure_loss(seed: int, way: Way) -> float:
    """Return the seconds of training of one seed that the interruption costs, with faults from the warning on.

    What was trained since the newest complete checkpoint, which the task writes on SIGTERM if it has the time.

    Raises:
        RuntimeError: the job did not run, or its task did not end.
    """
    account = SeedRun(
        seed, Options(without_faults=True, scenario=replace(scenario_of(seed, way), intensity=1.0))
    ).account
    try:
        _interrupt(account, way, with_faults=True)
        (task,) = _started(account)[:1]
        arn = str(task["taskArn"])
        (job_id, log) = next(iter(account.trainings.logs.items()))
        if not account.clock.run_until(lambda: arn in log.endings):
            raise RuntimeError(f"the task of seed {seed} did not end")
        if log.endings[arn] == "sigterm":
            return 0.0
        saved_at = account.objects.completed_at.get(job_id, _time(task, "startedAt"))
        return (account.clock.now() - saved_at).total_seconds()
    finally:
        account.close()


def _interrupt(account: SimulatedAccount, way: Way, *, with_faults: bool = False) -> tuple[datetime, datetime]:
    """Interrupt the job once it has run for a while; return when EC2 first said something, and when it warned."""
    dice = account.chance.stream("recovery")
    if not account.clock.run_until(lambda: bool(_started(account))):
        raise RuntimeError(f"the job of seed {account.chance.seed} did not run")
    account.clock.advance(dice.uniform(*_WORKED_SECONDS))
    host = next(each for each in account.simulator.instances.by_id.values() if each.tasks)
    account.chance.is_calm = not with_faults
    noticed_at = account.clock.now()
    if way.has_rebalance:
        account.simulator.instances.recommend_rebalance(host)
        account.clock.advance(dice.uniform(*_RECOMMENDED_AHEAD_SECONDS))
    warned_at = account.clock.now()
    if host.is_alive:
        account.simulator.instances.interrupt(host)
    return noticed_at, warned_at


def _tasks(account: SimulatedAccount) -> list[dict[str, object]]:
    tasks = [task for of_job in account.invariants.tasks.values() for task in of_job.values()]
    return sorted(tasks, key=lambda task: str(task["createdAt"]))


def _started(account: SimulatedAccount) -> list[dict[str, object]]:
    """Return the tasks that have run, oldest first."""
    return [task for task in _tasks(account) if "startedAt" in task]


def measure_refusal(seed: int, way: Way) -> float:
    """Return how long a job without capacity for its first choice takes to get the next one, in seconds.

    From the first request to EC2 Fleet, or of a task, to the launch of the instance, or to the next such request.

    Raises:
        RuntimeError: the job did not get another offering.
    """
    run = SeedRun(seed, Options(without_faults=True, scenario=scenario_of(seed, way, is_refused=True)))
    account = run.account
    if way.is_own:
        account.simulator.fleets.faults.append(FleetFault("InsufficientInstanceCapacity"))
    try:
        if not account.clock.run_until(lambda: bool(_requests(account, way)[1:])):
            raise RuntimeError(f"the job of seed {seed} found no other offering")
        first, second = _requests(account, way)[:2]
        return (second - first).total_seconds()
    finally:
        account.close()


def _requests(account: SimulatedAccount, way: Way) -> list[datetime]:
    """Return when the job asked for a task, or for a machine; for one that was launched, when it was."""
    if way.is_own:
        machines = sorted(account.machines.machines.values(), key=lambda each: each.created_at)
        return [each.launched_at or each.created_at for each in machines if each.launched_at or each.refusal]
    attempts = (job.attempt for job in account.invariants.jobs.values() if job.attempt is not None)
    placements = (each for attempt in attempts for each in (*attempt.closed_placements, attempt.placement))
    return sorted(each.requested_at for each in placements)


def _time(task: dict[str, object], name: str) -> datetime:
    return datetime.fromisoformat(str(task[name]))


def scenario_of(seed: int, way: Way, *, is_refused: bool = False) -> Scenario:
    """Return the job of a seed and its world; `is_refused`: there is no capacity for its first choice."""
    # Reproducible, not a secret.
    at_seconds = random.Random(f"{seed}/recovery").uniform(300.0, 420.0)  # noqa: S311
    providers = tuple(
        CapacityProviderOffer(f"{name.partition('.')[0]}-spot", name, PurchaseOption.SPOT)
        for name in (_TYPES if not way.is_own else ())
    )
    definition = JobDefinition(
        name="resnet",
        task_definition="trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        triggers=(GithubTrigger("acme/resnet", "push"),),
        environment={"RECIPE": "resnet"},
        checkpoint_uri="s3://acme-checkpoints/resnet/",
    )
    capacity: dict[str, int | None] = {each.name: None for each in providers}
    if is_refused and providers:
        capacity[providers[0].name] = 0
    limits = MachineLimits(task_stop=way.task_stop, starts_on_rebalance=way.has_rebalance)
    return Scenario(
        intensity=0.0,
        chaos_seconds=0.0,
        providers=providers,
        capacity=capacity,
        definitions=(definition,),
        recipes={"resnet": _RECIPE},
        events=(PlannedEvent(at_seconds, "push", "resnet", "5e07" * 10),),
        limits=StackLimits(machines=limits),
        timing=TIMING,
        provisioning_quota=500,
        spot_prices=[
            SpotPrice(name, zone, 0.4 + 0.01 * place)
            for place, name in enumerate(_TYPES)
            for zone in ("us-east-1a", "us-east-1b")
        ],
        group_least=1 if way is Way.INSTANCE else 0,
        machines=MachineScenario(_TYPES, ("us-east-1a", "us-east-1b"), limits) if way.is_own else MachineScenario(),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Print the median and the 95th percentile of every part, and what faults cost, by the way to a machine."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.recovery", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    names = [way.name.lower() for way in Way]
    parser.add_argument("--way", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args(words)
    if arguments.seeds < _LEAST_SEEDS:
        parser.error(f"--seeds must be at least {_LEAST_SEEDS}")
    ways = [way for way in Way if way.name.lower() in (arguments.way or names)]
    table = {str(way): _measure_all(way, arguments.seeds) for way in ways}
    if arguments.json:
        print(json.dumps({"seeds": arguments.seeds, "seconds": table}, indent=2))
        return 0
    for where, rows in table.items():
        print(f"{where}, {arguments.seeds} interruptions: median and 95th percentile, or mean and ±")
        for name, (half, most) in rows.items():
            unit = "%" if name.endswith("_percent") else "s"
            print(f"  {name.replace('_', ' '):<52}{half:>9.1f} {unit} {most:>7.1f} {unit}")
    return 0


def _measure_all(way: Way, seeds: int) -> dict[str, tuple[float, float]]:
    recoveries = [measure(seed, way) for seed in range(seeds)]
    rows = {part: _percentiles([getattr(each, part) for each in recoveries]) for part in PARTS}
    rows |= {f"idle_{part}": _percentiles([getattr(each.idle, part) for each in recoveries]) for part in IDLE_PARTS}
    # An instance that is there already is of no use for what has no capacity; no setting of a stop changes it.
    if way in (Way.NO_INSTANCE, Way.OWN):
        rows["no_capacity_to_next_offering"] = _percentiles([measure_refusal(seed, way) for seed in range(seeds)])
    if way.is_own:
        losses = [measure_loss(seed, way) for seed in range(seeds)]
        rows["lost_training_with_faults"] = _percentiles(losses)
        rows["lost_training_with_faults_mean"] = _mean(losses)
        rows["lost_training_with_faults_percent"] = _mean([100.0 * bool(loss) for loss in losses])
    return rows


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean, and half of its 95% confidence interval."""
    return statistics.mean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
