"""For how long a job runs on on-demand instances while EC2 would launch spot at half their price all the time.

What EC2 would launch is asked of the simulated region every minute, and where a task runs is what ECS and EC2 say of
it. Nothing is read from the application. Time in which the stack has all machines that it may have does not count. For
spot that saves less a move need not pay: an hour of it has to earn two starts and the work that is done twice. Nor for
several tasks that run together: that one instance could be launched says nothing of as many, and they go back at their
next start (docs/multi-node.md). A task whose own start took long may stay for as much longer: the next two are expected
to take as long.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs import Clock, EcsSimulator, Purchase
from relaunch_local.ecs.engine.instances import subnet_of
from relaunch_local.ecs.engine.model import InstanceState
from relaunch_local.ecs.engine.pools import Place
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.members import peers_of
from relaunch_local.simulation.scenario import Scenario

LONGEST_BESIDE_SPOT = timedelta(hours=4)
"""Until a job of unknown length is known to be long enough for a move to pay, and until it has saved and is moved."""
_USUAL_START = timedelta(minutes=10)
_EVERY_SECONDS = 60.0
_WORTH_A_MOVE = 0.5
"""The most that spot costs, as a share of the on-demand price that the job pays, for a move to be expected."""


@dataclass(slots=True)
class SpotWatch:
    """Watches the spot pools of machines of our own, and the tasks on on-demand instances, while `is_on`."""

    _clock: Clock
    _simulator: EcsSimulator
    _scenario: Scenario
    _tasks: Mapping[str, Mapping[str, Mapping[str, object]]]
    """By job and task: ECS's latest state."""
    _facts: AccountFacts
    is_on: Callable[[], bool] = lambda: True
    longest: dict[str, timedelta] = field(default_factory=dict)
    """By job: the longest time for which one task ran beside a pool of spot that had capacity all the time.

    It counts for as much less as the start of the task took longer than usual.
    """
    _open_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _beside_since: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look every minute from now on."""
        self._clock.call_later(_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._clock.call_later(_EVERY_SECONDS, self._look)
        if not self.is_on() or self._is_full():
            self._open_since.clear()
            self._beside_since.clear()
            return
        now = self._clock.now()
        for pool in self._pools():
            if self._has_capacity(*pool):
                self._open_since.setdefault(pool, now)
            else:
                self._open_since.pop(pool, None)
        for job_id, arn, name in self._on_demand():
            open_since = min((at for pool, at in self._open_since.items() if self._is_cheap(pool, name)), default=now)
            since = max(self._beside_since.setdefault(arn, now), open_since)
            longer = max(_start_of(self._tasks[job_id][arn]) / _USUAL_START, 1.0)
            self.longest[job_id] = max(self.longest.get(job_id, timedelta(0)), (now - since) / longer)

    def _is_full(self) -> bool:
        """Return whether the stack has as many machines of its own as it may have but for those that follow a warning.

        A move takes one more until the task has left the old one.
        """
        limits = self._scenario.limits.machines
        hosts = self._simulator.instances.by_id.values()
        living = sum(each.fleet is not None and each.state is not InstanceState.TERMINATED for each in hosts)
        return bool(limits.max_machines) and living >= limits.totals(is_handover=False).machines

    def _pools(self) -> Iterator[tuple[str, str]]:
        machines = self._scenario.machines
        return ((name, zone) for name in machines.types for zone in machines.zones)

    def _has_capacity(self, name: str, zone: str) -> bool:
        place = Place(name, zone, subnet_of(zone), Purchase.SPOT)
        return self._simulator.fleets.pools.refusal_of(place) is None

    def _is_cheap(self, pool: tuple[str, str], paid_for: str) -> bool:
        """Return whether a pool costs at most half of an instance type on demand; it does beside an unknown price."""
        prices = {(each.instance_type, each.zone): each.price_usd_per_hour for each in self._scenario.spot_prices}
        on_demand = self._scenario.on_demand_usd_per_hour.get(paid_for, math.inf)
        return prices.get(pool, math.inf) <= _WORTH_A_MOVE * on_demand

    def _on_demand(self) -> Iterator[tuple[str, str, str]]:
        hosts = self._simulator.instances.by_id
        for job_id, tasks in self._tasks.items():
            for arn, task in tasks.items():
                if len(peers_of(tasks, arn)) > 1:
                    continue
                host = hosts.get(self._facts.host_of(arn)) if task.get("lastStatus") == "RUNNING" else None
                if host is not None and host.is_alive and host.purchase is Purchase.ON_DEMAND:
                    yield job_id, arn, host.instance_type


def _start_of(task: Mapping[str, object]) -> timedelta:
    """Return how long a task took from RunTask until it ran."""
    created_at, started_at = (datetime.fromisoformat(str(task[each])) for each in ("createdAt", "startedAt"))
    return started_at - created_at
