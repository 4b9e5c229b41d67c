"""Checks at the end of a run of the jobs on its cluster: how they ended, and what is left of them."""

from datetime import timedelta

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.outages import HOLDS_UP_NOTHING
from relaunch_local.simulation.checks.cluster_gangs import GIVES_RANKS
from relaunch_local.simulation.cluster import ClusterWorld
from relaunch_local.simulation.cluster_gangs import GangTask
from relaunch_local.simulation.workload import Workload

# An hour, less the time that a look may take.
_EVENTS_KEPT = timedelta(minutes=50)
# The stop time-out of two minutes, and an old server that looks at a Job's deadline only when it is set again.
_STOP_BOUND = timedelta(minutes=10)
# The design's ten minutes, and a minute between the looks at a pod.
_EARLY = timedelta(minutes=11)
_OWN = frozenset({"failed", "out of memory"})


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
        for task in invariants.tasks[job.job_id]:
            asked_at = cluster.asked_at.get(task)
            ended_at = cluster.ended_at.get(task)
            is_unheard = task in cluster.troubles.unheard
            is_soon = asked_at is None or is_unheard or (ended_at is not None and ended_at - asked_at <= _STOP_BOUND)
            message = f"{job.job_id}: {task} asked at {asked_at}, ended at {ended_at}"
            invariants.check("a pod that is asked to stop ends within its bound", is_soon, message)
        self._check_troubles(job, cluster)
        wrong = self._wrong_end(job, log.finished, log.failed)
        invariants.check("every end on the cluster is deserved", not wrong, f"{job.job_id} {job.state}: {wrong}")

    def _check_troubles(self, job: Job, cluster: ClusterWorld) -> None:
        """Check what follows from what was done to the tasks of a job; while what a look needs is away nothing does.

        Of jobs of several nodes cluster_gang_jobs checks that.
        """
        invariants = self._account.invariants
        is_away = any(each.service not in HOLDS_UP_NOTHING for each in self._account.scenario.outages)
        if is_away or job.definition.nodes > 1:
            return
        endings = cluster.trainings.logs[job.job_id].endings
        troubles = cluster.troubles
        for task, stop in invariants.stops[job.job_id].items():
            said = f"{job.job_id}: {task} {stop.kind}"
            at = troubles.cleaned.get(task)
            # Of which of its pods a kubelet's event is nobody can say.
            is_clear = job.definition.target is not Target.ACS and cluster.pod_counts[task] == 1
            if at is not None and is_clear and invariants.recorded_at[task] - at < _EVENTS_KEPT:
                is_known = stop.kind in {StopKind.SUCCESS, StopKind.CANCELLED, StopKind.TIME_OUT}
                invariants.check("a program that finished is known to, though its pod is gone", is_known, said)
            is_own = endings.get(task) in _OWN
            if task in troubles.released and not is_own:
                is_free = not is_failure(stop.kind)
                invariants.check("capacity that ACS takes away is no failure of the program", is_free, said)
            if task in troubles.announced and not is_own and self._is_seen(cluster, task):
                is_free = not is_failure(stop.kind)
                invariants.check("a node whose end a taint announces costs no failure", is_free, said)
            if task in troubles.suspended:
                is_free = not is_failure(stop.kind) and cluster.pod_counts[task] == 1
                invariants.check("a task whose place a queue took does not go on", is_free, said)

    def _wrong_end(self, job: Job, finished: int, failed: int) -> str:
        match job.state:
            case JobState.SUCCEEDED:
                return "" if finished else "its program did not finish"
            case JobState.CANCELLED:
                return "" if job.job_id in self._workload.cancelled else "nobody cancelled it"
            case JobState.FAILED:
                cluster = self._account.cluster
                lacks_step = job.attempt is None and job.job_id in self._workload.without_checkpoint
                definition = job.definition
                # What was taken away, and is not known to be, seems to be a failure of the program.
                untold = self._untold(job)
                failed += untold
                failed += len(self._unseen(job, cluster)) if cluster is not None else 0
                early = self._early(job) + untold
                is_limit = failed > definition.max_failures or early > definition.retry.max_early_failures
                is_known = lacks_step or is_limit or self._is_too_old(definition)
                return "" if is_known else f"its program failed {failed} times: {job.reason}"
            case _:
                return job.reason

    def _early(self, job: Job) -> int:
        """Return how often the program failed soon after its pod ran."""
        cluster = self._account.cluster
        if cluster is None:
            return 0
        if job.definition.nodes > 1:
            return sum(_is_early(cluster, task) for task in cluster.gangs.of_job[job.job_id])
        endings = cluster.trainings.logs[job.job_id].endings
        failed = [task for task, ending in endings.items() if ending in _OWN]
        failed += self._unseen(job, cluster)
        lasted = [cluster.ended_at[task] - cluster.processes.started_at[task] for task in failed]
        return sum(each <= _EARLY for each in lasted)

    def _untold(self, job: Job) -> int:
        """Return how many gangs had a part taken away that nobody can know of."""
        cluster = self._account.cluster
        tasks = cluster.gangs.of_job[job.job_id] if cluster is not None else ()
        return sum(each.is_taken_first and cluster is not None and not cluster.gangs.is_told(each) for each in tasks)

    def _unseen(self, job: Job, cluster: ClusterWorld) -> list[str]:
        """Return the tasks of one node that ended with it, of which nobody saw that a taint announced it.

        Their programs are killed, and nothing else tells why.
        """
        if job.definition.nodes > 1:
            return []
        endings = cluster.trainings.logs[job.job_id].endings
        names = (each for each in self._account.invariants.tasks[job.job_id] if each in cluster.troubles.announced)
        return [each for each in names if endings.get(each) not in _OWN and not self._is_seen(cluster, each)]

    def _is_seen(self, cluster: ClusterWorld, task: str) -> bool:
        """Return whether somebody looked at a task between the taint of its node and the end of its pod.

        A function that was killed, or of which a call failed, may have saved nothing of what it saw.
        """
        announced_at = cluster.troubles.announced[task]
        ended_at = cluster.ended_at[task]
        looks = [at for at in cluster.troubles.looked_at[task] if announced_at <= at <= ended_at]
        passes = self._account.lambdas.passes["reconcile"]
        return any(began_at <= at <= until for at in looks for began_at, until in passes)

    def _is_too_old(self, definition: JobDefinition) -> bool:
        """Return whether the cluster gives the pods of a Job no ranks."""
        cluster = self._account.scenario.cluster
        return cluster is not None and definition.nodes > 1 and cluster.minor < GIVES_RANKS


def _is_early(cluster: ClusterWorld, task: GangTask) -> bool:
    """Return whether the program of a gang failed soon after it started."""
    failed_at = task.failed_at
    return failed_at is not None and failed_at - cluster.processes.started_at[task.name] <= _EARLY
