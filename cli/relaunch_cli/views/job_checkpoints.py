"""What a job has saved: lines of `show` and `explain`."""

from datetime import datetime

from rich.text import Text

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step, total_steps
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch_plan import job_checkpoint_uri
from relaunch_cli.job_checkpoints import JobCheckpoints
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_timestamp


def checkpoint_rows(job: Job, saved: JobCheckpoints, now: datetime) -> list[tuple[str, Text]]:
    """Return the names and values of lines: how far a job has saved, and where that is."""
    if job.definition.checkpoint_uri is None:
        return [("Saved", Text("unknown: its definition has no `checkpoint`"))]
    newest = saved.newest
    if newest is None:
        text = f"unknown: {saved.problem}" if saved.problem else _nothing(job)
        rows = [("Saved", f"{text}{_resumed(job)}"), ("Saves to", job_checkpoint_uri(job))]
    else:
        # A training leaves its result as its last checkpoint; Relaunch knows of no other place.
        name = "Result" if job.state is JobState.SUCCEEDED else "Checkpoint"
        rows = [("Saved", _describe(job, newest, saved.unusable, now)), (name, newest.uri)]
    return [(name, Text(one_line(text))) for name, text in rows]


def _nothing(job: Job) -> str:
    return "nothing" if job.state.is_final else "nothing yet"


def _resumed(job: Job) -> str:
    step = resumed_step(job.attempt.placement.resume_uri) if job.attempt is not None else 0
    return f"; its attempt {job.attempt.number} began at step {step:,}" if job.attempt is not None and step else ""


def _describe(job: Job, newest: SavedCheckpoint, unusable: tuple[str, ...], now: datetime) -> str:
    total = total_steps(job, newest)
    of_all = f" of {total:,}" if total else ""
    said = newest.reported.loss
    loss = f", loss {said:.6g}" if said is not None else ""
    when = format_timestamp(newest.saved_at, now)
    return "; ".join((f"step {newest.step:,}{of_all}{loss}, by attempt {newest.attempt} at {when}", *unusable[:1]))
