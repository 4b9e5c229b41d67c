"""Faults of machines of our own: pools that dry up, quotas, full subnets, rates, hosts that others end."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.instances import subnet_of
from relaunch_local.ecs.engine.model import Instance, StateReason
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.fleet import REFUSALS
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.faults.injector import FaultInjector
from relaunch_local.simulation.machine_scenario import QUOTA_FAMILY

Key = TypeVar("Key")


class MachineFaults(FaultInjector):
    """Injects a fault every few minutes until the faults stop, if the seed has machines of our own."""

    stream = "machines"
    pause_seconds = (60.0, 600.0)

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault; `cancel` cancels a job."""
        super().__init__(account, cancel)
        self._pools = account.simulator.fleets.pools

    def _later(self) -> None:
        if self._account.scenario.machines.types:
            super()._later()

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        return {
            "pool-empty": (4, self._empty_pool),
            "pool-refuses": (3, self._refuse_in_pool),
            "vcpu-quota-reached": (1, self._reach_quota),
            "subnet-full": (1, self._fill_subnet),
            "launches-throttled": (2, self._throttle),
            "starting-machine-lost": (3, self._lose_starting),
            "starting-machine-warned": (2, self._warn_starting),
            "machine-ended-by-its-host": (2, self._end_by_host),
            "machine-lost-while-disconnected": (2, self._lose_disconnected),
            "capacity-block-of-others-ends": (1, self._end_block),
        }

    def end(self) -> None:
        """End every fault."""
        if self._account.scenario.machines.types:
            self._pools.refusals.clear()
            for purchase in Purchase:
                self._restore_quota((QUOTA_FAMILY, purchase))
            self._pools.addresses.clear()
            self._restore_rates()

    def _pool(self) -> tuple[str, Purchase, str]:
        machines = self._account.scenario.machines
        choose = self._random.choice
        return choose(machines.types), choose(list(Purchase)), choose(machines.zones)

    def _for_a_while(self, undo: Callable[[], None]) -> str:
        seconds = self._random.uniform(60.0, 2_400.0)
        self._account.clock.call_later(seconds, undo)
        return f"for {seconds:.0f} s"

    def _empty_pool(self) -> str:
        name, purchase, zone = self._pool()
        limit = self._random.choice((0, 0, 1))
        self._simulator.set_capacity(name, purchase, limit, zone=zone)
        undone = self._for_a_while(lambda: self._simulator.set_capacity(name, purchase, None, zone=zone))
        return f"{name} {purchase} {zone}: {limit} {undone}"

    def _refuse_in_pool(self) -> str:
        pool = self._pool()
        code = self._random.choice(REFUSALS)
        self._pools.refusals[pool] = code
        return f"{pool}: {code} {self._for_a_while(_without(self._pools.refusals, pool))}"

    def _reach_quota(self) -> str:
        key = (QUOTA_FAMILY, self._random.choice(list(Purchase)))
        self._pools.vcpu_quotas[key] = self._random.choice((0, 4, 8))
        return f"{key} {self._for_a_while(partial(self._restore_quota, key))}"

    def _restore_quota(self, key: tuple[str, Purchase]) -> None:
        self._pools.vcpu_quotas[key] = self._account.scenario.machines.vcpu_quota

    def _fill_subnet(self) -> str:
        subnet = subnet_of(self._random.choice(self._account.scenario.machines.zones))
        self._pools.addresses[subnet] = self._random.choice((0, 1))
        return f"{subnet} {self._for_a_while(_without(self._pools.addresses, subnet))}"

    def _throttle(self) -> str:
        """Let others use up the rate of launches: requests are refused as a whole, or have errors of their launches."""
        fleets = self._simulator.fleets
        bucket = self._simulator.limits._run_instances  # noqa: SLF001 - nobody else needs to change it
        seconds = self._random.uniform(20.0, 300.0)
        bucket.tokens = 0.0
        bucket.burst = 1.0
        bucket.rate = 0.02
        fleets.settings = replace(fleets.settings, raises_throttling=self._random.random() < 0.5)
        self._account.clock.call_later(seconds, self._restore_rates)
        return f"{seconds:.0f} s"

    def _restore_rates(self) -> None:
        bucket = self._simulator.limits._run_instances  # noqa: SLF001
        bucket.burst = 5.0
        bucket.rate = 2.0

    def _hosts(self, *, registered: bool) -> list[Instance]:
        every = self._account.machines.hosts.values()
        return [each for each in every if each.is_alive and each.is_registered is registered and self._may_take(each)]

    def _host(self, *, registered: bool) -> Instance | None:
        hosts = self._hosts(registered=registered)
        return self._random.choice(hosts) if hosts else None

    def _lose_starting(self) -> str:
        host = self._host(registered=False)
        if host is not None:
            self._simulator.instances.terminate(host)
        return host.instance_id if host else ""

    def _warn_starting(self) -> str:
        host = self._host(registered=False)
        if host is not None:
            self._simulator.instances.interrupt(host, rebalance_first=self._random.random() < 0.5)
        return host.instance_id if host else ""

    def _end_by_host(self) -> str:
        """Let somebody shut a machine down from within."""
        host = self._host(registered=True)
        if host is not None:
            self._simulator.instances.terminate(host, StateReason.INSTANCE_INITIATED)
        return host.instance_id if host else ""

    def _lose_disconnected(self) -> str:
        """Lose a machine whose agent is cut off: ECS keeps its registration."""
        host = self._host(registered=True)
        if host is None:
            return ""
        self._simulator.instances.set_agent(host, connected=False)
        after = self._random.uniform(1.0, 120.0)
        self._account.clock.call_later(after, lambda: self._simulator.instances.terminate(host))
        return host.instance_id

    def _end_block(self) -> str:
        """Let a Capacity Block end that somebody else in the account bought."""
        ends_at = self._account.clock.now() + timedelta(minutes=40)
        block = "cr-0b10c0b10c0b10c00"
        event = {
            "source": "aws.ec2",
            "account": ACCOUNT,
            "region": REGION,
            "time": iso(self._account.clock.now(), timespec="seconds"),
            "detail-type": "Capacity Block Expiration Warning",
            "detail": {"capacity-reservation-id": block, "end-date": iso(ends_at, timespec="milliseconds")},
        }
        self._account.bus.publish(event)
        return block


def _without(settings: MutableMapping[Key, Any], key: Key) -> Callable[[], None]:
    """Return a function that removes a key."""

    def remove() -> None:
        settings.pop(key, None)

    return remove
