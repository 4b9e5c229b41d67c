"""The table of jobs; `relaunch ps` imports no more of the views of jobs than this."""

from __future__ import annotations

import math
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from relaunch.core.jobs.state import JobState
from relaunch_cli.views.formatting import format_cost, format_duration, format_machine, shorten_reason
from relaunch_cli.views.screen import state_text
from relaunch_cli.views.table import PlainTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from relaunch.core.jobs.state import JobSummary

_HOUR = 60
_NO_PLACES: Mapping[str, tuple[str, str]] = MappingProxyType({})


def render_jobs(
    jobs: Iterable[JobSummary], now: datetime, places: Mapping[str, tuple[str, str]] = _NO_PLACES
) -> PlainTable:
    """Return the table of `ps`; `places` are type and zone of the machines that jobs wait for, by ID."""
    jobs = list(jobs)
    has_progress = any(job.noted for job in jobs)
    # Why a job failed comes before who started it.
    least = ("STARTED BY", "REASON") if any(job.reason for job in jobs) else ("REASON", "STARTED BY")
    table = PlainTable(
        *(
            "JOB",
            "STATE",
            "SINCE",
            "ATT",
            "MACHINE",
            "ZONE",
            *(("PROGRESS",) if has_progress else ()),
            "COST",
            "STARTED BY",
            "REASON",
        ),
        right=("SINCE", "ATT", "COST"),
        optional=(*least, "ZONE", "ATT", "SINCE", "MACHINE", "COST", *(("PROGRESS",) if has_progress else ())),
        prose="cut",
    )
    for job in jobs:
        table.add_row(
            job.job_id,
            state_text(job.state.value, job.waiting.reason.value if job.waiting else ""),
            format_duration(now - job.state_since) if job.state_since else "-",
            str(job.attempt_number or "-"),
            *(places.get(job.machine_id) or _last_place(job)),
            *((_progress(job, now),) if has_progress else ()),
            format_cost(*job.cost_so_far(now)),
            job.started_by or job.trigger or "-",
            shorten_reason(job.reason),
        )
    return table


def _progress(job: JobSummary, now: datetime) -> str:
    """Return how far a training was at the last look, and when it will be done: `120/200 · 8m left`."""
    noted = job.noted
    if noted is None or job.state is JobState.SUCCEEDED:
        return "-"
    step = f"{noted.step}/{noted.total_steps}" if noted.total_steps else f"step {noted.step}"
    if job.state is not JobState.RUNNING:
        return step
    if noted.stalled_since is not None:
        return f"{step} · saves nothing for {_roughly(now - noted.stalled_since)}"
    if noted.finishes_at is None:
        return step
    return f"{step} · {_roughly(noted.finishes_at - now)} left" if noted.finishes_at > now else f"{step} · due"


def _roughly(duration: timedelta) -> str:
    """Format a duration without its seconds: `8m`, `2h05m`."""
    minutes = max(math.ceil(duration / timedelta(minutes=1)), 0)
    return f"{minutes}m" if minutes < _HOUR else format_duration(timedelta(minutes=minutes))


def _last_place(job: JobSummary) -> tuple[str, str]:
    """Return type and zone of the machine of a job's last placement."""
    if job.offering is None:
        return "-", "-"
    return format_machine(job.offering), job.offering.zone or "-"
