"""Tables of jobs, attempts, timelines and events that fit 80 columns."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.jobs.cost import cost_so_far
from relaunch.core.jobs.job import CostBasis
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import (
    format_attempt_price,
    format_cost,
    format_count,
    format_duration,
    format_time,
    format_timestamp,
    shorten_task_arns,
)
from relaunch_cli.views.screen import key_value_table, plain_table, state_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from relaunch.core.definitions.ownership import Owner
    from relaunch.core.jobs.job import Attempt, Job, JobSummary, TimelineEntry
    from relaunch.core.lifecycle.explanation import Explanation
    from relaunch.core.machines.machine import Machine
    from relaunch.core.triggers.waiting_jobs import WaitingJobs
    from relaunch.ports import EventRecord, JobHistory

_WIDE = 110
_NO_MACHINES_BY_ID: Mapping[str, Machine] = MappingProxyType({})


def render_jobs(
    jobs: Iterable[JobSummary], now: datetime, width: int, machines: Mapping[str, Machine] = _NO_MACHINES_BY_ID
) -> Table:
    """Return the table of `ps`; on a wide terminal with zones and reasons; `machines` are those that jobs wait for."""
    is_wide = width >= _WIDE
    headings = ("STATE", "ATT", "MACHINE", "AGE", "COST")
    more = ("REASON",) if is_wide else ()
    table = plain_table("JOB", *headings, *more, no_wrap=headings, right=("ATT", "AGE", "COST"))
    if is_wide:
        table.expand, reasons = True, table.columns[-1]
        reasons.no_wrap, reasons.overflow, reasons.ratio = True, "ellipsis", 1
    for job in jobs:
        note = job.waiting.reason.value if job.waiting else ""
        cells: list[RenderableType] = [
            job.job_id,
            state_text(job.state.value, note),
            str(job.attempt_number or "-"),
            _describe_place(job, machines.get(job.machine_id), has_zone=is_wide),
            format_duration(now - job.accepted_at),
            format_cost(*cost_so_far(job, now)),
        ]
        table.add_row(*cells, *((Text(one_line(job.reason or job.trigger)),) if is_wide else ()))
    return table


def _describe_place(job: JobSummary, awaited: Machine | None, *, has_zone: bool) -> str:
    """Return the machine that the job waits for, else that of its last placement."""
    if awaited is not None:
        from relaunch_cli.views.machines import short_offering

        return short_offering(awaited, has_zone=has_zone)
    if job.offering is None:
        return "-"
    return str(job.offering) if has_zone else f"{job.offering.instance_type} {job.offering.purchase}"


def render_job(
    history: JobHistory, explanation: Explanation, now: datetime, owner: Owner | None = None
) -> RenderableType:
    """Return what `show` prints: the job, its attempts, and the owner of its definition."""
    table = key_value_table()
    for name, value in _job_rows(history.job, explanation, now, owner):
        table.add_row(name, value)
    _add_rows(table, "Machine", explanation.machines)
    return Group(table, *_attempts(history.attempts, now))


def _job_rows(
    job: Job, explanation: Explanation, now: datetime, owner: Owner | None
) -> list[tuple[str, RenderableType]]:
    revision = f"{job.revision.family}:{job.revision.revision}"
    rows: list[tuple[str, RenderableType]] = [
        ("Job", job.job_id),
        ("State", state_text(job.state.value, job.waiting.reason.value if job.waiting else "")),
        ("Definition", f"{job.definition.name}, task definition {revision}"),
        ("Started by", Text(one_line(job.trigger.summary))),
        ("Accepted", format_timestamp(job.accepted_at, now)),
        ("Ran", _ran(job, now)),
    ]
    if owner:
        rows.insert(3, ("Owner", Text(f"{owner}, applied by {owner.caller}")))
    if job.inputs:
        rows.append(("Inputs", Text("\n".join(f"{name}={one_line(value)}" for name, value in job.inputs.items()))))
    if job.ended_at:
        rows.append(("Ended", format_timestamp(job.ended_at, now)))
    if job.reason:
        rows.append(("Reason", Text(one_line(job.reason))))
    if explanation.waiting_for:
        rows.append(("Waits for", Text(explanation.waiting_for)))
    return rows


def _ran(job: Job, now: datetime) -> str:
    counts = f"{format_count(job.interruptions, 'interruption')}, {format_count(job.failures, 'failure')}"
    return f"{format_duration(job.run_time(now))}, {counts}{_spent(job, now)}"


def _spent(job: Job, now: datetime) -> str:
    usd, basis = cost_so_far(job, now)
    if basis is CostBasis.UNKNOWN:
        return ", at an unknown cost"
    about = "up to" if basis is CostBasis.LIMIT else "about"
    return f", {about} {format_cost(usd)}" if usd else ""


def _attempts(attempts: Sequence[Attempt], now: datetime) -> list[RenderableType]:
    if not attempts:
        return []
    headings = ("MACHINE", "ZONE", "$/H", "STARTED", "RAN")
    table = plain_table("ATT", *headings, "ENDED", no_wrap=headings)
    for attempt in attempts:
        offering = attempt.placement.offering
        started, stop = attempt.started_at, attempt.stop
        ran = format_duration((stop.at if stop else now) - started) if started else "-"
        table.add_row(
            str(attempt.number),
            f"{offering.instance_type} {offering.purchase}",
            attempt.zone or offering.zone or "?",
            format_attempt_price(attempt),
            format_time(started, now) if started else "-",
            ran,
            _ending(attempt),
        )
    return [Text(), table]


def _ending(attempt: Attempt) -> str:
    stop = attempt.stop
    if stop is None:
        return attempt.task_status or "launching"
    return f"{stop.kind}, exit code {stop.exit_code}" if stop.exit_code is not None else stop.kind.value


def render_full_explanation(
    history: JobHistory,
    explanation: Explanation,
    now: datetime,
    width: int,
    waiting: WaitingJobs | None = None,
    *,
    is_full: bool,
) -> RenderableType:
    """Return what `explain` prints; `waiting` are the jobs that wait, if it does; `is_full` names every rejection."""
    from relaunch_cli.views.selection import render_selection

    job = history.job
    parts: list[RenderableType] = [
        Text(job.job_id, style="bold").append("  ").append(state_text(job.state.value)),
        Text(),
        _render_explanation(job, explanation, now, waiting),
        Text(),
        render_timeline(history.timeline, now),
    ]
    for stored in history.selections:
        title = f"Selection of attempt {stored.attempt_number}"
        if stored.placement_number > 1:
            title += f", placement try {stored.placement_number}"
        parts.append(Text(f"\n{title}, {format_timestamp(stored.selected_at, now)}", style="bold"))
        parts.append(render_selection(stored.rows, stored.filter_counts, width, is_full=is_full))
    return Group(*parts)


def _render_explanation(
    job: Job, explanation: Explanation, now: datetime, waiting: WaitingJobs | None
) -> RenderableType:
    from relaunch.core.revisions.stop_timeout import find_stop_timeout

    table = key_value_table()
    table.add_row("Ran", _ran(job, now))
    if explanation.waiting_for:
        table.add_row("Waits for", Text(explanation.waiting_for))
    _add_rows(table, "Machine", explanation.machines)
    if explanation.since:
        table.add_row("Since", format_timestamp(explanation.since, now))
    table.add_row("Next", Text(explanation.next_step))
    if explanation.next_at:
        table.add_row("At the latest", format_timestamp(explanation.next_at, now))
    if waiting is not None:
        table.add_row("Jobs waiting", Text(str(waiting)))
    if not job.state.is_final and (stop_timeout := find_stop_timeout(job.definition, job.revision)):
        table.add_row("When stopped", Text(str(stop_timeout)))
    _add_rows(table, "You could", explanation.advice)
    return table


def _add_rows(table: Table, name: str, values: Iterable[str]) -> None:
    """Add values of one name, which is shown beside the first one."""
    for index, value in enumerate(values):
        table.add_row("" if index else name, Text(one_line(value)))


def render_timeline(timeline: Iterable[TimelineEntry], now: datetime) -> Table:
    """Return all transitions of a job, oldest first."""
    headings = ("WHEN (UTC)", "ATT", "STATE")
    table = plain_table(*headings, "EVENT", no_wrap=headings)
    for entry in timeline:
        table.add_row(
            format_time(entry.at, now),
            str(entry.attempt_number or ""),
            state_text(entry.state.value),
            describe_entry(entry),
        )
    return table


def describe_entry(entry: TimelineEntry) -> Text:
    """Return the event of a timeline entry with its detail."""
    return Text(entry.event).append(
        f": {one_line(shorten_task_arns(entry.detail))}" if entry.detail else "", style="dim"
    )


def render_events(events: Iterable[EventRecord], now: datetime) -> Table:
    """Return the table of `events`: each with its outcome."""
    table = plain_table("WHEN (UTC)", "SOURCE", "OUTCOME", no_wrap=("WHEN (UTC)",))
    for event in events:
        outcome = Text(one_line(event.outcome)).append(f"\n{one_line(event.identity)}", style="dim")
        table.add_row(format_time(event.at, now), event.source, outcome)
    return table
