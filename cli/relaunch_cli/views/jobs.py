"""Jobs, attempts and timelines as tables that fit 80 columns."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.jobs.job import Attempt, Job, JobSummary, TimelineEntry
from relaunch.core.lifecycle.explanation import Explanation
from relaunch.ports import EventRecord, JobHistory
from relaunch_cli.views.formats import (
    present_cost_usd,
    shorten_arns,
    write_cost,
    write_count,
    write_moment,
    write_price,
    write_span,
    write_time,
)
from relaunch_cli.views.screen import plain_table, state_text

WIDE = 110


def render_jobs(jobs: Iterable[JobSummary], now: datetime, width: int) -> Table:
    """Return the table of `ps`; a wide terminal also gets the reasons."""
    is_wide = width >= WIDE
    table = plain_table("JOB", "STATE", "ATT", "MACHINE", "AGE", "COST", *(("REASON",) if is_wide else ()))
    for column in (2, 4, 5):
        table.columns[column].justify = "right"
    for column in (1, 2, 3, 4, 5):
        table.columns[column].no_wrap = True
    if is_wide:
        table.expand, reasons = True, table.columns[-1]
        reasons.no_wrap, reasons.overflow, reasons.ratio = True, "ellipsis", 1
    for job in jobs:
        note = job.waiting.reason.value if job.waiting else ""
        cells: list[RenderableType] = [
            job.job_id,
            state_text(job.state.value, note),
            str(job.attempt_number or "-"),
            f"{job.offering.instance_type} {job.offering.purchase}" if job.offering else "-",
            write_span(now - job.accepted_at),
            write_cost(job.cost_usd),
        ]
        table.add_row(*cells, *((Text(job.reason or job.trigger),) if is_wide else ()))
    return table


def render_job(history: JobHistory, explanation: Explanation, now: datetime) -> RenderableType:
    """Return what `show` prints: the job's facts and its attempts."""
    job = history.job
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(job, explanation, now):
        facts.add_row(name, value)
    return Group(facts, *_attempts(history.attempts, now))


def _facts(job: Job, explanation: Explanation, now: datetime) -> list[tuple[str, RenderableType]]:
    revision = f"{job.revision.family}:{job.revision.revision}"
    facts: list[tuple[str, RenderableType]] = [
        ("Job", job.job_id),
        ("State", state_text(job.state.value, job.waiting.reason.value if job.waiting else "")),
        ("Definition", f"{job.definition.name}, task definition {revision}"),
        ("Started by", Text(job.trigger.summary)),
        ("Accepted", write_moment(job.accepted_at, now)),
        ("Ran", _ran(job, now)),
    ]
    if job.inputs:
        facts.append(("Inputs", Text("\n".join(f"{name}={value}" for name, value in job.inputs.items()))))
    if job.ended_at:
        facts.append(("Ended", write_moment(job.ended_at, now)))
    if job.reason:
        facts.append(("Reason", Text(job.reason)))
    if explanation.waiting_for:
        facts.append(("Waits for", Text(explanation.waiting_for)))
    return facts


def _ran(job: Job, now: datetime) -> str:
    spent = present_cost_usd(job, now)
    counts = f"{write_count(job.interruptions, 'interruption')}, {write_count(job.failures, 'failure')}"
    return f"{write_span(job.run_time(now))}, {counts}" + (f", about {write_cost(spent)}" if spent else "")


def _attempts(attempts: Sequence[Attempt], now: datetime) -> list[RenderableType]:
    if not attempts:
        return []
    table = plain_table("ATT", "MACHINE", "ZONE", "$/H", "STARTED", "RAN", "ENDED")
    for column in (1, 2, 3, 4, 5):
        table.columns[column].no_wrap = True
    for attempt in attempts:
        offering = attempt.placement.offering
        started, stop = attempt.started_at, attempt.stop
        ran = write_span((stop.at if stop else now) - started) if started else "-"
        table.add_row(
            str(attempt.number),
            f"{offering.instance_type} {offering.purchase}",
            attempt.zone or offering.zone or "?",
            write_price(attempt.placement.price_usd_per_hour),
            write_time(started, now) if started else "-",
            ran,
            _ending(attempt),
        )
    return [Text(), table]


def _ending(attempt: Attempt) -> str:
    stop = attempt.stop
    if stop is None:
        return attempt.task_status or "launching"
    return f"{stop.kind}, exit code {stop.exit_code}" if stop.exit_code is not None else stop.kind.value


def render_explanation(explanation: Explanation, now: datetime) -> RenderableType:
    """Return the sentences of `explain`."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    if explanation.waiting_for:
        grid.add_row("Waits for", Text(explanation.waiting_for))
    if explanation.since:
        grid.add_row("Since", write_moment(explanation.since, now))
    grid.add_row("Next", Text(explanation.next_step))
    if explanation.next_at:
        grid.add_row("At the latest", write_moment(explanation.next_at, now))
    for index, advice in enumerate(explanation.advice):
        grid.add_row("" if index else "You could", Text(advice))
    return grid


def render_timeline(timeline: Iterable[TimelineEntry], now: datetime) -> Table:
    """Return every transition of a job, oldest first."""
    table = plain_table("WHEN (UTC)", "ATT", "STATE", "WHAT")
    for column in (0, 1, 2):
        table.columns[column].no_wrap = True
    for entry in timeline:
        table.add_row(
            write_time(entry.at, now),
            str(entry.attempt_number or ""),
            state_text(entry.state.value),
            describe_entry(entry),
        )
    return table


def describe_entry(entry: TimelineEntry) -> Text:
    """Return the event of a timeline entry with its detail."""
    return Text(entry.event).append(f": {shorten_arns(entry.detail)}" if entry.detail else "", style="dim")


def render_events(events: Iterable[EventRecord], now: datetime) -> Table:
    """Return what became of the events that arrived."""
    table = plain_table("WHEN (UTC)", "SOURCE", "WHAT CAME OF IT")
    table.columns[0].no_wrap = True
    for event in events:
        what = Text(event.outcome).append(f"\n{event.identity}", style="dim")
        table.add_row(write_time(event.at, now), event.source, what)
    return table
