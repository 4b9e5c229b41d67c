"""Look at everything a selection depends on besides the job: offerings, their odds, what failed lately, quotas."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from relaunch.core.accelerator import PurchaseOption
from relaunch.core.offering import CapacityMemory, Offering
from relaunch.core.quota_use import may_be_short, quota_codes, room_of_quotas
from relaunch.core.quotas import Quotas
from relaunch.core.terms import SelectionLimits
from relaunch.ports import PlacementScoreSource, World


@dataclass(frozen=True, slots=True)
class Market:
    """What there is to choose from at `at`, and within which limits."""

    at: datetime
    offerings: tuple[Offering, ...]
    memory: CapacityMemory
    limits: SelectionLimits


def survey_market(world: World, own_job_id: str = "") -> Market:
    """Look at the market as it is now; `own_job_id` is the job to be launched, whose earlier machine does not count.

    Odds and quotas that cannot be had are unknown, which rejects nothing.

    Raises:
        TransientError: the table or the prices could not be read.
    """
    now = world.clock.now()
    memory = world.capacity.load_capacity_memory(now)
    offerings = with_odds(world.offerings.offerings(now), world.placement_scores)
    limits = replace(world.limits.selection, quotas=_quotas(offerings, own_job_id, world))
    return Market(now, offerings, memory, limits)


def with_odds(
    offerings: tuple[Offering, ...], source: PlacementScoreSource, instance_types: Collection[str] | None = None
) -> tuple[Offering, ...]:
    """Give spot offerings (of these types, or all) the odds of their zones, as the source knows them for those types.

    Odds tell zones apart, so that nothing is asked without zones.
    """
    rated = {
        each.key
        for each in offerings
        if each.purchase is PurchaseOption.SPOT
        and each.zone is not None
        and (instance_types is None or each.instance_type.name in instance_types)
    }
    scores = source.zone_scores({key.instance_type for key in rated}) if rated else {}
    if not scores:
        return offerings
    return tuple(
        replace(each, placement_score=scores.get(each.zone)) if each.zone is not None and each.key in rated else each
        for each in offerings
    )


def _quotas(offerings: Sequence[Offering], own_job_id: str, world: World) -> Quotas:
    vcpus_by_code = world.quotas.vcpu_quotas(quota_codes(offerings))
    if not vcpus_by_code:
        return {}
    cap = world.limits.max_running_jobs
    if cap and not may_be_short(vcpus_by_code, offerings, cap - 1):
        return room_of_quotas(vcpus_by_code, (), {})
    others = [job_id for job_id in world.jobs.load_slot_holders() if job_id != own_job_id]
    if not may_be_short(vcpus_by_code, offerings, len(others)):
        return room_of_quotas(vcpus_by_code, (), {})
    jobs = (world.jobs.load_job(job_id) for job_id in others)
    return room_of_quotas(vcpus_by_code, (job for job in jobs if job is not None), world.offerings.catalogue())
