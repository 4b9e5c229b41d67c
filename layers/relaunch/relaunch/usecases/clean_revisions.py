"""Deregister derived revisions that no job uses."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.launches.derived_revision import source_family
from relaunch.core.revisions.revision import parse_revision_arn
from relaunch.ports import MaintenanceDependencies, PortError, RevisionMaintenance

_INTERVAL = timedelta(hours=1)
_KEPT_UNUSED = timedelta(days=1)
# DeregisterTaskDefinition shares a burst of 20 and 1 request per second with RegisterTaskDefinition.
_MAX_FAMILIES = 10
_MAX_JOBS = 1000
_FAR_AHEAD = timedelta(days=3650)


def clean_revisions(deps: MaintenanceDependencies, has_time: Callable[[], bool] = lambda: True) -> int:
    """Once an hour, deregister derived families that no open job has used for a day; return their number.

    Families of other stacks in the account are left to these. Nothing is deregistered if there is no time to load all
    open jobs. A job whose revision was deregistered registers it again. Of concurrent calls one does the work. A failed
    call is repeated an hour later.
    """
    now = deps.clock.now()
    maintenance = deps.maintenance.load_maintenance() or RevisionMaintenance(now)
    if now < maintenance.next_at or not deps.maintenance.save_maintenance(
        replace(maintenance, next_at=now + _INTERVAL)
    ):
        return 0
    maintenance = replace(maintenance, next_at=now + _INTERVAL, version=maintenance.version + 1)
    try:
        return _clean(maintenance, now, has_time, deps)
    except PortError as error:
        deps.log.decided("postponed", reason=f"cleaning derived revisions: {error}")
        return 0


def _clean(
    maintenance: RevisionMaintenance, now: datetime, has_time: Callable[[], bool], deps: MaintenanceDependencies
) -> int:
    grants = deps.limits.task_definitions
    families = [each for each in deps.registry.list_families() if grants.has_family(source_family(each))]
    used = _families_in_use(now, has_time, deps) if families else frozenset()
    if used is None:
        deps.log.decided("postponed", reason="cleaning derived revisions: no time to look at every open job")
        return 0
    unused_since = {family: maintenance.unused_since.get(family, now) for family in families if family not in used}
    old = sorted(family for family, since in unused_since.items() if now - since >= _KEPT_UNUSED)[:_MAX_FAMILIES]
    # Saved first: if a call below fails, the next one continues.
    deps.maintenance.save_maintenance(replace(maintenance, unused_since=unused_since))
    count = 0
    for family in old:
        count += bool(deps.registry.deregister_family(family))
        deps.log.decided("deregistered", reason=f"{family} was used by no open job for {_KEPT_UNUSED}")
    return count


def _families_in_use(
    now: datetime, has_time: Callable[[], bool], deps: MaintenanceDependencies
) -> frozenset[str] | None:
    """Return the families that the attempts of open jobs run, None if there are too many jobs to load in time."""
    # Every open job has a `wake_at`.
    open_jobs = deps.jobs.load_due(now + _FAR_AHEAD, _MAX_JOBS + 1)
    if len(open_jobs) > _MAX_JOBS:
        return None
    used = set()
    for job_id in open_jobs:
        if not has_time():
            return None
        job = deps.jobs.load_job(job_id)
        arn = job.attempt.placement.revision_arn if job is not None and job.attempt is not None else None
        parsed = parse_revision_arn(arn) if arn else None
        used |= {parsed[0]} if parsed else set()
    return frozenset(used)
