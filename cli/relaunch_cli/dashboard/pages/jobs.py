"""The list of jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from relaunch.adapters.definition_file.values import parse_duration
from relaunch.core.jobs.state import FINAL_STATES, CostBasis, JobState, JobSummary, NotedProgress
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.dashboard.job_lists import JobFilter, JobPage
from relaunch_cli.errors import CommandError
from relaunch_cli.views.formatting import format_cost, format_duration, format_machine, format_rate

_OPEN = tuple(each.value for each in JobState if each not in FINAL_STATES)
GROUPS: Mapping[str, tuple[str, ...]] = {
    "open": _OPEN,
    "ended": tuple(each.value for each in FINAL_STATES),
}
"""What `state` may name beside single states."""


@dataclass(frozen=True)
class JobRow:
    """A job in the list."""

    job: JobSummary
    waits_for: str
    machine: str
    zone: str
    percent: float | None
    progress: str
    finishes_at: datetime | None
    stalled: str
    cost: str
    saving: str
    link: str


def read_filter(request: Request, now: datetime) -> JobFilter:
    """Return the filter in the address.

    Raises:
        CommandError: a state or a time is none.
    """
    states: set[str] = set()
    for name in filter(None, request.query.get("state", ())):
        if name.lower() not in GROUPS and name.upper() not in JobState.__members__:
            raise CommandError(f"there is no state {name!r}", f"the states are {', '.join(JobState)}")
        states |= set(GROUPS.get(name.lower(), (name.upper(),)))
    since = request.parameter("since")
    try:
        after = now - parse_duration(since) if since else None
    except (ValueError, OverflowError) as error:
        raise CommandError(f"since: {error}", "give one like 30m, 12h or 7d") from error
    parameter = request.parameter
    return JobFilter(frozenset(states), parameter("definition"), parameter("repository"), after, parameter("cursor"))


def jobs_values(request: Request, page: JobPage, wanted: JobFilter, now: datetime) -> Mapping[str, object]:
    """Return the values of the template `jobs.html`."""
    rows = [_row(job, now) for job in page.jobs]
    given = {name: request.parameter(name) for name in ("definition", "repository", "since")}
    kept = [(name, value) for name, value in given.items() if value]
    kept += [("state", each) for each in request.query.get("state", ()) if each]
    return {
        "open_rows": [row for row in rows if not row.job.state.is_final],
        "ended_rows": [row for row in rows if row.job.state.is_final],
        "wanted": wanted,
        "given": given,
        "chosen": [each.lower() for each in request.query.get("state", ())],
        "states": [*GROUPS, *(each.value.lower() for each in JobState)],
        "older": f"/?{urlencode([*kept, ('cursor', page.cursor)])}" if page.cursor else "",
        "newest": f"/?{urlencode(kept)}" if wanted.cursor else "",
        "left_open": page.left_open,
        "has_read": page.has_read,
        "is_filtered": bool(kept),
        "usd_per_hour": _sum_rates(page.jobs),
    }


def _sum_rates(jobs: Iterable[JobSummary]) -> float:
    """Return what the jobs cost an hour now: machines of our own that are not gone, and tasks elsewhere that run."""
    total = 0.0
    for job in jobs:
        own = sum(each.usd_per_hour for each in job.open_charges if each.until is None)
        elsewhere = job.running.usd_per_hour if job.running is not None and not job.running.machine_id else 0.0
        total += own + elsewhere
    return total


def _row(job: JobSummary, now: datetime) -> JobRow:
    usd, basis = job.cost_so_far(now)
    saving = job.machine_cost(now).saving
    noted = job.noted.in_state(job.state) if job.noted else None
    stalled = noted.stalled_since if noted is not None else None
    return JobRow(
        job,
        _describe_wait(job),
        format_machine(job.offering) if job.offering else "",
        (job.offering.zone or "") if job.offering else "",
        min(100 * noted.step / noted.total_steps, 100.0) if noted is not None and noted.total_steps else None,
        _describe_progress(noted) if noted is not None else "",
        noted.finishes_at if noted is not None else None,
        f"saves nothing for {format_duration(now - stalled)}" if stalled is not None else "",
        "" if basis is CostBasis.PRICE and usd <= 0 else format_cost(usd, basis),
        f"{saving:.0%} saved" if saving is not None and saving > 0 else "",
        job_link(job.job_id),
    )


def _describe_progress(noted: NotedProgress) -> str:
    steps = f"{noted.step:,} of {noted.total_steps:,}" if noted.total_steps else f"step {noted.step:,}"
    return f"{steps}, {format_rate(noted.steps_per_second)}" if noted.steps_per_second else steps


def _describe_wait(job: JobSummary) -> str:
    if job.waiting is None:
        return ""
    return f"{job.waiting.reason}: {job.waiting.detail}" if job.waiting.detail else job.waiting.reason.value


def job_link(job_id: str) -> str:
    """Return the address of the page of a job."""
    return f"/jobs/{job_id}"
