"""Filters on the terms of an offering: purchase option, price, and what failed lately. Some of them end by waiting."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from relaunch.core.accelerator import PurchaseOption
from relaunch.core.definition import JobDefinition
from relaunch.core.fit import Miss
from relaunch.core.need import Need
from relaunch.core.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """The stack's own limits, as selection needs them.

    `max_spot_ratio`: spot above this share of the on-demand price is not worth being interrupted.
    `has_subnets`: whether the stack names subnets, which tasks of network mode awsvpc need.
    """

    max_price_usd_per_hour: float = 40.0
    max_spot_ratio: float = 0.9
    has_subnets: bool = True


@dataclass(frozen=True, slots=True)
class Terms:
    """Everything the filters on offerings look at."""

    definition: JobDefinition
    need: Need
    memory: CapacityMemory
    now: datetime
    limits: SelectionLimits


OfferingFilter = Callable[[Terms, Offering], Miss | None]


def check_network_mode(terms: Terms, _offering: Offering) -> Miss | None:
    """Reject everything when the revision needs subnets and the stack has none."""
    if terms.need.network_mode != "awsvpc" or terms.limits.has_subnets:
        return None
    return Miss("the task definition's network mode is awsvpc, and the stack has no subnets (SubnetIds)")


def check_purchase(terms: Terms, offering: Offering) -> Miss | None:
    """Reject purchase options the definition does not allow."""
    policy = terms.definition.purchase
    if offering.purchase in policy.options:
        return None
    return Miss(f"the definition's purchase is {policy}")


def check_price_cap(terms: Terms, offering: Offering) -> Miss | None:
    """Reject what costs more than the definition or the stack allows; on-demand prices do not change by waiting."""
    price = offering.expected_usd_per_hour
    is_permanent = offering.purchase is PurchaseOption.ON_DEMAND
    if price is None:
        return Miss("its price is not known, so no price cap can be kept", is_permanent=is_permanent)
    own = terms.definition.max_price_usd_per_hour
    stack = terms.limits.max_price_usd_per_hour
    cap, whose = (own, "definition") if own is not None and own <= stack else (stack, "stack")
    if price <= cap:
        return None
    reason = f"it costs {price:.4g} USD per hour; the {whose}'s cap is {cap:.4g}"
    return Miss(reason, 1 - cap / price, is_permanent)


def check_spot_ratio(terms: Terms, offering: Offering) -> Miss | None:
    """Reject spot that is not cheaper enough than on-demand; an unknown spot price is not judged here."""
    if offering.purchase is not PurchaseOption.SPOT or offering.saving is None:
        return None
    ratio, limit = 1 - offering.saving, terms.limits.max_spot_ratio
    if ratio <= limit:
        return None
    reason = f"spot costs {ratio:.0%} of the on-demand price; above {limit:.0%} it is not worth being interrupted"
    return Miss(reason, 1 - limit / ratio, is_permanent=False)


def check_capacity_memory(terms: Terms, offering: Offering) -> Miss | None:
    """Reject what failed or was interrupted lately, by any job; a failure without a zone counts for every zone."""
    failures = [each for each in _remembered(terms.memory, offering.key) if each.until > terms.now]
    if not failures:
        return None
    failure = max(failures, key=lambda each: each.until)
    reason = f"{failure.reason} at {failure.at:%H:%M} UTC; avoided until {failure.until:%H:%M} UTC"
    return Miss(reason, is_permanent=False, retry_at=failure.until)


OFFERING_FILTERS: tuple[tuple[str, OfferingFilter], ...] = (
    ("network-mode", check_network_mode),
    ("purchase", check_purchase),
    ("price-cap", check_price_cap),
    ("spot-ratio", check_spot_ratio),
    ("capacity-memory", check_capacity_memory),
)


def _remembered(memory: CapacityMemory, key: OfferingKey) -> list[CapacityFailure]:
    keys = {key, OfferingKey(key.instance_type, None, key.purchase)}
    return [memory[each] for each in sorted(keys, key=str) if each in memory]
