"""How the tests bring a job step by step to where they look at it."""

from fakes.builders import make_offering, make_selection
from relaunch.core.jobs.effects import AdmitWaiting, RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import JobEvent, OfferingChosen
from relaunch.core.lifecycle.table import decide
from unit.core.lifecycle.table_matrix import SOON, seen_stopped

LIMITS = StackLimits()
LAUNCH = RequestLaunch()
ADMIT = AdmitWaiting()


def decided(job: Job, event: JobEvent, now=SOON) -> Decision:
    return decide(job, event, now, LIMITS)


def after(job: Job, *events: JobEvent, now=SOON) -> Job:
    for event in events:
        job = decided(job, event, now).job
    return job


def stopped(job: Job, exit_code: int | None = None, at=SOON, **fields) -> Job:
    return decided(job, seen_stopped(exit_code, at, **fields), at).job


def chosen(resume_uri: str | None = None, **fields) -> OfferingChosen:
    return OfferingChosen(make_offering(**fields), make_selection(), resume_uri)
