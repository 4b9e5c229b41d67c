"""The usage of EC2 vCPU quotas by machines of our own and by the other instances of open jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.quotas import Quotas, QuotaUsage, quota_of

_WITH_INSTANCE = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def may_be_short(vcpus_by_code: Mapping[str, float], offerings: Iterable[Offering], running_jobs: int) -> bool:
    """Return whether a quota may be short: not if every job could run on the largest instance of it."""
    for offering in offerings:
        quota = quota_of(offering.instance_type.name, offering.purchase)
        limit = vcpus_by_code.get(quota.code) if quota else None
        if limit is not None and offering.instance_type.vcpus * (running_jobs + 1) > limit:
            return True
    return False


def room_of_quotas(
    vcpus_by_code: Mapping[str, float],
    jobs: Iterable[Job],
    catalogue: Mapping[str, InstanceType],
    machines: Iterable[Machine] = (),
) -> Quotas:
    """Return the quotas and their usage by the machines of our own, and by the other instances of these jobs.

    A machine counts once, whatever claims it has, from its request until it is gone; jobs that have one do not count
    again. Jobs on the same instance count once; a job whose instance is unknown counts as one instance. Other usage of
    the account is unknown: EC2 then rejects the launch, which the capacity memory records.
    """
    used: dict[str, float] = defaultdict(float)
    for machine in machines:
        for code, vcpus in _vcpus_of(machine).items():
            used[code] += vcpus
    instances = {job.current_attempt.instance_id or job.job_id: job for job in jobs if _counts(job)}
    for job in instances.values():
        offering = job.current_attempt.placement.offering
        quota, row = quota_of(offering.instance_type, offering.purchase), catalogue.get(offering.instance_type)
        if quota is not None and row is not None:
            used[quota.code] += row.vcpus
    return {code: QuotaUsage(vcpus, used[code]) for code, vcpus in vcpus_by_code.items()}


def _vcpus_of(machine: Machine) -> Mapping[str, int]:
    """Return the vCPUs of a machine by quota code; until EC2 has chosen, the most that it may have of each quota."""
    vcpus: dict[str, int] = {}
    if machine.state is MachineState.GONE:
        return vcpus
    chosen = machine.request.override_of(machine.offering) if machine.offering else None
    for override in (chosen,) if chosen else machine.request.overrides:
        quota = quota_of(override.offering.instance_type, override.offering.purchase)
        if quota is not None:
            vcpus[quota.code] = max(vcpus.get(quota.code, 0), override.capacity.cpu_units // 1024)
    return vcpus


def _counts(job: Job) -> bool:
    """Return whether a job has an instance of a capacity provider."""
    return job.attempt is not None and job.state in _WITH_INSTANCE and bool(job.attempt.placement.capacity_provider)
