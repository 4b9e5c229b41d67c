"""A training that runs, is paid for, and saves nothing newer: said once, and again only after it has saved.

Nobody stops it for that: an evaluation may be long, and `max_runtime` bounds what it costs.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision, move
from relaunch.core.lifecycle.events import ProgressNoted

STALLED = "saves nothing"
"""The timeline event of a training that has saved nothing newer for longer than that should take."""
RECOVERED = "saves again"
"""The timeline event of one that has saved since."""


def is_further(job: Job, event: ProgressNoted) -> bool:
    """Return whether something is noted that is not known: most looks find the checkpoint of the look before."""
    return job.noted != event.noted


def note(job: Job, event: ProgressNoted, now: datetime, _limits: StackLimits) -> Decision:
    """Keep how far the training is; say if it has stalled, or does no longer."""
    after = replace(job, noted=event.noted)
    was_stalled = job.noted is not None and job.noted.stalled_since is not None
    since = event.noted.stalled_since
    if was_stalled == (since is not None):
        return Decision(after)
    name = RECOVERED if since is None else STALLED
    detail = describe_stall(after) or f"step {event.noted.step:,}"
    return move(after, job.state, now, event=name, detail=detail, wake_at=job.wake_at, effects=job.pending)


def describe_stall(job: Job) -> str:
    """Return that a running training saves nothing newer, and since when; empty if it does."""
    noted = job.noted
    if job.state is not JobState.RUNNING or noted is None or noted.stalled_since is None:
        return ""
    minutes = max(round(noted.interval_seconds / 60), 1)
    return (
        f"nothing newer than step {noted.step:,} was saved since {noted.stalled_since:%Y-%m-%d %H:%M} UTC, and it "
        f"usually saves every {minutes} min"
    )
