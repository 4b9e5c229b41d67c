"""The page of one job."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.cost import attempt_price, cost_so_far, machine_cost
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.explanation import time_left
from relaunch_cli.dashboard.drawings.loss_curve import make_loss_curve
from relaunch_cli.dashboard.drawings.timeline import make_timeline
from relaunch_cli.dashboard.job_reader import JobView
from relaunch_cli.dashboard.pages.selection import selection_views
from relaunch_cli.views.formatting import format_cost, format_duration
from relaunch_cli.views.job_training import links_of, saved_rows
from relaunch_cli.views.jobs import (
    describe_entry,
    describe_machine_cost,
    format_attempt_price,
    format_machines,
    instances_of,
)


def job_values(view: JobView) -> Mapping[str, object]:
    """Return the values of the template `job.html`."""
    job = view.job
    now = view.now
    rows = saved_rows(job, view.saved, view.training, now)
    links = links_of(job)
    return {
        "job": job,
        "explanation": view.explanation,
        "left": time_left(view.explanation, now),
        "training": view.training,
        "percent": _percent(view),
        "done": _done(view),
        "cost": _cost(view),
        "facts": [*_facts(job), *((name, text.plain) for name, text in rows if name not in links)],
        "links": links,
        "console_links": view.console_links,
        "timeline": make_timeline(view.history, view.starts, view.machines, view.training, now, view.saved.newest),
        "curve": make_loss_curve(view.history, view.training, view.saved.newest),
        "attempts": [_attempt(each, view) for each in reversed(view.history.attempts)],
        "selections": selection_views(view.history),
        "entries": [(entry, describe_entry(entry).plain) for entry in reversed(view.history.timeline)],
        "summary": _summarize(view),
        "may_cancel": not job.state.is_final and not job.cancel_requested,
        "may_retry": job.state.is_final,
    }


def _percent(view: JobView) -> float | None:
    training = view.training
    if training.step is None or not training.total_steps:
        return None
    return min(100 * training.step / training.total_steps, 100.0)


def _done(view: JobView) -> str:
    """Return when the job is done, in words."""
    job = view.job
    training = view.training
    if job.ended_at is not None:
        return f"it has ended: {job.state.value}"
    if job.state is not JobState.RUNNING:
        return "not known while nothing trains"
    if training.finishes_at is None:
        if training.total_steps is not None:
            return "not known yet: how fast this attempt is, its next steps show"
        return "not known: no checkpoint, and no line of its log, says how many steps there are"
    left = training.finishes_at - view.now
    return f"in about {format_duration(left)}" if left > timedelta(0) else "any moment now"


def _cost(view: JobView) -> Mapping[str, object]:
    job = view.job
    now = view.now
    usd, basis = cost_so_far(job, now)
    machines = machine_cost(job, now)
    attempt = job.attempt
    is_paid = attempt is not None and attempt.started_at is not None and attempt.stop is None
    return {
        "usd": "nothing yet" if basis is CostBasis.PRICE and usd <= 0 else format_cost(usd, basis),
        "detail": describe_machine_cost(machines),
        "saving": machines.saving if machines.saving is not None and machines.saving > 0 else None,
        "per_hour": format_attempt_price(attempt) if attempt is not None and is_paid else "",
        "reserved": [(scope, f"${usd:,.2f}") for scope, usd in sorted(job.reserved.usd.items())],
    }


def _facts(job: Job) -> Iterable[tuple[str, str]]:
    yield "Task definition", f"{job.revision.family}:{job.revision.revision}" if job.revision.family else ""
    yield "Image", ":".join(job.image) if job.image else ""
    yield "Concurrency group", job.group.name or ""
    for name, value in job.inputs.items():
        yield f"Input {name}", value


def _attempt(attempt: Attempt, view: JobView) -> Mapping[str, object]:
    stop = attempt.stop
    ran = attempt.run_time(view.now)
    placement = attempt.placement
    price = attempt_price(attempt)
    return {
        "number": attempt.number,
        "machine": format_machines(attempt),
        "zone": attempt.zone or placement.offering.zone or "",
        "price": format_attempt_price(attempt),
        "started_at": attempt.started_at,
        "ran": "" if ran is None else format_duration(ran),
        "usd": format_cost(ran / timedelta(hours=1) * price.usd_per_hour, price.basis) if ran else "",
        "end": stop.kind.value if stop else "",
        "exit_code": stop.exit_code if stop else None,
        "reason": stop.stopped_reason if stop else attempt.task_status or "launching",
        "resume_uri": placement.resume_uri or "",
        "instance_id": instances_of(attempt),
    }


def _summarize(view: JobView) -> str:
    """Return the situation of a job in one sentence, which is read out when it changes."""
    job = view.job
    if job.state.is_final:
        why = f": {job.reason}" if job.reason else ""
        return f"{job.job_id} is {job.state.value}{why}"
    waits = f", waits for {view.explanation.waiting_for}" if view.explanation.waiting_for else ""
    return f"{job.job_id} is {job.state.value}{waits}"
