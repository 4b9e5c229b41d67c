"""Faults of capacity providers: being replaced, without an instance from EC2, and at their maximum size."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from relaunch_local.ecs.engine.model import CapacityProvider
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.faults.injector import FaultInjector

# In the other seeds nothing changes, in which planted bugs are known to be found.
_EVERY = 8
_FIRST = 5
_REFUSALS = (
    "UnfulfillableCapacity: Unable to fulfill capacity due to your request configuration.",
    "InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses.",
    "Timed out while waiting for an instance.",
)


class ProviderFaults(FaultInjector):
    """Injects a fault every few minutes in some seeds, until the faults stop."""

    stream = "providers"
    pause_seconds = (120.0, 1_200.0)

    def __init__(self, account: SimulatedAccount, cancel: Callable[[], None]) -> None:
        """Schedule the first fault in the seeds that have some."""
        self._largest: dict[str, int] = {}
        super().__init__(account, cancel)

    def _weighted_faults(self) -> Mapping[str, tuple[int, Callable[[], str]]]:
        return {
            "provider-not-active": (3, self._replace),
            "provider-without-instance": (2, self._refuse),
            "group-at-its-maximum": (3, self._fill),
        }

    def _later(self) -> None:
        if self._account.scenario.providers and self._account.chance.seed % _EVERY == _FIRST:
            super()._later()

    def end(self) -> None:
        """End every fault."""
        for provider in self._providers():
            self._restore(provider)

    def _providers(self) -> list[CapacityProvider]:
        return list(self._simulator.clusters.get(CLUSTER).providers.values())

    def _replace(self) -> str:
        """Let somebody replace a provider, which takes minutes."""
        return self._for_a_while(self._random.choice(self._providers()), is_active=False)

    def _refuse(self) -> str:
        """Let ECS tell in the words of EC2 why a task gets no instance."""
        return self._for_a_while(self._random.choice(self._providers()), refusal=self._random.choice(_REFUSALS))

    def _fill(self) -> str:
        """Let a group have reached its maximum size."""
        full = [each for each in self._providers() if each.group.instances and each.name not in self._largest]
        if not full:
            return ""
        provider = self._random.choice(full)
        self._largest[provider.name] = provider.group.spec.max_size
        provider.group.spec = replace(provider.group.spec, max_size=len(provider.group.instances))
        return self._for_a_while(provider)

    def _for_a_while(self, provider: CapacityProvider, *, is_active: bool = True, refusal: str = "") -> str:
        provider.is_active = is_active
        provider.refusal = refusal
        seconds = self._random.uniform(300.0, 3_600.0)
        self._account.clock.call_later(seconds, lambda: self._restore(provider))
        return f"{provider.name} for {seconds:.0f} s"

    def _restore(self, provider: CapacityProvider) -> None:
        provider.is_active = True
        provider.refusal = ""
        largest = self._largest.pop(provider.name, None)
        if largest is not None:
            provider.group.spec = replace(provider.group.spec, max_size=largest)
