"""The JSON that `--json` prints: stable shapes, described in docs/command.md; keys are added, never renamed.

Times are ISO 8601 in UTC, money is USD, spans are seconds.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, JobDefinition, Trigger
from relaunch.core.jobs.job import Attempt, Job, JobSummary, TimelineEntry, Waiting
from relaunch.core.lifecycle.explanation import Explanation
from relaunch.core.selection.rows import explain_rows
from relaunch.core.selection.selection import Selection, explain_rejection
from relaunch.ports import EventRecord, JobHistory, StoredSelection
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.job_logs import LogLine
from relaunch_cli.views.formats import present_cost_usd

Shape = dict[str, object]


def dump(shape: object, *, indent: int | None = 2) -> str:
    """Write a shape as JSON."""
    return json.dumps(shape, indent=indent, ensure_ascii=False)


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _seconds(span: timedelta | None) -> float | None:
    return span.total_seconds() if span is not None else None


def summary_shape(summary: JobSummary) -> Shape:
    """Return a job of `ps`."""
    return {
        "job_id": summary.job_id,
        "definition": summary.definition,
        "state": summary.state.value,
        "reason": summary.reason,
        "waiting": waiting_shape(summary.waiting),
        "attempt": summary.attempt_number,
        "offering": str(summary.offering) if summary.offering else None,
        "interruptions": summary.interruptions,
        "failures": summary.failures,
        "run_seconds": summary.run_seconds,
        "cost_usd": summary.cost_usd,
        "trigger": summary.trigger,
        "accepted_at": _time(summary.accepted_at),
        "ended_at": _time(summary.ended_at),
    }


def waiting_shape(waiting: Waiting | None) -> Shape | None:
    """Return what a job waits for."""
    if waiting is None:
        return None
    return {
        "for": waiting.reason.value,
        "since": _time(waiting.since),
        "until": _time(waiting.until),
        "detail": waiting.detail,
    }


def job_shape(job: Job, now: datetime) -> Shape:
    """Return a job of `submit`, `cancel` and `show`; `run_seconds` and `cost_usd` count the present task too."""
    return {
        "job_id": job.job_id,
        "definition": job.definition.name,
        "state": job.state.value,
        "state_since": _time(job.state_since),
        "reason": job.reason,
        "waiting": waiting_shape(job.waiting),
        "task_definition": job.revision.arn,
        "inputs": dict(job.inputs),
        "image": ":".join(job.image) if job.image else None,
        "trigger": {"source": job.trigger.source, "summary": job.trigger.summary},
        "attempt": attempt_shape(job.attempt) if job.attempt else None,
        "interruptions": job.interruptions,
        "failures": job.failures,
        "run_seconds": job.run_time(now).total_seconds(),
        "cost_usd": present_cost_usd(job, now),
        "cancel_requested": job.cancel_requested or None,
        "accepted_at": _time(job.accepted_at),
        "ended_at": _time(job.ended_at),
    }


def attempt_shape(attempt: Attempt) -> Shape:
    """Return one attempt."""
    chosen, stop = attempt.placement, attempt.stop
    return {
        "number": attempt.number,
        "placement_try": chosen.number,
        "instance_type": chosen.offering.instance_type,
        "purchase": chosen.offering.purchase.value,
        "zone": attempt.zone or chosen.offering.zone,
        "capacity_provider": chosen.capacity_provider,
        "price_usd_per_hour": chosen.price_usd_per_hour,
        "task_arn": attempt.task_arn,
        "task_status": attempt.task_status or None,
        "instance_id": attempt.instance_id,
        "resume_uri": chosen.resume_uri,
        "started_at": _time(attempt.started_at),
        "warned_at": _time(attempt.warned_at),
        "stop": None
        if stop is None
        else {
            "kind": stop.kind.value,
            "at": _time(stop.at),
            "exit_code": stop.exit_code,
            "stop_code": stop.stop_code,
            "stopped_reason": stop.stopped_reason,
        },
    }


def entry_shape(entry: TimelineEntry) -> Shape:
    """Return one line of a timeline."""
    return {
        "at": _time(entry.at),
        "state": entry.state.value,
        "event": entry.event,
        "detail": entry.detail,
        "attempt": entry.attempt_number,
    }


def stored_selection_shape(selection: StoredSelection) -> Shape:
    """Return the selection of one placement try as it was stored."""
    return {
        "attempt": selection.attempt_number,
        "placement_try": selection.placement_number,
        "selected_at": _time(selection.selected_at),
        "filters": filter_shapes(selection.filter_counts),
        "offerings": [dict(row) for row in selection.rows],
    }


def filter_shapes(counts: Iterable[tuple[str, int, int]]) -> list[Shape]:
    """Return how many offerings each filter left."""
    return [{"filter": name, "before": before, "after": after} for name, before, after in counts]


def selection_shape(selection: Selection) -> Shape:
    """Return a selection that was made just now."""
    return {
        "filters": filter_shapes(selection.filter_counts),
        "offerings": [dict(row) for row in explain_rows(selection)],
    }


def plan_shape(plan: Plan) -> Shape:
    """Return one definition of `plan`."""
    kept = plan.selection.kept if plan.selection else ()
    nothing = explain_rejection(plan.selection) if plan.selection else ""
    return {
        "definition": plan.definition.name,
        "task_definition": plan.revision.arn if plan.revision else None,
        "at": _time(plan.at),
        "is_satisfiable": bool(kept),
        "problem": plan.problem or nothing or None,
        "notices": list(plan.notices),
        "accelerator": accelerator_shape(plan.definition.accelerator),
        **(selection_shape(plan.selection) if plan.selection else {"filters": [], "offerings": []}),
    }


def history_shape(history: JobHistory, now: datetime) -> Shape:
    """Return a job of `show` with its attempts."""
    attempts = [attempt_shape(attempt) for attempt in history.attempts]
    return {**job_shape(history.job, now), "attempts": attempts}


def explanation_shape(history: JobHistory, explanation: Explanation, now: datetime) -> Shape:
    """Return what `explain` prints."""
    return {
        **history_shape(history, now),
        "explanation": {
            "waiting_for": explanation.waiting_for or None,
            "since": _time(explanation.since),
            "next_step": explanation.next_step,
            "next_at": _time(explanation.next_at),
            "advice": list(explanation.advice),
        },
        "timeline": [entry_shape(entry) for entry in history.timeline],
        "selections": [stored_selection_shape(selection) for selection in history.selections],
    }


def line_shape(line: LogLine) -> Shape:
    """Return one line of `logs`; each is a JSON document of its own."""
    return {"attempt": line.attempt_number, "at": _time(line.at), "message": line.message}


def event_shape(event: EventRecord) -> Shape:
    """Return one event of `events`."""
    return {
        "at": _time(event.at),
        "source": event.source,
        "identity": event.identity,
        "outcome": event.outcome,
        "job_ids": list(event.job_ids),
    }


def definition_shape(definition: JobDefinition) -> Shape:
    """Return one registered definition."""
    return {
        "name": definition.name,
        "task_definition": definition.task_definition,
        "container": definition.container,
        "on": [trigger_shape(trigger) for trigger in definition.triggers],
        "inputs": {
            name: {"pattern": each.pattern, "default": each.default} for name, each in definition.inputs.items()
        },
        "command": list(definition.command),
        "environment": dict(definition.environment),
        "accelerator": accelerator_shape(definition.accelerator),
        "disk_gib": definition.disk_gib,
        "purchase": definition.purchase.value,
        "checkpoint": definition.checkpoint_uri,
        "estimated_duration_seconds": _seconds(definition.estimated_duration),
        "deadline_seconds": _seconds(definition.deadline),
        "max_runtime_seconds": _seconds(definition.max_runtime),
        "max_running_jobs": definition.max_running_jobs,
        "max_failures": definition.max_failures,
        "max_price_per_hour": definition.max_price_usd_per_hour,
        "target": definition.target,
    }


def accelerator_shape(accelerator: AcceleratorRequirement) -> Shape:
    """Return what the machine must have."""
    gpu, neuron = accelerator.gpu, accelerator.neuron
    return {
        "gpu": gpu_shape(gpu) if gpu else None,
        "neuron": {"devices": neuron.devices, "cores": neuron.cores} if neuron else None,
        "instance_types": list(accelerator.instance_types),
    }


def gpu_shape(gpu: GpuRequirement) -> Shape:
    """Return what GPUs are asked for; percentage and isolation are of shares of one."""
    capability = gpu.compute_capability
    return {
        "count": gpu.count,
        "memory_mib": gpu.memory_mib,
        "models": list(gpu.models),
        "compute_percent": gpu.compute_percent,
        "isolation": gpu.isolation.value if gpu.is_share else None,
        "compute_capability": ".".join(map(str, capability)) if capability else None,
        "interconnect": gpu.interconnect.value if gpu.interconnect else None,
    }


def trigger_shape(trigger: Trigger) -> Mapping[str, Shape]:
    """Return one trigger under its source, with what it filters by."""
    if isinstance(trigger, GithubTrigger):
        filters = ("branches", "tags", "paths", "workflows", "types", "packages")
        shape: Shape = {name: list(getattr(trigger, name)) for name in filters if getattr(trigger, name)}
        wait = trigger.wait_for_image
        if wait:
            timeout = wait.timeout.total_seconds()
            shape["wait_for_image"] = {"repository": wait.repository, "tag": wait.tag, "timeout_seconds": timeout}
        return {"github": {"repository": trigger.repository, "event": trigger.event, **shape}}
    if isinstance(trigger, ImageTrigger):
        return {"image": {"repository": trigger.repository, "tag": trigger.tag}}
    return {"s3": {"bucket": trigger.bucket, "prefix": trigger.prefix, "suffix": trigger.suffix}}
