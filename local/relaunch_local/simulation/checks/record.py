"""Checks of each write of a job, of what its item and timeline tell its user, and of what its training is told."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.wait_explanation import Explanation
from relaunch.core.selection.selection import Selection
from relaunch_local.ecs import ProcessSpec
from relaunch_local.simulation.scenario import BUCKET, TASK_DEFINITION_COMMAND

# A function that saves began a minute ago at most; the clocks of two functions differ by up to six seconds.
_LONGEST_FUNCTION = timedelta(seconds=67)
_COMMIT = re.compile("[0-9a-f]{40}")
_MANIFEST = re.compile(f"s3://{BUCKET}/.*[.]manifest")

# What a value that is missing leaves in a text.
_HOLE = re.compile(r"\bNone\b|\bdatetime\.|<[a-z_.]+ object at |<[A-Z][A-Za-z]+\.[A-Z_]+: ")

_NAMED_BY = {
    "github:push:": ("RELAUNCH_GIT_SHA", _COMMIT),
    "github:workflow_run:": ("RELAUNCH_GIT_SHA", _COMMIT),
    "github:": ("RELAUNCH_GIT_REPOSITORY", re.compile("acme/.*")),
    "s3:": ("RELAUNCH_OBJECT_URI", _MANIFEST),
    "ecr:": ("RELAUNCH_IMAGE_DIGEST", re.compile("sha256:[0-9a-f]{64}")),
}
"""By the beginning of what identifies an event: the variable that names it to the training that it starts."""

Check = Callable[[str, bool, str], None]


def check_record(check: Check, before: Job | None, job: Job, timeline: Sequence[TimelineEntry], now: datetime) -> None:
    """Check a job that was created or saved at `now`, with the entries that were added to its timeline."""
    for entry in timeline:
        number = job.attempt.number if job.attempt else None
        is_told = bool(entry.event) and isinstance(entry.detail, str) and entry.attempt_number in (None, number)
        is_told &= abs(now - entry.at) <= _LONGEST_FUNCTION
        check("a timeline entry tells what happened, and when", is_told, f"{job.job_id}: {entry}")
        check("no text has a hole", not _HOLE.search(entry.detail or ""), f"{job.job_id}: {entry}")
    if before is None:
        return
    if before.state is not job.state:
        is_since = job.state_since is not None and abs(now - job.state_since) <= _LONGEST_FUNCTION
        is_told = bool(timeline) and timeline[-1].state is job.state
        check("a new state is in the timeline", is_told, f"{job.job_id} is {job.state}")
    else:
        is_since = job.state_since == before.state_since
    check("a state is known since when", is_since, f"{job.job_id} is {job.state} since {job.state_since}")
    check_first_start(check, before, job)
    waits = [each.waiting for each in (before, job) if each.waiting]
    if len({(wait.reason, wait.slot) for wait in waits}) == 1 and len(waits) == 2:
        is_kept = waits[0].since == waits[1].since
        check("a wait is known since when", is_kept, f"{job.job_id} waits since {waits[1].since}")


def check_write(check: Check, before: Job | None, job: Job, *, is_new: bool) -> None:
    """Check that a write follows from the one before it."""
    if before is None:
        check("a job is created once", is_new and job.version == 1, job.job_id)
        return
    check("every write is the next version", job.version == before.version + 1, f"{job.job_id} v{job.version}")
    is_kept = not before.state.is_final or (job.state is before.state and job.ended_at == before.ended_at)
    check("what is over stays over", is_kept, f"{job.job_id}: {before.state} → {job.state}")
    numbers = [each.attempt.number if each.attempt else 0 for each in (before, job)]
    check("attempts are numbered one by one", 0 <= numbers[1] - numbers[0] <= 1, f"{job.job_id}: {numbers}")
    steps = (job.totals.failures - before.totals.failures, job.totals.interruptions - before.totals.interruptions)
    is_counted = min(steps) >= 0 and sum(steps) <= 1 and job.totals.cost_usd >= before.totals.cost_usd
    check("a stop is counted once", is_counted, f"{job.job_id}: {steps}")
    placed = [each.attempt for each in (before, job) if each.attempt and each.attempt.task_id]
    if len(placed) == 2 and placed[0].task_id == placed[1].task_id:
        is_newer = placed[1].task_version >= placed[0].task_version
        check("an older observation of a task changes nothing", is_newer, job.job_id)
    check("max_failures is kept", job.totals.failures <= job.definition.max_failures + 1, job.job_id)


def check_first_start(check: Check, before: Job, job: Job) -> None:
    """Check that the first start of a task is known as soon as the job runs or the task has stopped, and stays."""
    attempt = job.attempt
    is_due = attempt is not None and (job.state is JobState.RUNNING or attempt.stop is not None)
    first = before.totals.first_started_at or (attempt.started_at if attempt and is_due else None)
    check(
        "the first start is remembered",
        job.totals.first_started_at == first,
        f"{job.job_id}: {job.totals.first_started_at}",
    )


def check_explanation(check: Check, job: Job, explanation: Explanation, now: datetime) -> None:
    """Check what `relaunch explain` would say of a job at `now`."""
    is_over = job.state.is_final
    is_told = bool(explanation.next_step) and bool(explanation.waiting_for) != is_over
    is_told &= explanation.since is not None and explanation.since <= now + _LONGEST_FUNCTION
    # Only the end of a training is not known.
    is_told &= (explanation.next_at is None) == is_over or job.state is JobState.RUNNING
    check("every job can be explained", is_told, f"{job.job_id} is {job.state}: {explanation}")
    texts = (explanation.waiting_for, explanation.next_step, job.reason)
    holes = [each for each in texts if each and _HOLE.search(str(each))]
    check("no text has a hole", not holes, f"{job.job_id}: {holes}")


def check_selection(check: Check, job: Job, selection: Selection) -> None:
    """Check that what is stored for `relaunch explain` says why of everything that the job is not launched on."""
    mute = [each for each in selection.rejected if not each.rejection.reason or _HOLE.search(each.rejection.reason)]
    message = f"{job.job_id}: {', '.join(f'{each.offering.key}: {each.rejection.reason}' for each in mute[:3])}"
    check("a job says why of all that it is not launched on", not mute, message)


def check_outcome(check: Check, identity: str, outcome: str) -> None:
    """Check that whoever looks for an event finds what became of it, for each definition that watches it."""
    # Of a definition without its words only its name is left.
    notes = outcome.split("; ") if isinstance(outcome, str) else []
    is_told = bool(notes) and not any(not each or each.endswith(": ") or _HOLE.search(each) for each in notes)
    check("whoever looks for an event finds what became of it", is_told, f"{identity}: {outcome}")


def check_parameters(check: Check, job: Job, spec: ProcessSpec) -> None:
    """Check that a training gets the command, the inputs and the trigger facts of its job."""
    is_told = spec.command == (job.definition.command or TASK_DEFINITION_COMMAND)
    check("a training runs the command of its definition", is_told, f"{job.job_id}: {spec.command}")
    if job.definition.inputs:
        size, note = (spec.environment.get(f"RELAUNCH_INPUT_{name}") for name in ("BATCH_SIZE", "NOTE"))
        is_told = size is not None and size.isdigit() and note == ""
        check("a training gets its inputs", is_told, f"{job.job_id}: {size}, {note}")
    named = next((each for prefix, each in _NAMED_BY.items() if job.trigger.identity.startswith(prefix)), None)
    if named is not None:
        name, pattern = named
        value = spec.environment.get(name, "")
        check("a training knows what started it", pattern.fullmatch(value) is not None, f"{job.job_id}: {value}")
