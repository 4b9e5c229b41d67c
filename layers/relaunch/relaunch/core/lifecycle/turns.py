"""Whose turn it is, where there is not always time for all jobs."""

from collections.abc import Sequence
from datetime import datetime

from relaunch.core.jobs.job import Job

# The golden section, in ten minutes: whatever share of the jobs there is time for, starts fall evenly between those
# before.
_SHIFT = 0.0618034


def in_turn(jobs: Sequence[Job], minute: datetime) -> list[Job]:
    """Return jobs in an order that goes round: each minute it begins a share of them further on.

    Without time for all of them, whoever came first would always be the first again. Of jobs that are looked at every
    ten minutes none is left out twice in a row where there is time for two thirds of them; where there is time for a
    tenth, each has its turn in thirteen looks.
    """
    ordered = sorted(jobs, key=lambda job: job.job_id)
    start = int(len(ordered) * (int(minute.timestamp()) // 60 * _SHIFT % 1))
    return [ordered[(start + at) % len(ordered)] for at in range(len(ordered))]
