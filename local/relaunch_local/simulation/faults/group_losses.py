"""Losses of machines that were launched together, which the tag `relaunch:group` names: they are correlated.

The shares are those of traces of spot pools (V100, 2023, ticks of five minutes, skypilot-org/spot-traces): of the
states with all of 4 machines that ended, 6 % lost all in one tick and 63 % exactly one; with all of 16, 51 % and 8 %.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.fleet import GROUP_TAG
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.group_faults import LOST, RECLAIMED, WARNED
from relaunch_local.simulation.faults.injector import FaultInjector

_FEW = (0.06, 0.63)
_MANY = (0.51, 0.08)
"""How often all machines are lost, and exactly one, of 4 and of 16."""
_LEAST_MANY = 8
_APART_SECONDS = 60.0


def lost_of(machines: int, draw: float, draw_some: float) -> int:
    """Return how many of the machines of a group are lost at once, for two numbers from 0 to 1."""
    all_share, one_share = _MANY if machines >= _LEAST_MANY else _FEW
    if draw < all_share:
        return machines
    if draw < all_share + one_share or machines < 3:
        return 1
    return 2 + int(draw_some * (machines - 2))


class GroupLosses(FaultInjector):
    """Takes machines of groups away until the faults stop, if the scenario switches it on."""

    stream = "group-losses"
    pause_seconds = (120.0, 900.0)

    def _later(self) -> None:
        if self._account.scenario.machines.group_faults:
            super()._later()

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        every = {LOST: self._lose, WARNED: self._warn_two, RECLAIMED: self._reclaim}
        return {kind: (1, inject) for kind, inject in every.items() if self._share_of(kind)}

    def _share_of(self, kind: str) -> float:
        return self._account.scenario.machines.group_faults.get(kind, 0.0)

    def _group(self, *, is_spot: bool) -> Sequence[Instance]:
        """Return the machines of a group that live, two at least, in a random order; none if there is no group."""
        groups: dict[str, list[Instance]] = defaultdict(list)
        for host in self._simulator.instances.by_id.values():
            if host.is_alive and GROUP_TAG in host.tags and (host.purchase is Purchase.SPOT or not is_spot):
                groups[host.tags[GROUP_TAG]].append(host)
        several = [hosts for hosts in groups.values() if len(hosts) > 1 and all(map(self._may_take, hosts))]
        if not several:
            return ()
        chosen = self._random.choice(several)
        return self._random.sample(chosen, len(chosen))

    def _some(self, hosts: Sequence[Instance]) -> Sequence[Instance]:
        return hosts[: lost_of(len(hosts), self._random.random(), self._random.random())] if hosts else ()

    def _lose(self) -> str:
        lost = self._some(self._group(is_spot=False))
        for host in lost:
            self._simulator.instances.terminate(host)
        return _names(lost)

    def _reclaim(self) -> str:
        warned = self._some(self._group(is_spot=True))
        for host in warned:
            self._warn(host)
        return _names(warned)

    def _warn_two(self) -> str:
        two = self._group(is_spot=True)[:2]
        if not two:
            return ""
        self._warn(two[0])
        seconds = self._random.choice((0.0, self._random.uniform(0.0, _APART_SECONDS)))
        if seconds:
            self._account.clock.call_later(seconds, lambda: self._warn(two[1]))
        else:
            self._warn(two[1])
        return f"{_names(two)}, {seconds:.0f} s apart"

    def _warn(self, host: Instance) -> None:
        """Announce the interruption of an instance, in its metadata too."""
        if not host.is_alive:
            return
        self._simulator.instances.interrupt(host)
        for task in list(host.tasks.values()):
            self._account.trainings.warn(task.arn)


def _names(hosts: Sequence[Instance]) -> str:
    return ", ".join(host.instance_id for host in hosts)
