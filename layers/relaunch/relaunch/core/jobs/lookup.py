"""Under what a job can be found: every store of jobs keeps these beside it."""

from datetime import datetime

from relaunch.core.jobs.job import Job, PlacementState, WaitReason


def due_at(job: Job) -> datetime | None:
    """Return when somebody has to look at the job again, None when never.

    A job that is over is still due while effects are pending: they are done by whoever loads it next.

    Raises:
        ValueError: the job is open and has no `wake_at`: it would be lost.
    """
    if job.state.is_final:
        return (job.wake_at or job.ended_at or job.accepted_at) if job.pending else None
    if job.wake_at is None:
        raise ValueError(f"job {job.job_id} is {job.state} and has no wake_at")
    return job.wake_at


def waited_slot(job: Job) -> str | None:
    """Return the slot the job waits for, a definition's name or `*`; None when it waits for no slot."""
    if job.state.is_final or job.waiting is None or job.waiting.reason is not WaitReason.SLOT:
        return None
    return job.waiting.slot or job.definition.name


def selected_placement(job: Job, *, is_placed: bool) -> tuple[int, int]:
    """Return the (attempt, placement try) that a selection saved with the job is about.

    `is_placed`: something was kept, so the job's frozen try came of it; else it is about the try that would be next.
    """
    attempt = job.attempt
    if attempt is None:
        return 1, 1
    if is_placed and attempt.placement.state is PlacementState.PENDING:
        return attempt.number, attempt.placement.number
    if attempt.is_spent:
        return attempt.number + 1, 1
    return attempt.number, attempt.placement.number + 1
