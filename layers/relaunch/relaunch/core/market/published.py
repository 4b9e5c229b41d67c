"""The policies of "Can't Be Late: Optimizing Spot Instance Savings under Deadlines" (NSDI 2024), and on-demand alone.

With availability seen at every moment they are as published. In production a job tries instead: a pool that refused is
tried again after the situation's interval.
"""

from collections.abc import Sequence

from relaunch.core.market.situation import Action, Choice, Place, Pool, Rule, Situation


def on_demand_first(situation: Situation) -> Choice:
    """Be on on-demand instances always; on spot where the job may not run on them."""
    if situation.on_demand_usd_per_hour is None or situation.place is Place.SPOT:
        return greedy(situation)
    if situation.place is Place.ON_DEMAND:
        return Choice(Action.STAY, Rule.ON_DEMAND_FIRST)
    return Choice(Action.ON_DEMAND, Rule.ON_DEMAND_FIRST)


def greedy(situation: Situation) -> Choice:
    """Be on spot whenever it can be had, and wait for it until only on-demand meets the deadline (section 4.1)."""
    if situation.place is not Place.IDLE:
        return stay(situation)
    return take_safety_net(situation) or take_spot(situation) or wait(situation, Rule.OUTAGE, situation.spare)


def uniform_progress(situation: Situation) -> Choice:
    """Keep the progress of a job that runs evenly until its deadline (sections 4.3 and 4.4).

    It waits for spot while it is ahead of that line. From an on-demand instance it goes back to spot only when it stays
    ahead with the overhead of both starts.
    """
    if situation.time_left is None or situation.place is Place.SPOT:
        return greedy(situation)
    slope = (situation.work_done + situation.work_left) / (situation.elapsed + situation.time_left)
    if situation.place is Place.ON_DEMAND:
        return _uniform_on_demand(situation, slope)
    ahead_for = situation.work_done / slope - situation.elapsed if slope > 0 else 0.0
    return (
        take_safety_net(situation)
        or take_spot(situation)
        or (_take_on_demand(situation, ahead_for) if ahead_for < 0 else None)
        or wait(situation, Rule.AHEAD, ahead_for)
    )


def _take_on_demand(situation: Situation, ahead_for: float) -> Choice | None:
    if situation.on_demand_usd_per_hour is None:
        return None
    return Choice(Action.ON_DEMAND, Rule.BEHIND, value=ahead_for)


def _uniform_on_demand(situation: Situation, slope: float) -> Choice:
    if situation.spare is not None and situation.spare < 0:
        return Choice(Action.STAY, Rule.SAFETY_NET)
    behind = slope * (situation.elapsed + 2 * situation.overhead) - situation.work_done
    if behind > 0:
        until = behind / (1 - slope) if slope < 1 else None
        return Choice(Action.STAY, Rule.STAYS_ON_DEMAND, until=until, value=behind)
    return take_spot(situation) or Choice(Action.STAY, Rule.STAYS_ON_DEMAND, until=situation.next_try_in)


def stay(situation: Situation) -> Choice:
    """Return the choice to stay where the job runs, until an event."""
    is_on_spot = situation.place is Place.SPOT
    return Choice(Action.STAY, Rule.RUNS_ON_SPOT if is_on_spot else Rule.STAYS_ON_DEMAND)


def take_safety_net(situation: Situation) -> Choice | None:
    """Return the choice of on-demand for an idle job that no other start brings to its deadline; None for others."""
    spare = situation.spare
    if situation.on_demand_usd_per_hour is None or spare is None or spare >= 0:
        return None
    return Choice(Action.ON_DEMAND, Rule.SAFETY_NET, value=spare)


def take_spot(situation: Situation) -> Choice | None:
    """Return the try of the cheapest pool that may be tried; None if there is none."""
    return try_any(situation.pools_to_try)


def try_any(pools: Sequence[Pool]) -> Choice | None:
    """Return the try of the first of some pools, with the others as its alternatives; None if there is none."""
    if not pools:
        return None
    first, *others = (each.name for each in pools)
    return Choice(Action.TRY, Rule.SPOT_MAY_BE_HAD, pool=first, alternatives=tuple(others))


def wait(situation: Situation, rule: Rule, value: float | None) -> Choice:
    """Return the choice to wait until a pool may be tried again, for `value` hours if on-demand is allowed.

    It never waits past the time when only on-demand meets the deadline.
    """
    if situation.on_demand_usd_per_hour is None:
        return Choice(Action.WAIT, Rule.NO_ON_DEMAND, until=situation.next_try_in)
    ends = (situation.next_try_in, value, situation.spare)
    until = min((each for each in ends if each is not None), default=None)
    return Choice(Action.WAIT, rule, until=until, value=value or 0.0)
