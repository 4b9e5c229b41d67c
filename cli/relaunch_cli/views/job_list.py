"""The table of jobs; `relaunch ps` imports no more of the views of jobs than this."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from relaunch_cli.views.formatting import format_cost, format_duration, format_machine, shorten_reason
from relaunch_cli.views.screen import state_text
from relaunch_cli.views.table import PlainTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from relaunch.core.jobs.state import JobSummary

_NO_PLACES: Mapping[str, tuple[str, str]] = MappingProxyType({})


def render_jobs(
    jobs: Iterable[JobSummary], now: datetime, places: Mapping[str, tuple[str, str]] = _NO_PLACES
) -> PlainTable:
    """Return the table of `ps`; `places` are type and zone of the machines that jobs wait for, by ID."""
    jobs = list(jobs)
    # Why a job failed comes before who started it.
    least = ("STARTED BY", "REASON") if any(job.reason for job in jobs) else ("REASON", "STARTED BY")
    table = PlainTable(
        *("JOB", "STATE", "SINCE", "ATT", "MACHINE", "ZONE", "COST", "STARTED BY", "REASON"),
        right=("SINCE", "ATT", "COST"),
        optional=(*least, "ZONE", "ATT", "SINCE", "MACHINE", "COST"),
        prose="cut",
    )
    for job in jobs:
        table.add_row(
            job.job_id,
            state_text(job.state.value, job.waiting.reason.value if job.waiting else ""),
            format_duration(now - job.state_since) if job.state_since else "-",
            str(job.attempt_number or "-"),
            *(places.get(job.machine_id) or _last_place(job)),
            format_cost(*job.cost_so_far(now)),
            job.started_by or job.trigger or "-",
            shorten_reason(job.reason),
        )
    return table


def _last_place(job: JobSummary) -> tuple[str, str]:
    """Return type and zone of the machine of a job's last placement."""
    if job.offering is None:
        return "-", "-"
    return format_machine(job.offering), job.offering.zone or "-"
