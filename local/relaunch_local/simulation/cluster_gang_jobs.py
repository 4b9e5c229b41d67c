"""What happens to the gangs in the cluster of a run, and what is checked of them."""

from datetime import datetime, timedelta

from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.cluster_gangs import ClusterGangChecks
from relaunch_local.simulation.cluster_api import NAMESPACE
from relaunch_local.simulation.cluster_gangs import HAS_CONDITIONS, GangTask, is_untold
from relaunch_local.simulation.cluster_queue import ClusterQueue
from relaunch_local.simulation.faults.cluster_gangs import ClusterGangFaults

# An hour, less the time that a look may take.
_EVENTS_KEPT = timedelta(minutes=50)
_SECOND = timedelta(seconds=1)


class ClusterGangJobs:
    """The gangs in the cluster of a run; nothing, if it has none."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin to watch them, and let faults happen to them."""
        self._account = account
        self._faults = ClusterGangFaults(account)
        self._world = account.cluster
        scenario = account.scenario.cluster
        self._minor = scenario.minor if scenario is not None else 0
        self._checks: ClusterGangChecks | None = None
        if self._world is None or scenario is None or scenario.definition.nodes == 1:
            return
        watched = (account.clock, self._world.gangs, account.invariants.check, self._longer)
        self._checks = ClusterGangChecks(*watched)
        self._world.gangs.is_told = self._is_told
        workload = scenario.definition.kubernetes
        if workload is not None and workload.queue:
            ClusterQueue(account.clock, self._world.cluster, NAMESPACE)

    def _longer(self, since: datetime, until: datetime) -> timedelta:
        return self._account.facts.outage_time(since, until)

    def check_end(self) -> None:
        """Check how they ended, in a run in which nothing happens any more."""
        if self._world is None or self._checks is None:
            return
        invariants = self._account.invariants
        for name, task in self._world.gangs.tasks.items():
            stop = invariants.stops[task.job_id].get(name)
            if stop is not None:
                is_told = self._is_told(task)
                self._checks.check_stop(task, stop, self._world.asked_at.get(name), is_told=is_told)
        if all(job.state.is_final for job in invariants.jobs.values()):
            self._checks.check_end(self._world.cluster.state, NAMESPACE, self._minor)

    def _is_told(self, task: GangTask) -> bool:
        """Return whether what became of a gang could be known by the record of its end."""
        invariants = self._account.invariants
        recorded_at = invariants.recorded_at.get(task.name)
        if self._account.scenario.outages or recorded_at is None:
            return False
        cleaned_at = self._world.troubles.cleaned.get(task.name) if self._world is not None else None
        since = min(filter(None, (task.taken_at, task.failed_at, cleaned_at)), default=None)
        if since is None:
            return True
        is_forgotten = any(since <= each <= recorded_at for each in self._faults.forgotten_at)
        is_late = recorded_at - since > _EVENTS_KEPT
        is_virtual = invariants.jobs[task.job_id].definition.target is Target.ACS
        is_silent = is_virtual and (cleaned_at is not None or is_untold(task, self._minor) or self._is_unseen(task))
        return not (is_forgotten or is_late or is_silent or self._is_tied(task))

    def _is_unseen(self, task: GangTask) -> bool:
        """Return whether nobody saw all of the pods run: once they are deleted no kubelet tells it.

        A function that was killed, or of which a call failed, may have saved nothing of what it saw.
        """
        failed_at = task.failed_at
        if task.started_at is None or failed_at is None:
            return False
        passes = self._account.lambdas.passes["reconcile"]
        seen = (at for at in task.seen_running if at <= failed_at)
        return not any(began_at <= at <= ended_at for at in seen for began_at, ended_at in passes)

    def _is_tied(self, task: GangTask) -> bool:
        """Return whether a peer failed in the second in which a pod was taken away: an old server tells no more."""
        taken_at = task.taken_at
        if taken_at is None or self._minor >= HAS_CONDITIONS:
            return False
        missed = (at for at, ending, _ in task.ends.values() if ending == "peer lost")
        return any(timedelta(0) <= at - taken_at <= _SECOND for at in missed)
