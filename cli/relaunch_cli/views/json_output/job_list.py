"""Jobs in a list, and lines of a log; `relaunch ps` and `logs` import no more of JSON than this."""

from datetime import datetime
from typing import TYPE_CHECKING

from relaunch.core.jobs.state import CostBasis, JobSummary, MachineCost, NotedProgress, Waiting
from relaunch_cli.views.json_output.json_time import JsonObject, json_time

if TYPE_CHECKING:
    from relaunch_cli.job_logs import LogLine


def summary_json(summary: JobSummary, now: datetime) -> JsonObject:
    """Return a job of `ps`; `run_seconds` and `cost_usd` include the running task."""
    running = (now - summary.running.since).total_seconds() if summary.running else 0.0
    return {
        "job_id": summary.job_id,
        "definition": summary.definition,
        "state": summary.state.value,
        "state_since": json_time(summary.state_since),
        "reason": summary.reason,
        "waiting": waiting_json(summary.waiting),
        "attempt": summary.attempt_number or None,
        "offering": str(summary.offering) if summary.offering else None,
        "machine_id": summary.machine_id or None,
        "interruptions": summary.interruptions,
        "failures": summary.failures,
        "run_seconds": summary.run_seconds + running,
        **cost_json(*summary.cost_so_far(now)),
        "progress": noted_json(summary.noted.in_state(summary.state) if summary.noted else None),
        **machine_cost_json(summary.machine_cost(now)),
        "trigger": summary.trigger,
        "started_by": summary.started_by or summary.trigger,
        "accepted_at": json_time(summary.accepted_at),
        "ended_at": json_time(summary.ended_at),
    }


def noted_json(noted: NotedProgress | None) -> JsonObject | None:
    """Return how far a training was at the last look."""
    if noted is None:
        return None
    return {
        "step": noted.step,
        "total_steps": noted.total_steps,
        "saved_at": json_time(noted.at),
        "attempt": noted.attempt,
        "loss": noted.loss,
        "finishes_at": json_time(noted.finishes_at),
        "stalled_since": json_time(noted.stalled_since),
    }


def log_line_json(line: "LogLine") -> JsonObject:
    """Return one line of `logs`; each is a document of its own."""
    return {"attempt": line.attempt_number, "at": json_time(line.at), "message": line.message}


def waiting_json(waiting: Waiting | None) -> JsonObject | None:
    """Return what a job waits for."""
    if waiting is None:
        return None
    return {
        "for": waiting.reason.value,
        "since": json_time(waiting.since),
        "until": json_time(waiting.until),
        "detail": waiting.detail,
    }


def cost_json(usd: float, basis: CostBasis) -> JsonObject:
    """Return a cost: null if it is not known."""
    return {"cost_usd": None if basis is CostBasis.UNKNOWN else usd, "is_cost_limit": basis is CostBasis.LIMIT}


def machine_cost_json(cost: MachineCost) -> JsonObject:
    """Return the part of a cost that machines of our own are, the part of that without training, and that on demand."""
    return {
        "machines_usd": cost.usd,
        "machines_idle_usd": cost.idle_usd,
        "machines_on_demand_usd": cost.on_demand_usd,
    }
