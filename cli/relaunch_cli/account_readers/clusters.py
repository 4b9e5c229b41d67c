"""Reads which jobs the cluster of the stack does not know, because it was changed under them."""

from collections.abc import Iterator

from relaunch.core.checks import Check, is_ok, problem
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.unconfirmed_stops import ELSEWHERE
from relaunch.ports import JobListing

NAME = "jobs on clusters"
_NEWEST = 200


def check_clusters(jobs: JobListing) -> Iterator[Check]:
    """Check that no job has its pod in a cluster, or namespace, that the stack had before; the newest 200 are read."""
    found, _ = jobs.list_jobs(_NEWEST)
    elsewhere = [each.job_id for each in found if each.state is JobState.STOPPING and ELSEWHERE in each.reason]
    if not elsewhere:
        yield is_ok(NAME, "none has its pod in another cluster than the stack's")
        return
    yield problem(
        NAME,
        f"{ELSEWHERE}: {', '.join(elsewhere)}",
        "set the cluster and the namespace back and deploy, or delete their Jobs there and say `relaunch lost JOB`",
    )
