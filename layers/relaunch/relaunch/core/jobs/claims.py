"""The machines of our own that a job claims."""

from relaunch.core.jobs.job import Job, PlacementState


def claimed_machines(job: Job) -> frozenset[str]:
    """Return the IDs of the machines that the job needs: of its task, and for its next placement."""
    if job.state.is_final:
        return frozenset()
    needed = {job.machine_id}
    attempt = job.attempt
    if attempt is not None and attempt.stop is None and attempt.placement.state is not PlacementState.CLOSED:
        needed.add(attempt.placement.machine_id)
    return frozenset(needed - {""})
