"""A market without spot for an hour or more: jobs with a limit go to on-demand, and may come back."""

from relaunch_local.ecs import Purchase
from relaunch_local.simulation.aws.account import SimulatedAccount


class SpotDrought:
    """Leaves a company, some of whose jobs follow a market policy on machines of its own, without spot at first."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Take the capacity away, and schedule when it comes back."""
        self._account = account
        scenario, dice = account.scenario, account.chance.stream("spot-drought")
        has_limits = any(each.estimated_duration is not None for each in scenario.definitions)
        if not (has_limits and scenario.machines.types and account.chance.strikes("no-spot-at-first", 2.0)):
            return
        self._set(0)
        account.clock.call_later(dice.uniform(0.3, 1.0) * scenario.chaos_seconds, lambda: self._set(None))

    def _set(self, instances: int | None) -> None:
        for name in self._account.scenario.machines.types:
            self._account.simulator.set_capacity(name, Purchase.SPOT, instances)
