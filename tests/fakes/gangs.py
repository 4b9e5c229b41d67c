"""Ranks of a training over four machines, without ECS, for tests."""

from datetime import timedelta
from typing import Any

from relaunch_local.ecs import Clock, ProcessSpec
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.simulation.aws.recipes import MachineFault, Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance

JOB = "resnet-1f2e3d4c"
WORK = 1_000.0
FOLDER = f"s3://acme-checkpoints/resnet/{JOB}/attempt-1/"


class GangWorld:
    """Four machines whose containers are ranks; `ends` has the exit code, reason and second of each that has ended."""

    def __init__(self, **recipe: Any) -> None:
        self.clock = Clock()
        self.started_at = self.clock.now()
        self.objects = ObjectStore()
        self.broken: list[str] = []
        self.ends: dict[str, tuple[int, str | None, float]] = {}
        members = {"work_seconds": WORK, "checkpoint_seconds": 300.0, "save_seconds": 10.0, **recipe}
        self.fault: MachineFault | None = None
        self.kills: list[timedelta] = []
        self.trainings = Trainings(
            self.clock,
            Chance(1, self.clock.now),
            self.objects,
            {"resnet": Recipe(**members)},
            on_kill=lambda _spec, after: self.kills.append(after),
            check=self._check,
        )
        self.trainings.machine_fault_of = lambda spec: self.fault if spec.task_arn.endswith("2") else None

    def _check(self, name: str, holds: bool, _message: str) -> None:
        self.broken += [] if holds else [name]

    @property
    def seconds(self) -> float:
        return (self.clock.now() - self.started_at).total_seconds()

    def start(self, rank: int, group: str = "g1", *, has_init: bool = True, **changed: str | None) -> ProcessHandle:
        """Start a rank of four on the machine with its number; None removes a variable."""
        place = {
            "RELAUNCH_JOB_ID": JOB,
            "RELAUNCH_ATTEMPT": "1",
            "RELAUNCH_NODES": "4",
            "RELAUNCH_NODE_RANK": str(rank),
            "RELAUNCH_MASTER_ADDR": "10.0.0.4",
            "RELAUNCH_MASTER_PORT": "29500",
            "RELAUNCH_GROUP": group,
            "RELAUNCH_CHECKPOINT_URI": FOLDER,
            "RECIPE": "resnet",
        }
        torchrun = {
            "PET_NNODES": "4",
            "PET_NODE_RANK": str(rank),
            "PET_MASTER_ADDR": "10.0.0.4",
            "PET_MASTER_PORT": "29500",
        }
        address = str(changed.pop("address", f"10.0.0.{4 + rank}"))
        environment = {name: value for name, value in {**place, **torchrun, **changed}.items() if value is not None}
        name = f"{group}/{rank}"

        def end(code: int, reason: str | None) -> None:
            assert name not in self.ends, "a container ends once"
            self.ends[name] = (code, reason, self.seconds)

        spec = ProcessSpec(
            task_arn=name,
            family="trainer",
            container="main",
            image="trainer:1",
            command=(),
            environment=environment,
            on_exit=end,
            address=address,
            has_init=has_init,
        )
        return self.trainings.start(spec)

    def form(self, **members: Any) -> list[ProcessHandle]:
        return [self.start(rank, **members) for rank in range(4)]

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def codes(self, group: str = "g1") -> list[int | None]:
        """Return the exit codes of the four ranks, None of those that live."""
        ends = [self.ends.get(f"{group}/{rank}") for rank in range(4)]
        return [None if end is None else end[0] for end in ends]

    def at(self, rank: int) -> float:
        return self.ends[f"g1/{rank}"][2]

    def endings(self) -> set[str]:
        return set(self.trainings.logs[JOB].endings.values())
