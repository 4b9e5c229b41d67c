"""Hours without spot, in which jobs with a limit go to on-demand and may come back, and shortages of on-demand."""

from relaunch_local.ecs import Purchase
from relaunch_local.simulation.account import SimulatedAccount


class SpotDrought:
    """Leaves a company, some of whose jobs follow a market policy on machines of its own, without spot at first."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Take the capacity away, and schedule when it comes back."""
        self._account = account
        scenario = account.scenario
        dice = account.chance.stream("spot-drought")
        has_limits = any(each.estimated_duration is not None for each in scenario.definitions) or scenario.returning
        if scenario.has_close_deadlines and not scenario.has_shortages:
            return
        if not (has_limits and scenario.machines.types and account.chance.strikes("no-spot-at-first", 2.0)):
            return
        self._set(0)
        account.clock.call_later(dice.uniform(0.3, 1.0) * scenario.chaos_seconds, lambda: self._set(None))

    def _set(self, instances: int | None) -> None:
        for name in self._account.scenario.machines.types:
            self._account.simulator.set_capacity(name, Purchase.SPOT, instances)


class OnDemandShortages:
    """Leaves some companies without on-demand now and then, for minutes or for more than an hour."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule the first shortage."""
        self._account = account
        self._dice = account.chance.stream("on-demand-shortages")
        if account.scenario.has_shortages:
            account.clock.call_later(self._dice.uniform(0.0, 1_500.0), self._begin)

    def _begin(self) -> None:
        account = self._account
        if account.chance.is_calm:
            return
        if account.chance.strikes("no-on-demand-for-a-while", 2.0):
            self._set(0)
        account.clock.call_later(self._dice.uniform(600.0, 6_600.0), self._end)

    def _end(self) -> None:
        self._set(None)
        self._account.clock.call_later(self._dice.uniform(3_600.0, 10_800.0), self._begin)

    def _set(self, instances: int | None) -> None:
        for name in self._account.scenario.machines.types:
            self._account.simulator.set_capacity(name, Purchase.ON_DEMAND, instances)
