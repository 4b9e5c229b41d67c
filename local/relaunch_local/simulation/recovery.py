"""`python -m relaunch_local.simulation.recovery`: how long an interrupted training is away, by the way to a machine.

Each seed trains one job without any fault but one spot interruption, at a time drawn from the seed; another run of the
seed has no capacity for what was selected first. Calls and events take the simulation's usual time, instances of
capacity providers that of `TIMING`, machines of our own the one drawn for each (FaultyEc2).
"""

import argparse
import itertools
import json
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import SpotPrice, Timing
from relaunch_local.ecs.engine.fleet import FleetFault
from relaunch_local.simulation.aws.account import SimulatedAccount
from relaunch_local.simulation.aws.trainings import Recipe
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import PlannedEvent, Scenario

# Managed scaling publishes its metric once a minute ("Amazon ECS cluster auto scaling"); a GPU AMI boots, loads its
# driver and registers within about two minutes, and an image of some GB is pulled in about two.
TIMING = Timing(scale_out=60.0, boot=40.0, registration=60.0, pull=120.0)
_LEAST_SEEDS = 20
_RECIPE = Recipe(work_seconds=7_200.0, checkpoint_seconds=600.0, save_seconds=20.0)
_WORKED_SECONDS = (300.0, 3_600.0)
_TYPES = ("g5.xlarge", "g6.xlarge")


class Way(StrEnum):
    """The way to a machine."""

    NO_INSTANCE = "capacity providers, no instance is there"
    INSTANCE = "capacity providers, an instance is there"
    OWN = "machines of our own"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The seconds of each part of one recovery, from the warning to the next task's start.

    `event_to_running` is from the event to the first start. `sigterm_to_running` is from the last step on the machine
    that was lost to the first step on the next one; `own_share` of it, and of what comes before, is neither saving, nor
    a machine's start, nor a pull.
    """

    event_to_running: float
    warning_to_sigterm: float
    sigterm_to_stopped: float
    stopped_to_run_task: float
    run_task_to_running: float
    own_share: float

    @property
    def warning_to_running(self) -> float:
        """The whole, in seconds."""
        return self.warning_to_sigterm + self.sigterm_to_running

    @property
    def sigterm_to_running(self) -> float:
        """From the last step on the one machine to the first on the next, in seconds."""
        return self.sigterm_to_stopped + self.stopped_to_run_task + self.run_task_to_running


PARTS = (*(each.name for each in fields(Recovery)), "sigterm_to_running", "warning_to_running")


def measure(seed: int, way: Way) -> Recovery:
    """Interrupt the job of one seed.

    Raises:
        RuntimeError: the job did not run again.
    """
    scenario = _scenario(seed, way)
    run = SeedRun(seed, Options(without_faults=True, scenario=scenario))
    account = run.account
    dice = account.chance.stream("recovery")
    tasks: list[dict[str, object]] = []

    def has_run(count: int) -> bool:
        tasks[:] = [task for of_job in account.invariants.tasks.values() for task in of_job.values()]
        return sum("startedAt" in task for task in tasks) == count

    try:
        if not account.clock.run_until(lambda: has_run(1)):
            raise RuntimeError(f"the job of seed {seed} did not run")
        account.clock.advance(dice.uniform(*_WORKED_SECONDS))
        warned_at = account.clock.now()
        account.simulator.instances.interrupt(
            next(each for each in account.simulator.instances.by_id.values() if each.tasks)
        )
        if not account.clock.run_until(lambda: has_run(2)):
            raise RuntimeError(f"the job of seed {seed} did not run again")
        first, second = sorted(tasks, key=lambda task: str(task["createdAt"]))
        instances = account.simulator.instances.by_id.values()
        registered_at = next(each.registered_at for each in instances if each.arn == second["containerInstanceArn"])
    finally:
        account.close()
    moments = [warned_at, *(_time(first, name) for name in ("stoppingAt", "stoppedAt"))]
    moments += [_time(second, name) for name in ("createdAt", "startedAt")]
    to_sigterm, to_stopped, to_run_task, to_running = (
        (after - before).total_seconds() for before, after in itertools.pairwise(moments)
    )
    is_awaited = way is Way.OWN and registered_at is not None
    waited = max((registered_at - moments[2]).total_seconds(), 0.0) if is_awaited and registered_at else 0.0
    event_at = account.started_at + timedelta(seconds=scenario.events[0].at_seconds)
    return Recovery(
        event_to_running=(_time(first, "startedAt") - event_at).total_seconds(),
        warning_to_sigterm=to_sigterm,
        sigterm_to_stopped=to_stopped,
        stopped_to_run_task=to_run_task,
        run_task_to_running=to_running,
        own_share=to_sigterm + to_run_task - waited,
    )


def measure_refusal(seed: int, way: Way) -> float:
    """Return how long a job without capacity for its first choice takes to get the next one, in seconds.

    From the first request to EC2 Fleet, or of a task, to the launch of the instance, or to the next such request.

    Raises:
        RuntimeError: the job did not get another offering.
    """
    run = SeedRun(seed, Options(without_faults=True, scenario=_scenario(seed, way, is_refused=True)))
    account = run.account
    if way is Way.OWN:
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
    if way is Way.OWN:
        machines = sorted(account.machines.machines.values(), key=lambda each: each.created_at)
        return [each.launched_at or each.created_at for each in machines if each.launched_at or each.refusal]
    attempts = (job.attempt for job in account.invariants.jobs.values() if job.attempt is not None)
    placements = (each for attempt in attempts for each in (*attempt.closed_placements, attempt.placement))
    return sorted(each.requested_at for each in placements)


def _time(task: dict[str, object], name: str) -> datetime:
    return datetime.fromisoformat(str(task[name]))


def _scenario(seed: int, way: Way, *, is_refused: bool = False) -> Scenario:
    # Reproducible, not a secret.
    at_seconds = random.Random(f"{seed}/recovery").uniform(300.0, 420.0)  # noqa: S311
    providers = tuple(
        CapacityProviderOffer(f"{name.partition('.')[0]}-spot", name, PurchaseOption.SPOT)
        for name in (_TYPES if way is not Way.OWN else ())
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
    return Scenario(
        intensity=0.0,
        chaos_seconds=0.0,
        providers=providers,
        capacity=capacity,
        definitions=(definition,),
        recipes={"resnet": _RECIPE},
        events=(PlannedEvent(at_seconds, "push", "resnet", "5e07" * 10),),
        limits=StackLimits(),
        timing=TIMING,
        provisioning_quota=500,
        spot_prices=[
            SpotPrice(name, zone, 0.4 + 0.01 * place)
            for place, name in enumerate(_TYPES)
            for zone in ("us-east-1a", "us-east-1b")
        ],
        group_least=1 if way is Way.INSTANCE else 0,
        machines=MachineScenario(types=_TYPES, zones=("us-east-1a", "us-east-1b"))
        if way is Way.OWN
        else MachineScenario(),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Print the median and the 95th percentile of every part, by the way to a machine."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.recovery", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args(words)
    if arguments.seeds < _LEAST_SEEDS:
        parser.error(f"--seeds must be at least {_LEAST_SEEDS}")
    table = {str(way): _measure_all(way, arguments.seeds) for way in Way}
    if arguments.json:
        print(json.dumps({"seeds": arguments.seeds, "seconds": table}, indent=2))
        return 0
    for where, rows in table.items():
        print(f"{where}, {arguments.seeds} interruptions".ljust(60) + "p50      p95")
        for name, (half, most) in rows.items():
            print(f"  {name.replace('_', ' '):<52}{half:>9.1f} s {most:>7.1f} s")
    return 0


def _measure_all(way: Way, seeds: int) -> dict[str, tuple[float, float]]:
    recoveries = [measure(seed, way) for seed in range(seeds)]
    rows = {part: _percentiles([getattr(each, part) for each in recoveries]) for part in PARTS}
    # An instance that is there already is of no use for what has no capacity.
    if way is not Way.INSTANCE:
        rows["no_capacity_to_next_offering"] = _percentiles([measure_refusal(seed, way) for seed in range(seeds)])
    return rows


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    sys.exit(main())
