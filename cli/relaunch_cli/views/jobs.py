"""Tables of jobs, attempts, timelines and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.jobs.cost import attempt_price, cost_so_far, machine_cost
from relaunch.core.jobs.state import CostBasis
from relaunch.core.revisions.revision import find_stop_timeout
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import (
    format_cost,
    format_count,
    format_duration,
    format_machine,
    format_price,
    format_time,
    format_timestamp,
    shorten_task_arns,
)
from relaunch_cli.views.screen import state_text
from relaunch_cli.views.selection import SelectionOptions, describe_choice, render_selection
from relaunch_cli.views.table import PlainTable, key_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from relaunch.core.definitions.ownership import Owner
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.job import Job, TimelineEntry
    from relaunch.core.jobs.state import MachineCost
    from relaunch.core.lifecycle.wait_explanation import Explanation
    from relaunch.core.triggers.waiting_jobs import WaitingJobs
    from relaunch.ports import EventRecord, JobHistory, StoredSelection
    from relaunch_cli.views.table import Cell

    Rows = Sequence[tuple[str, Cell]]

# What one attempt usually has.
_LAST_ENTRIES = 6
# Less is rounding.
_LEAST_USD = 0.000_05


def render_job(
    history: JobHistory, explanation: Explanation, now: datetime, saved: Rows, owner: Owner | None = None
) -> RenderableType:
    """Return what `show` prints: the job, its attempts, what it has `saved`, and the owner of its definition."""
    table = key_values()
    for name, value in (*_job_rows(history.job, explanation, now, owner), *saved):
        table.add_row(name, value)
    _add_rows(table, "Machine", explanation.machines)
    return Group(table, *_attempts(history.attempts, now))


def _job_rows(job: Job, explanation: Explanation, now: datetime, owner: Owner | None) -> list[tuple[str, Cell]]:
    revision = f"{job.revision.family}:{job.revision.revision}"
    rows: list[tuple[str, Cell]] = [
        ("Job", job.job_id),
        ("State", state_text(job.state.value, job.waiting.reason.value if job.waiting else "")),
        ("Definition", f"{job.definition.name}, task definition {revision}"),
        ("Started by", job.trigger.summary),
        ("Accepted", format_timestamp(job.accepted_at, now)),
        ("Ran", _ran(job, now)),
    ]
    rows += [(name, Text(cost)) for name, cost in _costs(job, now)]
    if job.reserved.usd:
        rows.append(("Budgets", Text(f"spent or reserved: {_describe_reserved(job)}")))
    if owner:
        rows.insert(3, ("Owner", Text(f"{owner}, applied by {owner.caller}")))
    names = ["Inputs", *[""] * len(job.inputs)]
    rows += [(name, f"{each}={value}") for name, (each, value) in zip(names, job.inputs.items(), strict=False)]
    if job.ended_at:
        rows.append(("Ended", format_timestamp(job.ended_at, now)))
    # A wait says why it came about, and mostly in the same words.
    if job.reason and one_line(job.reason) not in one_line(explanation.waiting_for):
        rows.append(("Reason", Text(one_line(job.reason))))
    if explanation.waiting_for:
        rows.append(("Waits for", Text(explanation.waiting_for)))
    return rows


def _ran(job: Job, now: datetime) -> str:
    counts = f"{format_count(job.totals.interruptions, 'interruption')}, {format_count(job.totals.failures, 'failure')}"
    return f"{format_duration(job.run_time(now))}, {counts}{_spent(job, now)}"


def _costs(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield what a job pays for machines of our own, and the rest of its cost, which has another rule."""
    machines = machine_cost(job, now)
    if machines.usd:
        yield "Machines", describe_machine_cost(machines)
    elsewhere = cost_so_far(job, now)[0] - machines.usd
    if elsewhere > _LEAST_USD:
        yield "Elsewhere", f"{format_cost(elsewhere)}, the running time of tasks on machines that are not the stack's"


def _describe_reserved(job: Job) -> str:
    return ", ".join(f"${usd:,.2f} of {scope}" for scope, usd in sorted(job.reserved.usd.items()))


def describe_machine_cost(cost: MachineCost) -> str:
    """Describe what machines of our own cost a job, how much of it without training, and what that saves."""
    if not cost.usd:
        return ""
    saving = cost.saving
    text = f"{format_cost(cost.usd)}, of which {format_cost(cost.idle_usd)} without training (boot, pull, save, idle)"
    if saving is None or saving <= 0:
        return text
    return f"{text}; {saving:.0%} less than {format_cost(cost.on_demand_usd)} on demand for the same time"


def _spent(job: Job, now: datetime) -> str:
    usd, basis = cost_so_far(job, now)
    if basis is CostBasis.UNKNOWN:
        return ", at an unknown cost"
    if usd < 0.01:
        return ", less than $0.01" if usd else ""
    return f", {'up to' if basis is CostBasis.LIMIT else 'about'} {format_cost(usd)}"


def format_attempt_price(attempt: Attempt) -> str:
    """Format the price per hour of an attempt: `<=` before an upper limit, `?` if it is not known."""
    price = attempt_price(attempt)
    limit = "<=" if price.basis is CostBasis.LIMIT else ""
    return limit + format_price(price.usd_per_hour or None)


def _attempts(attempts: Sequence[Attempt], now: datetime) -> list[RenderableType]:
    if not attempts:
        return []
    table = PlainTable(
        *("ATT", "MACHINE", "ZONE", "$/H", "STARTED", "RAN", "ENDED"),
        right=("ATT", "$/H", "RAN"),
        optional=("STARTED", "ZONE", "$/H"),
        prose="wrapped",
    )
    for attempt in attempts:
        offering = attempt.placement.offering
        started = attempt.started_at
        ran = attempt.run_time(now)
        table.add_row(
            str(attempt.number),
            format_machines(attempt),
            attempt.zone or offering.zone or "?",
            format_attempt_price(attempt),
            format_time(started, now) if started else "-",
            "-" if ran is None else format_duration(ran),
            _ending(attempt),
        )
    return [Text(), table]


def instances_of(attempt: Attempt) -> str:
    """Return the EC2 instances of an attempt in the order of its ranks, empty as long as none is known."""
    placement = attempt.placement
    if len(placement.ranks) == 1:
        return attempt.instance_id or placement.instance_id or ""
    return ", ".join(filter(None, (each.instance_id for each in placement.ranks)))


def format_machines(attempt: Attempt) -> str:
    """Return the machine of an attempt, with their number if it has several: `4x g5.12xlarge spot`."""
    count = len(attempt.placement.ranks)
    return f"{count}x " * (count > 1) + format_machine(attempt.placement.offering)


def _ending(attempt: Attempt) -> str:
    stop = attempt.stop
    if stop is None:
        return attempt.task_status or "launching"
    return f"{stop.kind}, exit code {stop.exit_code}" if stop.exit_code is not None else stop.kind.value


def render_full_explanation(
    history: JobHistory,
    explanation: Explanation,
    now: datetime,
    saved: Rows,
    waiting: WaitingJobs | None = None,
    *,
    is_full: bool,
) -> RenderableType:
    """Return what `explain` prints; `saved` is what the job has saved, `waiting` are the jobs that wait, if it does.

    `is_full`: with the whole timeline, and with every selection and rejection, instead of the last ones.
    """
    job = history.job
    shown = history.timeline if is_full else _without_steps(history.timeline)[-_LAST_ENTRIES:]
    left_out = len(history.timeline) - len(shown)
    parts: list[RenderableType] = [
        Text(job.job_id, style="bold").append("  ").append(state_text(job.state.value)),
        Text(),
        _render_explanation(job, explanation, now, saved, waiting),
        Text(),
        render_timeline(shown, now),
    ]
    if left_out:
        parts.append(Text(f"and {format_count(left_out, 'other event')}: see --full", style="dim"))
    selections = history.selections if is_full else history.selections[-1:]
    for stored in selections:
        parts += [*_selection_parts(stored, now, is_full=is_full), *_choice_of_fleet(stored, history.attempts)]
    return Group(*parts)


def _without_steps(timeline: Sequence[TimelineEntry]) -> Sequence[TimelineEntry]:
    """Return the timeline without the steps of a start that is over, and of a stop that is."""
    reached = {(entry.attempt_number, entry.event) for entry in timeline}
    return [
        entry for entry in timeline if not any((entry.attempt_number, each) in reached for each in _ends(entry.event))
    ]


def _ends(event: str) -> tuple[str, ...]:
    """Return the events of an attempt of which an event is a step; none for what says something by itself."""
    if event == "task stopping":
        return "task stopped", "stopped"
    return ("running",) if event == "task placed" or event.removeprefix("task ").isupper() else ()


def _choice_of_fleet(stored: StoredSelection, attempts: Iterable[Attempt]) -> list[RenderableType]:
    """Return what EC2 Fleet launched where that is not the first of the selection."""
    first = next((row for row in stored.rows if row["verdict"] == "kept"), None)
    attempt = next((each for each in attempts if each.number == stored.attempt_number), None)
    if first is None or attempt is None or not attempt.placement.machine_id:
        return []
    offering = attempt.placement.offering
    if (offering.instance_type, offering.zone) == (first["instance_type"], first["zone"]):
        return []
    return [Text(f"it ran on {offering}: EC2 chooses among what is expected to cost about the same")]


def _selection_parts(stored: StoredSelection, now: datetime, *, is_full: bool) -> list[RenderableType]:
    title = f"Selection of attempt {stored.attempt_number}"
    if stored.placement_number > 1:
        title += f", placement try {stored.placement_number}"
    parts: list[RenderableType] = [Text(f"\n{title}, {format_timestamp(stored.selected_at, now)}", style="bold")]
    choice = describe_choice(stored.rows)
    if is_full or not choice:
        options = SelectionOptions(has_rejected=True, is_full=is_full, full_option="--full")
        return [*parts, render_selection(stored.rows, stored.filter_counts, options)]
    kept = sum(row["verdict"] == "kept" for row in stored.rows)
    others = f"first of {format_count(kept, 'offering')}; {len(stored.rows) - kept} left out: see --full"
    return [*parts, Text(choice), Text(others, style="dim")]


def _render_explanation(
    job: Job, explanation: Explanation, now: datetime, saved: Rows, waiting: WaitingJobs | None
) -> RenderableType:
    table = key_values()
    table.add_row("Ran", _ran(job, now))
    for name, value in saved:
        table.add_row(name, value)
    if explanation.waiting_for:
        table.add_row("Waits for", Text(explanation.waiting_for))
    _add_rows(table, "Machine", explanation.machines)
    if explanation.since:
        table.add_row("Since", format_timestamp(explanation.since, now))
    table.add_row("Next", Text(explanation.next_step))
    if explanation.next_at:
        name = "Looked at by" if explanation.is_look else "At the latest"
        table.add_row(name, format_timestamp(explanation.next_at, now))
    if waiting is not None:
        table.add_row("Jobs waiting", Text(str(waiting)))
    if not job.state.is_final and (stop_timeout := find_stop_timeout(job.definition, job.revision)):
        table.add_row("When stopped", Text(str(stop_timeout)))
    _add_rows(table, "Advice", explanation.advice)
    return table


def _add_rows(table: PlainTable, name: str, values: Iterable[str]) -> None:
    """Add values of one name, which is shown beside the first one."""
    for index, value in enumerate(values):
        table.add_row("" if index else name, value)


def render_timeline(timeline: Iterable[TimelineEntry], now: datetime) -> PlainTable:
    """Return transitions of a job, oldest first."""
    table = PlainTable("WHEN (UTC)", "ATT", "STATE", "EVENT", right=("ATT",), optional=("ATT",), prose="wrapped")
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


def render_events(events: Iterable[EventRecord], now: datetime) -> PlainTable:
    """Return the table of `events`: each with its outcome."""
    table = PlainTable("WHEN (UTC)", "SOURCE", "OUTCOME", prose="wrapped")
    for event in events:
        outcome = Text(one_line(event.outcome)).append(f"  {one_line(event.identity)}", style="dim")
        table.add_row(format_time(event.at, now), event.source, outcome)
    return table
