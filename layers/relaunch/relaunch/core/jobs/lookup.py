"""Keys with which stores and callers find jobs and the machines that they claim."""

from datetime import datetime

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.job import CAPACITY, MACHINES_SLOT, Job
from relaunch.core.jobs.state import WaitReason


def due_at(job: Job) -> datetime | None:
    """Return when the job is to be checked again, None if never.

    A finished job is due while effects are pending; loading it for the next event repeats them.

    Raises:
        ValueError: the job is open and has no `wake_at`.
    """
    if job.state.is_final:
        return (job.wake_at or job.ended_at or job.accepted_at) if job.pending else None
    if job.wake_at is None:
        raise ValueError(f"job {job.job_id} is {job.state} and has no wake_at")
    return job.wake_at


def waited_slot(job: Job) -> str | None:
    """Return the slot that the job waits for: the name of a definition, `*`, or CAPACITY; None if it waits for none."""
    if job.state.is_final or job.waiting is None:
        return None
    if job.waiting.reason is WaitReason.CAPACITY:
        return CAPACITY
    if job.waiting.reason is WaitReason.MACHINE_LIMIT:
        return MACHINES_SLOT
    return job.waiting.slot or job.definition.name if job.waiting.reason is WaitReason.SLOT else None


def may_have_instance(job: Job) -> bool:
    """Return whether the job has a slot and may use an instance: while it waits for capacity it has only the slot."""
    return job.has_slot and waited_slot(job) is None


def selected_placement(job: Job, *, is_placed: bool) -> tuple[int, int]:
    """Return the (attempt, placement) of a selection saved with the job.

    `is_placed`: the selection kept an offering, so that it belongs to the pending placement; else to the next one.
    """
    attempt = job.attempt
    if attempt is None:
        return 1, 1
    if is_placed and attempt.placement.state is PlacementState.PENDING:
        return attempt.number, attempt.placement.number
    if attempt.is_number_used:
        return attempt.number + 1, 1
    return attempt.number, attempt.placement.number + 1


def claimed_machines(job: Job) -> frozenset[str]:
    """Return the IDs of the machines that the job needs: of its task, and for its next placement."""
    if job.state.is_final:
        return frozenset()
    needed = {job.machine_id}
    attempt = job.attempt
    if attempt is not None and attempt.stop is None and attempt.placement.state is not PlacementState.CLOSED:
        needed.add(attempt.placement.machine_id)
    return frozenset(needed - {""})


INVOKE = "invoke"
"""The caller of every direct Invoke of `job_api`: Lambda does not tell a function who invokes it."""


def keyed_identity(caller: str, key: str) -> str:
    """Return the identity of a request with an idempotency key: each caller has keys of its own.

    An ARN has no space. The keys of INVOKE are those of earlier versions, which had only this caller.
    """
    return f"api:key:{key}" if caller == INVOKE else f"api:caller:{caller} {key}"


def is_own(job: Job, caller: str) -> bool:
    """Return whether a caller may see and cancel a job: one that it asked for.

    Jobs that nobody asked for (those of events) and those of versions that stored no caller are INVOKE's.
    """
    return job.trigger.caller == caller or (caller == INVOKE and not job.trigger.caller)
