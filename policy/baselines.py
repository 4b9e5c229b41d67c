"""Policies to compare with that nobody should run."""

from collections.abc import Callable

from relaunch.core.market.published import greedy, stay, take_spot
from relaunch.core.market.situation import Action, Choice, Place, Policy, Rule, Situation


def retrying(retries: int) -> Callable[[], Policy]:
    """Return what makes policies that go on-demand for good after some interruptions, as a retry count does."""

    def make() -> Policy:
        done = 0.0
        interruptions = 0

        def choose(situation: Situation) -> Choice:
            nonlocal done, interruptions
            if situation.place is not Place.IDLE:
                return stay(situation)
            # Each time that it is idle after more work was done, a machine was taken away.
            interruptions += situation.work_done > done
            done = situation.work_done
            if interruptions >= retries:
                return Choice(Action.ON_DEMAND, Rule.ON_DEMAND_FIRST)
            return take_spot(situation) or greedy(situation)

        return choose

    return make
