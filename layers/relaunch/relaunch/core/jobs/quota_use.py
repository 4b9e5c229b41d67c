"""How much of EC2's quotas the machines of our own open jobs use."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.job import Job, JobState
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.quotas import Quotas, QuotaUsage, quota_of

_WITH_MACHINE = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def may_be_short(vcpus_by_code: Mapping[str, float], offerings: Iterable[Offering], running_jobs: int) -> bool:
    """Tell whether what so many jobs use can matter: not when each could have the largest machine of its quota."""
    for offering in offerings:
        quota = quota_of(offering.instance_type.name, offering.purchase)
        limit = vcpus_by_code.get(quota.code) if quota else None
        if limit is not None and offering.instance_type.vcpus * (running_jobs + 1) > limit:
            return True
    return False


def room_of_quotas(
    vcpus_by_code: Mapping[str, float], jobs: Iterable[Job], catalogue: Mapping[str, InstanceType]
) -> Quotas:
    """Return what is left of quotas beside the machines of these jobs.

    Jobs on one machine count once; a job whose machine is not known yet counts one of its own. What others in the
    account use is not known here: EC2 then refuses the launch, which the capacity memory learns from.
    """
    used: dict[str, float] = defaultdict(float)
    machines = {_machine_of(job): job for job in jobs if job.attempt is not None and job.state in _WITH_MACHINE}
    for job in machines.values():
        offering = job.current_attempt.placement.offering
        quota, row = quota_of(offering.instance_type, offering.purchase), catalogue.get(offering.instance_type)
        if quota is not None and row is not None:
            used[quota.code] += row.vcpus
    return {code: QuotaUsage(vcpus, used[code]) for code, vcpus in vcpus_by_code.items()}


def _machine_of(job: Job) -> str:
    return job.current_attempt.instance_id or job.job_id
