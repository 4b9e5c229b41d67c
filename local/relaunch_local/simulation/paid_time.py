"""What instances are paid for while no task trains on them: booting, waiting, pulling, saving, ending."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from relaunch_local.ecs import EcsSimulator, Event
from relaunch_local.ecs.engine.model import BillLine, Instance


@dataclass(frozen=True, slots=True)
class IdleTime:
    """Seconds of instances that are paid for without a training, by what they are spent on.

    `boot` is until the registration, `waiting` from it until a task is placed, `pull` from then until the task runs,
    `save` from SIGTERM until STOPPED, `ending` what follows the last task.
    """

    boot: float = 0.0
    waiting: float = 0.0
    pull: float = 0.0
    save: float = 0.0
    ending: float = 0.0

    def __add__(self, other: "IdleTime") -> "IdleTime":
        """Return the sum."""
        return IdleTime(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def total(self) -> float:
        """Return all of it."""
        return self.boot + self.waiting + self.pull + self.save + self.ending


IDLE_PARTS = (*(each.name for each in fields(IdleTime)), "total")


class PaidInstances:
    """The instances of a region, those included that EC2 does not describe any more."""

    def __init__(self, simulator: EcsSimulator) -> None:
        """Watch the instances from now on."""
        self._simulator = simulator
        self._instances: dict[str, Instance] = {}
        simulator.subscribe(self._observe)

    def _observe(self, event: Event) -> None:
        instance_id = event["detail"].get("instance-id")
        if instance_id in self._simulator.instances.by_id:
            self._instances[instance_id] = self._simulator.instances.by_id[instance_id]

    def idle_time(self, tasks: Iterable[Mapping[str, object]], begin: datetime, end: datetime) -> IdleTime:
        """Return what was paid for between `begin` and `end` while none of these tasks, as ECS describes them, ran."""
        every = list(tasks)
        total = IdleTime()
        for line in self._simulator.instances.bill:
            instance = self._instances[line.instance_id]
            own = [task for task in every if instance.arn and task.get("containerInstanceArn") == instance.arn]
            total += _idle_time(line, instance, sorted(own, key=lambda task: str(task["createdAt"])), begin, end)
        return total


def _idle_time(
    line: BillLine, instance: Instance, tasks: list[Mapping[str, object]], begin: datetime, end: datetime
) -> IdleTime:
    paid_until = min(line.billing_ended_at or line.terminated_at or end, end)

    def seconds(since: datetime, until: datetime) -> float:
        paid: timedelta = min(until, paid_until) - max(since, begin)
        return max(paid.total_seconds(), 0.0)

    registered_at = instance.registered_at or paid_until
    idle_since = registered_at
    pull = 0.0
    save = 0.0
    waiting = 0.0
    for task in tasks:
        placed_at = max(_time(task, "createdAt", paid_until), registered_at)
        started_at = _time(task, "startedAt", paid_until)
        stopped_at = _time(task, "stoppedAt", paid_until)
        waiting += seconds(idle_since, placed_at)
        pull += seconds(placed_at, started_at)
        save += seconds(_time(task, "stoppingAt", stopped_at), stopped_at)
        idle_since = stopped_at
    # An instance that EC2 interrupts in its first hour is left to it, and not billed. The other parts say how long a
    # start and a save take, whoever pays.
    rest = 0.0 if line.is_free and tasks else seconds(idle_since, paid_until)
    boot = seconds(line.launched_at, registered_at)
    return IdleTime(boot, waiting if tasks else rest, pull, save, rest if tasks else 0.0)


def _time(task: Mapping[str, object], name: str, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(str(task[name])) if name in task else otherwise
