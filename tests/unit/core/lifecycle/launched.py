"""How the tests of launching bring a job to where it is launched."""

from datetime import timedelta

from fakes.builders import NOW, make_offering, make_selection
from relaunch.core.jobs.job import AdmitWaiting, Job, RequestLaunch
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.lifecycle.events import JobEvent, LaunchAnswered, OfferingChosen
from relaunch.core.lifecycle.table import decide

SOON = NOW + timedelta(minutes=1)
LIMITS = StackLimits()
LAUNCH = RequestLaunch()
ADMIT = AdmitWaiting()


def after(job: Job, *events: JobEvent, now=SOON) -> Job:
    for event in events:
        job = decide(job, event, now, LIMITS).job
    return job


def chosen(resume_uri: str | None = None, **fields) -> OfferingChosen:
    return OfferingChosen(make_offering(**fields), make_selection(), resume_uri)


def answered(outcome) -> LaunchAnswered:
    return LaunchAnswered(1, 1, outcome)
