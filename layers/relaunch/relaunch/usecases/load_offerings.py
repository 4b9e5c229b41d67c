"""Load the offerings, the capacity memory, quotas and disk prices for a selection."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.quota_use import may_be_short, room_of_quotas
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.offerings.quotas import Quotas
from relaunch.core.offerings.snapshot import OfferingsSnapshot
from relaunch.core.offerings.spot_runs import ShortageRisks, SpotPool, find_shortage_risks, with_observed_rates
from relaunch.core.records import dataclass
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.rates import learned_rates
from relaunch.ports import ANY_OPTION, OfferingDependencies, PermanentError, PortError, ZoneScoreSource

# Every launch loads each of them. With more running jobs quotas are not checked: EC2 rejects a launch beyond a quota,
# which the capacity memory records.
_MAX_COUNTED = 100
MAX_LOOKED_AT = 10
"""How many machines with room are looked at: each costs a read, and of many the oldest are as good as any."""


@dataclass(frozen=True, slots=True)
class AvailableOfferings:
    """The offerings at `at`, with observed interruption rates, the capacity memory and limits.

    `shortage_risks` are those of spot offerings that may be short of capacity, `pools` the records of the spot pools
    (core.offerings.spot_runs).
    """

    at: datetime
    offerings: tuple[Offering, ...]
    memory: CapacityMemory
    limits: SelectionLimits
    shortage_risks: ShortageRisks = field(default_factory=dict)
    pools: Sequence[SpotPool] = ()


def load_offerings(
    deps: OfferingDependencies, own_job_id: str = "", options: Collection[PurchaseOption] = ANY_OPTION
) -> AvailableOfferings:
    """Load the current offerings; `own_job_id` is the job to launch, which does not count against quotas.

    Those of other purchase options than `options` may be left out.

    An unknown quota rejects nothing.

    Raises:
        TransientError: the table or the prices could not be read.
    """
    now = deps.clock.now()
    memory, runs, pools = deps.capacity.load_capacity(now)
    offerings = _with_room(deps.offerings.offerings(now, options), deps)
    snapshot = deps.offerings.snapshot(now)
    limits = replace(
        deps.limits.selection,
        quotas=_quotas(snapshot, offerings, own_job_id, deps),
        peaks=deps.offerings.peaks(),
    )
    if snapshot.gp3_usd_per_gib_month is not None:
        limits = replace(limits, gp3_usd_per_gib_month=snapshot.gp3_usd_per_gib_month)
    rated = with_observed_rates(offerings, runs, now)
    return AvailableOfferings(now, rated, memory, limits, find_shortage_risks(runs, now), pools)


def with_rates(
    available: AvailableOfferings, definition: JobDefinition, deps: OfferingDependencies
) -> AvailableOfferings:
    """Return the offerings with what jobs of the definition have shown of their speed; what is not read is not known.

    Without checkpoints, or with nothing that says how much work a job is, that would change nothing.
    """
    is_of_use = definition.estimated_duration is not None or definition.total_steps is not None
    if definition.checkpoint_uri is None or not is_of_use:
        return available
    try:
        records = deps.rates.load_rates(definition.name)
    except PortError as error:
        deps.log.decided("rates not read", definition=definition.name, reason=str(error))
        return available
    return replace(available, limits=replace(available.limits, rates=learned_rates(records, definition, available.at)))


def with_placement_scores(
    offerings: tuple[Offering, ...], source: ZoneScoreSource, instance_types: Collection[str]
) -> tuple[Offering, ...]:
    """Return the offerings, those of these types on spot with the spot placement score of their zone."""
    scores = source.zone_scores(instance_types)
    return tuple(
        replace(each, placement_score=scores.get(each.zone or ""))
        if each.purchase is PurchaseOption.SPOT and each.instance_type.name in instance_types
        else each
        for each in offerings
    )


def _with_room(offerings: tuple[Offering, ...], deps: OfferingDependencies) -> tuple[Offering, ...]:
    """Return the offerings, those in full reservations with whether one of our machines there has room."""
    if not any(each.reservation is not None and each.reservation.available <= 0 for each in offerings):
        return offerings
    machines = (deps.machines.load_machine(each) for each in deps.machines.load_with_room(MAX_LOOKED_AT))
    ids = {machine.request.reservation_id for machine in machines if machine is not None}
    return tuple(
        replace(each, reservation=replace(each.reservation, has_room=True))
        if each.reservation is not None and each.reservation.reservation_id in ids
        else each
        for each in offerings
    )


def _quotas(
    snapshot: OfferingsSnapshot, offerings: Sequence[Offering], own_job_id: str, deps: OfferingDependencies
) -> Quotas:
    vcpus_by_code = snapshot.vcpus_by_quota
    if not vcpus_by_code:
        return {}
    most = _most_instances(deps)
    if most and not may_be_short(vcpus_by_code, offerings, most - 1):
        return room_of_quotas(vcpus_by_code, (), {})
    others = [job_id for job_id in deps.jobs.load_slot_holders(_MAX_COUNTED + 1) if job_id != own_job_id]
    living = deps.machines.load_living(_MAX_COUNTED + 1) if deps.machine_settings.is_on else []
    count = len(others) + len(living)
    if count > _MAX_COUNTED or not may_be_short(vcpus_by_code, offerings, count):
        return room_of_quotas(vcpus_by_code, (), {})
    known = {**deps.offerings.catalogue(), **snapshot.instance_types}
    machines = (machine for each in living if (machine := deps.machines.load_machine(each)) is not None)
    return room_of_quotas(vcpus_by_code, _load_readable(others, deps), known, machines)


def _most_instances(deps: OfferingDependencies) -> int:
    """Return the most instances that the stack may have at once; 0 if that is not limited."""
    jobs = deps.limits.max_running_jobs
    machines = deps.limits.machines.max_machines
    if not deps.machine_settings.is_on:
        return jobs
    return jobs + machines if jobs and machines else 0


def _load_readable(job_ids: Iterable[str], deps: OfferingDependencies) -> Iterator[Job]:
    """Load jobs, except those that cannot be read."""
    for job_id in job_ids:
        try:
            job = deps.jobs.load_job(job_id)
        except PermanentError as error:
            deps.log.decided("uncounted", job_id=job_id, reason=str(error))
            continue
        if job is not None:
            yield job
