"""Machines that go all at once: an Availability Zone with everything in it, or the spot instances of a pool."""

from collections.abc import Sequence

from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.scenario import ZONES

_LONGEST_SECONDS = 7_200.0


class MassLosses:
    """Takes a zone away for up to two hours, or warns every spot instance of a pool in the same second, once a run."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule it, except where times are promised to the minute."""
        self._account = account
        self._dice = account.chance.stream("mass-losses")
        scenario = account.scenario
        if not (scenario.has_close_deadlines or scenario.returning) and self._dice.random() < 0.1:
            account.clock.call_later(self._dice.uniform(0.2, 1.0) * scenario.chaos_seconds, self._strike)

    def _strike(self) -> None:
        hosts = [each for each in self._account.simulator.instances.by_id.values() if each.is_alive]
        if not hosts:
            return
        host = self._dice.choice(hosts)
        if self._dice.random() < 0.5:
            self._lose_zone(host.zone, [each for each in hosts if each.zone == host.zone])
        elif host.purchase is Purchase.SPOT:
            pool = (host.instance_type, host.zone, host.purchase)
            self._reclaim([each for each in hosts if (each.instance_type, each.zone, each.purchase) == pool])

    def _lose_zone(self, zone: str, hosts: Sequence[Instance]) -> None:
        if not self._account.chance.strikes("zone-lost", 1e9, note=f"{zone}: {len(hosts)} instances"):
            return
        self._set_capacity(zone, 0)
        for each in hosts:
            self._account.simulator.instances.terminate(each)
        seconds = self._dice.uniform(600.0, _LONGEST_SECONDS)
        self._account.clock.call_later(seconds, lambda: self._set_capacity(zone, None))

    def _set_capacity(self, zone: str, instances: int | None) -> None:
        if zone in ZONES:
            for name in self._account.scenario.machines.types:
                for purchase in Purchase:
                    self._account.simulator.set_capacity(name, purchase, instances, zone=zone)

    def _reclaim(self, hosts: Sequence[Instance]) -> None:
        if self._account.chance.strikes("pool-reclaimed", 1e9, note=f"{len(hosts)} instances"):
            for each in hosts:
                self._account.simulator.instances.interrupt(each)
