"""Jobs and events."""

from collections.abc import Iterable
from datetime import UTC, datetime

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.cost import attempt_price, cost_so_far, machine_cost
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.progress import total_steps
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.jobs.training import TrainingProgress
from relaunch.core.launches.launch_plan import job_checkpoint_uri
from relaunch.core.lifecycle.wait_explanation import Explanation
from relaunch.core.revisions.revision import find_stop_timeout
from relaunch.core.triggers.waiting_jobs import WaitingJobs
from relaunch.ports import EventRecord, JobHistory, StoredSelection
from relaunch_cli.job_checkpoints import JobCheckpoints
from relaunch_cli.job_machines import NO_MACHINES, JobMachines
from relaunch_cli.views.job_training import links_of
from relaunch_cli.views.json_output.job_list import cost_json, machine_cost_json, waiting_json
from relaunch_cli.views.json_output.json_time import JsonObject, json_time
from relaunch_cli.views.json_output.machines import machine_json
from relaunch_cli.views.json_output.values import stop_timeout_json


def job_json(job: Job, now: datetime) -> JsonObject:
    """Return a job of `submit`, `cancel` and `show`; `run_seconds` and `cost_usd` include the running task."""
    return {
        "job_id": job.job_id,
        "definition": job.definition.name,
        "state": job.state.value,
        "state_since": json_time(job.state_since),
        "reason": job.reason,
        "waiting": waiting_json(job.waiting),
        "task_definition": job.revision.arn,
        "inputs": dict(job.inputs),
        "image": ":".join(job.image) if job.image else None,
        "concurrency_group": job.group.name or None,
        "trigger": {"source": job.trigger.source, "summary": job.trigger.summary},
        "attempt": _attempt_json(job.attempt) if job.attempt else None,
        "interruptions": job.totals.interruptions,
        "failures": job.totals.failures,
        "attempts_without_progress": job.progress.attempts_without_progress,
        "run_seconds": job.run_time(now).total_seconds(),
        **cost_json(*cost_so_far(job, now)),
        **machine_cost_json(machine_cost(job, now)),
        "reserved_usd": {scope: round(usd, 6) for scope, usd in sorted(job.reserved.usd.items())},
        "cancel_requested": job.cancel_requested or None,
        "links": links_of(job),
        "accepted_at": json_time(job.accepted_at),
        "ended_at": json_time(job.ended_at),
    }


def history_json(history: JobHistory, now: datetime, machines: JobMachines = NO_MACHINES) -> JsonObject:
    """Return the document of `show`."""
    return {
        **job_json(history.job, now),
        "attempts": [_attempt_json(attempt) for attempt in history.attempts],
        "machines": [machine_json(machine, now) for machine in machines.claimed],
        "failed_machines": [machine_json(machine, now) for machine in machines.failed],
    }


def explanation_json(
    history: JobHistory,
    explanation: Explanation,
    now: datetime,
    waiting: WaitingJobs | None = None,
    machines: JobMachines = NO_MACHINES,
) -> JsonObject:
    """Return the document of `explain`."""
    return {
        **history_json(history, now, machines),
        "explanation": {
            "waiting_for": explanation.waiting_for or None,
            "since": json_time(explanation.since),
            "next_step": explanation.next_step,
            "next_at": json_time(explanation.next_at),
            "advice": list(explanation.advice),
            "jobs_waiting": _jobswaiting_json(waiting),
            "stop_timeout": stop_timeout_json(find_stop_timeout(history.job.definition, history.job.revision)),
        },
        "timeline": [_timeline_entry_json(entry) for entry in history.timeline],
        "selections": [_selection_json(selection) for selection in history.selections],
    }


def checkpoints_json(job: Job, saved: JobCheckpoints) -> JsonObject | None:
    """Return what a job of `show` and `explain` has saved; None if its definition has no checkpoint."""
    if job.definition.checkpoint_uri is None:
        return None
    newest = saved.newest
    return {
        "uri": job_checkpoint_uri(job),
        "total_steps": total_steps(job, newest),
        "newest": {
            "uri": newest.uri,
            "step": newest.step,
            "attempt": newest.attempt,
            "saved_at": json_time(newest.saved_at),
            "loss": newest.reported.loss,
            "metrics": dict(newest.reported.metrics),
            "save_seconds": newest.reported.save_seconds,
            "written_at": json_time(newest.reported.written_at),
        }
        if newest
        else None,
        "problem": saved.problem or None,
        "unusable": list(saved.unusable),
    }


def training_json(job: Job, training: TrainingProgress) -> JsonObject:
    """Return how far the training of a job of `show` and `explain` is; null for what is not known."""
    age = training.checkpoint_age
    risk = training.at_risk
    stalled = job.noted.stalled_since if job.noted is not None and job.state is JobState.RUNNING else None
    return {
        "step": training.step,
        "at": json_time(training.at),
        "total_steps": training.total_steps,
        "loss": training.loss,
        "metrics": dict(training.metrics),
        "steps_per_second": training.steps_per_second,
        "rests_on": training.rests_on or None,
        "finishes_at": json_time(training.finishes_at),
        "checkpoint_age_seconds": None if age is None else age.total_seconds(),
        "at_risk": None if risk is None else {"seconds": risk.time.total_seconds(), "usd": risk.usd},
        "stalled_since": json_time(stalled),
        "series": [
            {"step": each.step, "at": json_time(datetime.fromtimestamp(each.at, UTC)), "loss": each.loss}
            for each in training.series
        ],
    }


def event_json(event: EventRecord) -> JsonObject:
    """Return an event of `events`."""
    return {
        "at": json_time(event.at),
        "source": event.source,
        "identity": event.identity,
        "outcome": event.outcome,
        "job_ids": list(event.job_ids),
    }


def _jobswaiting_json(waiting: WaitingJobs | None) -> JsonObject | None:
    if waiting is None:
        return None
    return {
        "of_definition": waiting.of_definition,
        "limit_of_definition": waiting.limit_of_definition,
        "of_stack": waiting.of_stack,
        "limit_of_stack": waiting.limit_of_stack,
    }


def _attempt_json(attempt: Attempt) -> JsonObject:
    chosen = attempt.placement
    stop = attempt.stop
    price = attempt_price(attempt)
    return {
        "number": attempt.number,
        "placement_try": chosen.number,
        "instance_type": chosen.offering.instance_type,
        "purchase": chosen.offering.purchase.value,
        "zone": attempt.zone or chosen.offering.zone,
        "capacity_provider": chosen.capacity_provider,
        "price_usd_per_hour": price.usd_per_hour or None,
        "is_price_limit": price.basis is CostBasis.LIMIT,
        "task_arn": attempt.task_id,
        "task_status": attempt.task_status or None,
        "instance_id": attempt.instance_id,
        "machine_id": chosen.machine_id or None,
        "ranks": [
            {"instance_id": each.instance_id, "machine_id": each.machine_id, "task_arn": each.task_id or None}
            for each in chosen.ranks
            if chosen.followers
        ],
        "resume_uri": chosen.resume_uri,
        "started_at": json_time(attempt.started_at),
        "warned_at": json_time(attempt.warned_at),
        "stop": None
        if stop is None
        else {
            "kind": stop.kind.value,
            "at": json_time(stop.at),
            "exit_code": stop.exit_code,
            "stop_code": stop.stop_code,
            "stopped_reason": stop.stopped_reason,
        },
    }


def _timeline_entry_json(entry: TimelineEntry) -> JsonObject:
    return {
        "at": json_time(entry.at),
        "state": entry.state.value,
        "event": entry.event,
        "detail": entry.detail,
        "attempt": entry.attempt_number,
    }


def _selection_json(selection: StoredSelection) -> JsonObject:
    return {
        "attempt": selection.attempt_number,
        "placement_try": selection.placement_number,
        "selected_at": json_time(selection.selected_at),
        "filters": filters_json(selection.filter_counts),
        "offerings": [dict(row) for row in selection.rows],
    }


def filters_json(counts: Iterable[tuple[str, int, int]]) -> list[JsonObject]:
    """Return how many offerings there were before and after each filter."""
    return [{"filter": name, "before": before, "after": after} for name, before, after in counts]
