"""The jobs table in memory: what tests and the simulation share."""

from relaunch.core.jobs.job import Job
from relaunch_local.in_memory.jobs import InMemoryJobs

__all__ = ["InMemoryJobs", "make_unreadable"]


def make_unreadable(jobs: InMemoryJobs, unreadable_id: str, error: Exception) -> None:
    """Let loading one job fail, whoever loads it and however often."""
    load_readable = jobs.load_job

    def load_job(job_id: str) -> Job | None:
        if job_id == unreadable_id:
            raise error
        return load_readable(job_id)

    jobs.load_job = load_job
