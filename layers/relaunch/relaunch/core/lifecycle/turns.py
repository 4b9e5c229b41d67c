"""Whose turn it is, where there is not always time for all jobs."""

from collections.abc import Sequence
from datetime import datetime

from relaunch.core.jobs.job import Job

# The golden section of a tenth: whatever share of the jobs there is time for, starts fall evenly between those before.
_SHIFT = 0.0618034


def in_turn(jobs: Sequence[Job], minute: datetime) -> list[Job]:
    """Return jobs in an order that goes round: every ten minutes it begins a tenth further on.

    Without time for all of them, whoever came first would always be the first again. Where there is time for a tenth,
    each has its turn in ten looks; every hundred minutes the starts are others, so that with less time each has it too.
    """
    ordered = sorted(jobs, key=lambda job: job.job_id)
    rounds, minutes = divmod(int(minute.timestamp()) // 60, 100)
    start = len(ordered) * minutes // 100 + int(len(ordered) * (rounds * _SHIFT % 1))
    return [ordered[(start + at) % len(ordered)] for at in range(len(ordered))]
