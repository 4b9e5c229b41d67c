"""`python -m relaunch_local.simulation.recovery`: how long an interrupted training is away.

Each seed trains one job without any fault but one spot interruption, at a time drawn from the seed. Calls and events
take the simulation's usual time, instances that of `TIMING`.
"""

import argparse
import itertools
import json
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import SpotPrice, Timing
from relaunch_local.simulation.aws.trainings import Recipe
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import PlannedEvent, Scenario

# Managed scaling publishes its metric once a minute ("Amazon ECS cluster auto scaling"); a GPU AMI boots, loads its
# driver and registers within about two minutes, and an image of some GB is pulled in about two.
TIMING = Timing(scale_out=60.0, boot=40.0, registration=60.0, pull=120.0)
PARTS = (
    "warning_to_sigterm",
    "sigterm_to_stopped",
    "stopped_to_run_task",
    "run_task_to_running",
    "warning_to_running",
)
_LEAST_SEEDS = 20
_RECIPE = Recipe(work_seconds=7_200.0, checkpoint_seconds=600.0, save_seconds=20.0)
_WORKED_SECONDS = (300.0, 3_600.0)


@dataclass(frozen=True, slots=True)
class Recovery:
    """The seconds of each part of one recovery, from the warning to the next task's start."""

    warning_to_sigterm: float
    sigterm_to_stopped: float
    stopped_to_run_task: float
    run_task_to_running: float

    @property
    def warning_to_running(self) -> float:
        """The whole, in seconds."""
        return self.warning_to_sigterm + self.sigterm_to_stopped + self.stopped_to_run_task + self.run_task_to_running


def measure(seed: int, *, is_warm: bool = False) -> Recovery:
    """Interrupt the job of one seed; `is_warm`: another instance runs already.

    Raises:
        RuntimeError: the job did not run again.
    """
    run = SeedRun(seed, Options(without_faults=True, scenario=_scenario(seed, is_warm=is_warm)))
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
    finally:
        account.close()
    first, second = sorted(tasks, key=lambda task: str(task["createdAt"]))
    moments = [warned_at, *(_time(first, name) for name in ("stoppingAt", "stoppedAt"))]
    moments += [_time(second, name) for name in ("createdAt", "startedAt")]
    return Recovery(*((after - before).total_seconds() for before, after in itertools.pairwise(moments)))


def _time(task: dict[str, object], name: str) -> datetime:
    return datetime.fromisoformat(str(task[name]))


def _scenario(seed: int, *, is_warm: bool) -> Scenario:
    # Reproducible, not a secret.
    at_seconds = random.Random(f"{seed}/recovery").uniform(300.0, 420.0)  # noqa: S311
    providers = tuple(
        CapacityProviderOffer(f"{name.partition('.')[0]}-spot", name, PurchaseOption.SPOT)
        for name in ("g5.xlarge", "g6.xlarge")
    )
    definition = JobDefinition(
        name="resnet",
        task_definition="trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        triggers=(GithubTrigger("acme/resnet", "push"),),
        environment={"RECIPE": "resnet"},
        checkpoint_uri="s3://acme-checkpoints/resnet/",
    )
    return Scenario(
        intensity=0.0,
        chaos_seconds=0.0,
        providers=providers,
        capacity={each.name: None for each in providers},
        definitions=(definition,),
        recipes={"resnet": _RECIPE},
        events=(PlannedEvent(at_seconds, "push", "resnet", "5e07" * 10),),
        limits=StackLimits(),
        timing=TIMING,
        provisioning_quota=500,
        spot_prices=[SpotPrice(each.instance_type, "us-east-1a", 0.4) for each in providers],
        group_least=1 if is_warm else 0,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Print the median and the 95th percentile of every part, from no instance and with one."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.recovery", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args(words)
    if arguments.seeds < _LEAST_SEEDS:
        parser.error(f"--seeds must be at least {_LEAST_SEEDS}")
    found = {
        where: [measure(seed, is_warm=is_warm) for seed in range(arguments.seeds)]
        for where, is_warm in (("no instance is there", False), ("an instance is there", True))
    }
    table = {where: {name: _percentiles(recoveries, name) for name in PARTS} for where, recoveries in found.items()}
    if arguments.json:
        print(json.dumps({"seeds": arguments.seeds, "seconds": table}, indent=2))
        return 0
    for where, rows in table.items():
        print(f"{where}, {arguments.seeds} interruptions   p50      p95")
        for name, (half, most) in rows.items():
            print(f"  {name.replace('_', ' '):<28}{half:>9.1f} s {most:>7.1f} s")
    return 0


def _percentiles(recoveries: Sequence[Recovery], part: str) -> tuple[float, float]:
    values = [getattr(each, part) for each in recoveries]
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    sys.exit(main())
