"""Checks at the end of a run of the jobs on its ACK cluster: how they ended, and what is left of them."""

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.workload import Workload


class ClusterJobs:
    """Checks jobs on the cluster of a run in which nothing happens any more."""

    def __init__(self, account: SimulatedAccount, workload: Workload) -> None:
        """Check the jobs of this run."""
        self._account = account
        self._workload = workload

    def check(self, job: Job) -> None:
        """Check how a job ended."""
        invariants = self._account.invariants
        cluster = self._account.cluster
        if cluster is None:
            return
        log = cluster.trainings.logs[job.job_id]
        is_over = job.state.is_final and not invariants.live_tasks(job.job_id)
        invariants.check("a job on the cluster ends, and its pods do", is_over, f"{job.job_id} {job.state}")
        stops = invariants.stops[job.job_id].values()
        failures = sum(is_failure(stop.kind) for stop in stops)
        invariants.check(
            "failures are those of the stops", failures == job.totals.failures, f"{job.job_id}: {failures}"
        )
        wrong = self._wrong_end(job, log.finished, log.failed)
        invariants.check("every end on the cluster is deserved", not wrong, f"{job.job_id} {job.state}: {wrong}")

    def _wrong_end(self, job: Job, finished: int, failed: int) -> str:
        match job.state:
            case JobState.SUCCEEDED:
                return "" if finished else "its program did not finish"
            case JobState.CANCELLED:
                return "" if job.job_id in self._workload.cancelled else "nobody cancelled it"
            case JobState.FAILED:
                is_known = failed > job.definition.max_failures or "program" in job.reason
                return "" if is_known else f"its program failed {failed} times: {job.reason}"
            case _:
                return job.reason
