"""What happens to the gangs in the cluster of a run, and what is checked of them."""

from datetime import datetime, timedelta

from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.cluster_gangs import ClusterGangChecks
from relaunch_local.simulation.cluster import NAMESPACE
from relaunch_local.simulation.cluster_gangs import GangTask
from relaunch_local.simulation.cluster_queue import ClusterQueue
from relaunch_local.simulation.faults.cluster_gangs import ClusterGangFaults

# An hour, less the time that a look may take.
_EVENTS_KEPT = timedelta(minutes=50)
_OF_NODES = frozenset({"its node lost", "DeletionByTaintManager"})


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
        for job_id, stops in invariants.stops.items():
            for name, stop in stops.items():
                task = self._world.gangs.tasks.get(name)
                if task is not None:
                    asked_at = self._world.asked_at.get(name)
                    recorded_at = invariants.recorded_at[name]
                    is_told = self._is_told(task, invariants.jobs[job_id].definition.target, recorded_at)
                    self._checks.check_stop(task, stop, asked_at, is_told=is_told)
        if all(job.state.is_final for job in invariants.jobs.values()):
            self._checks.check_end(self._world.cluster.state, NAMESPACE, self._minor)

    def _is_told(self, task: GangTask, target: Target, recorded_at: datetime) -> bool:
        """Return whether the cluster told, by the record of its end, that something of a gang was taken away."""
        taken_at = task.taken_at
        if taken_at is None:
            return False
        is_forgotten = any(taken_at <= each <= recorded_at for each in self._faults.forgotten_at)
        # No kubelet tells of pods on virtual nodes, and what a cluster records of them is not documented.
        is_virtual = target is Target.ACS and any(how in _OF_NODES for _, how in task.taken)
        is_late = recorded_at - taken_at > _EVENTS_KEPT
        return not (is_forgotten or is_virtual or is_late or self._account.scenario.outages)
