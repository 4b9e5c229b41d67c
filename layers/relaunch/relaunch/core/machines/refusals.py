"""What follows from the errors of CreateFleet."""

from collections.abc import Sequence
from datetime import datetime

from relaunch.core.machines.events import Refusal
from relaunch.core.machines.machine import FleetRequest, Verdict
from relaunch.core.offerings.offering import CapacityFailure


def failures_of(request: FleetRequest, refusals: Sequence[Refusal], now: datetime) -> tuple[CapacityFailure, ...]:
    return ()


def verdict_of(refusals: Sequence[Refusal]) -> Verdict:
    return Verdict.NEXT


def describe_refusals(refusals: Sequence[Refusal]) -> str:
    return ", ".join(sorted({each.code for each in refusals}))
