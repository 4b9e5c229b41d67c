"""The usage of EC2 vCPU quotas by the instances of open jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.job import Job, JobState
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
    vcpus_by_code: Mapping[str, float], jobs: Iterable[Job], catalogue: Mapping[str, InstanceType]
) -> Quotas:
    """Return the quotas and their usage by the instances of these jobs.

    Jobs on the same instance count once; a job whose instance is unknown counts as one instance. Other usage of the
    account is unknown: EC2 then rejects the launch, which the capacity memory records.
    """
    used: dict[str, float] = defaultdict(float)
    instances = {_instance_of(job): job for job in jobs if job.attempt is not None and job.state in _WITH_INSTANCE}
    for job in instances.values():
        offering = job.current_attempt.placement.offering
        quota, row = quota_of(offering.instance_type, offering.purchase), catalogue.get(offering.instance_type)
        if quota is not None and row is not None:
            used[quota.code] += row.vcpus
    return {code: QuotaUsage(vcpus, used[code]) for code, vcpus in vcpus_by_code.items()}


def _instance_of(job: Job) -> str:
    return job.current_attempt.instance_id or job.job_id
