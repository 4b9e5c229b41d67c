"""Starts, stage by stage."""

from collections.abc import Iterable

from relaunch.core.lifecycle.start_stages import Stage, Start
from relaunch_cli.views.json_output.json_time import JsonObject, json_time


def starts_json(job_id: str, starts: Iterable[Start]) -> JsonObject:
    """Return the document of `explain --machine`."""
    return {"job_id": job_id, "starts": [_start_json(each) for each in starts]}


def _start_json(start: Start) -> JsonObject:
    machine = start.record.machine
    return {
        "attempt": start.record.number,
        "machine_id": machine.machine_id if machine else None,
        "instance_id": machine.instance_id if machine else None,
        "state": start.state.value,
        "reason": start.reason or None,
        "began_at": json_time(start.began_at),
        "until": json_time(start.until),
        "seconds": (start.until - start.began_at).total_seconds(),
        "stages": [_stage_json(start, each) for each in start.stages],
        "notes": list(start.notes),
    }


def _stage_json(start: Start, stage: Stage) -> JsonObject:
    return {
        "parts": [each.value for each in stage.parts],
        "began_at": json_time(stage.began_at),
        "ended_at": json_time(stage.ended_at),
        "seconds": start.duration(stage).total_seconds(),
        "ended_by": stage.ended_by or None,
    }
