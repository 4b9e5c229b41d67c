"""Notices about a deadline that cannot be promised, or that leaves no time for spot, and what a job waits for."""

import math
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.durations import write_duration
from relaunch.core.lifecycle.market_choice import FILTER_NAME, MarketChoice, spare_at_acceptance
from relaunch.core.lifecycle.paces import Pace, at_pace, is_promised, promised_pace, time_needed
from relaunch.core.market.policies import PolicyName
from relaunch.core.selection.expected_cost import START_OVERHEAD
from relaunch.core.selection.selection import Selection

# Any place for checkpoints: what they would change is asked of a definition that names none.
_SOMEWHERE = "s3://checkpoints/"


def deadline_notices(
    definition: JobDefinition, market: MarketChoice | None, paces: tuple[Pace | None, ...] = (None,)
) -> tuple[str, ...]:
    """Return notices about a deadline that no market can promise, or that leaves no time for spot.

    `market` is what the policy would choose now; None if none was asked: offline, or with work that is not known.
    `paces` are those of on-demand machines: the fastest has to make the deadline, and the one that a job is reckoned at
    says whether spot is used.
    """
    if definition.deadline is None:
        return ()
    near = _too_near(at_pace(definition, paces[-1]), definition.deadline)
    options = definition.purchase.options
    if PurchaseOption.ON_DEMAND in options:
        if market is not None and market.situation.on_demand_usd_per_hour is None:
            missing = "no deadline can be promised: nothing satisfies it on demand, and spot may be gone for any time"
            return (*near, missing)
        pace = promised_pace(definition, paces) if market is None else market.pace
        return near or _no_time_for_spot(at_pace(definition, pace), definition.deadline)
    if PurchaseOption.SPOT not in options:
        return near
    return (
        *near,
        f"no deadline can be promised with `purchase: {definition.purchase}`: spot may be gone for any time; "
        "allow on-demand instances too",
    )


def _too_near(definition: JobDefinition, deadline: timedelta) -> tuple[str, ...]:
    """Say that a deadline leaves no time for anything, even on on-demand instances from the first moment on."""
    needed = time_needed(definition)
    if needed is None or is_promised(definition):
        return ()
    return (
        f"no market can promise a deadline of {write_duration(deadline)}: estimated_duration with a padding of "
        f"{definition.padding:.0%} and a start of {write_duration(START_OVERHEAD)} takes {write_duration(needed)}; "
        "every job goes to on-demand at once where `purchase` allows it: give a later `deadline`, or a smaller "
        "`padding`",
    )


def _no_time_for_spot(definition: JobDefinition, deadline: timedelta) -> tuple[str, ...]:
    """Say that a deadline is kept on on-demand instances alone, and from which one on spot may be used."""
    spare = spare_at_acceptance(definition)
    is_wanted = PurchaseOption.SPOT in definition.purchase.options
    if spare is None or spare >= timedelta(0) or not is_wanted or definition.policy is PolicyName.ON_DEMAND_FIRST:
        return ()
    notice = (
        f"a deadline of {write_duration(deadline)} leaves no time to spare: every job goes to on-demand at once, "
        f"though `purchase` allows spot; that is used with a `deadline` of more than {_minutes_up(deadline - spare)}"
    )
    saving = spare_at_acceptance(replace(definition, checkpoint_uri=_SOMEWHERE))
    if saving is None or saving <= spare:
        return (notice,)
    least = "this one" if saving > timedelta(0) else f"one of more than {_minutes_up(deadline - saving)}"
    return (
        f"{notice}, for without a `checkpoint` an interruption may lose all of the work: give a `checkpoint`, with "
        f"which {least} is enough",
    )


def _minutes_up(duration: timedelta) -> str:
    return write_duration(timedelta(minutes=math.ceil(duration / timedelta(minutes=1) - 1e-6)))


def with_awaited(selection: Selection) -> Selection:
    """Return a selection of which nothing can be had now with the spot that the job waits for; any other as it is."""
    if selection.chosen is not None:
        return selection
    spot = [each for each in selection.rejected if each.offering.purchase is PurchaseOption.SPOT]
    awaited = [each for each in spot if each.filter_name == FILTER_NAME or each.rejection.retry_at is not None]
    rejected = tuple(each for each in selection.rejected if each not in awaited)
    return Selection(tuple(each.offering for each in awaited), rejected, selection.filter_counts, selection.work)
