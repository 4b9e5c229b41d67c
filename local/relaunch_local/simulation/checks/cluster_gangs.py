"""Checks of gangs in the cluster of a run, by what the cluster did: how long parts stay, how they end, what is left."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch_local.ecs import Clock
from relaunch_local.kubernetes.state import ClusterState, Document, has_condition
from relaunch_local.simulation.cluster_gangs import ClusterGangs, GangTask

PART_WAITS = "a part of a gang does not wait for the others for long"
PART_RUNS = "a part of a gang runs no longer than its grace"
NOTHING_LEFT = "nothing of a gang in the cluster is left"
TAKEN = "what takes a part of a gang away is no failure of its program"
FAILED = "the rank that fails first is why its gang ended"
FINISHED = "a gang whose ranks all finished has succeeded"
REFUSED = "a cluster that gives no ranks runs no part of a gang"

GIVES_RANKS = 24
"""The minor version of Kubernetes from which on the index of a pod is stable ("Jobs", Kubernetes documentation)."""
# The 15 minutes after which parts are withdrawn, the two of the grace of a pod, and looks that fail.
_WAITS_AT_MOST = timedelta(minutes=15 + 2 + 10)
# The watchdog of NCCL, ten minutes, which is longer than others may take after the first that is done; the two of the
# grace of a pod, and looks that fail.
_RUNS_AT_MOST = timedelta(minutes=10 + 2 + 10)
_SECOND = timedelta(seconds=1)
_BY_RELAUNCH = frozenset({StopKind.CANCELLED, StopKind.TIME_OUT, StopKind.MOVED, StopKind.OVER_BUDGET})


class ClusterGangChecks:
    """The checks of the gangs of one cluster."""

    def __init__(
        self,
        clock: Clock,
        gangs: ClusterGangs,
        check: Callable[[str, bool, str], None],
        longer: Callable[[datetime, datetime], timedelta],
    ) -> None:
        """Check these gangs; `longer` is how much longer than otherwise what lasted so may take."""
        self._clock = clock
        self._gangs = gangs
        self._check = check
        self._longer = longer
        self.longest: dict[str, timedelta] = {PART_WAITS: timedelta(0), PART_RUNS: timedelta(0)}
        """How long parts waited and ran at most, less what services were away."""
        gangs.on_changed = self._look

    def _look(self, task: GangTask) -> None:
        self._check_span(PART_WAITS, task, task.held_since, _WAITS_AT_MOST)
        self._check_span(PART_RUNS, task, task.broken_since, _RUNS_AT_MOST)

    def _check_span(self, name: str, task: GangTask, since: datetime | None, at_most: timedelta) -> None:
        if since is None:
            return
        now = self._clock.now()
        if now == since:
            # Nothing else may happen until it has lasted for too long.
            self._clock.call_later((at_most + _SECOND).total_seconds(), self._gangs.look)
        lasted = now - since - self._longer(since, now)
        self.longest[name] = max(self.longest[name], lasted)
        self._check(name, lasted <= at_most, f"{task.name} since {since}")

    def check_stop(self, task: GangTask, stop: Stop, asked_at: datetime | None, *, is_told: bool) -> None:
        """Check why a task ended by its record; `is_told`: nothing kept it from being known."""
        failed_at = task.failed_at
        taken_at = task.taken_at
        said = f"{task.name} {stop.kind}: failed at {failed_at}, {task.taken}, asked at {asked_at}"
        if task.is_taken_first:
            if is_told:
                self._check(TAKEN, not is_failure(stop.kind), said)
            return
        is_stopped = asked_at is not None and (failed_at is None or asked_at <= failed_at)
        is_unclear = taken_at is not None or task.is_unclear or not is_told
        if is_unclear or is_stopped or stop.kind in _BY_RELAUNCH:
            return
        if failed_at is not None:
            self._check(FAILED, is_failure(stop.kind), said)
        elif self._have_finished(task):
            self._check(FINISHED, stop.kind is StopKind.SUCCESS, said)

    @staticmethod
    def _have_finished(task: GangTask) -> bool:
        finished = {rank for _, ending, rank in task.ends.values() if ending == "finished"}
        return len(finished) == task.nodes

    def check_end(self, state: ClusterState, namespace: str, minor: int) -> None:
        """Check what is left once every job has ended: Jobs that go by themselves, and what goes with them."""
        for task in self._gangs.tasks.values():
            self._check(NOTHING_LEFT, not task.pods, f"{task.name}: {len(task.pods)} pods")
        jobs = {each["metadata"]["uid"]: each for each in state.all("jobs", namespace)}
        for uid, job in jobs.items():
            self._check(NOTHING_LEFT, _goes(job, minor), f"Job {job['metadata']['name']} {uid}")
        for service in state.all("services", namespace):
            owners = [str(each["uid"]) for each in service["metadata"].get("ownerReferences") or ()]
            # The cluster's collector of garbage deletes what has only owners that are gone.
            goes = bool(owners) and all(each not in jobs or _goes(jobs[each], minor) for each in owners)
            self._check(NOTHING_LEFT, goes, f"Service {service['metadata']['name']}")
        if minor < GIVES_RANKS:
            made: Mapping[str, int] = {each.name: each.made for each in self._gangs.tasks.values()}
            self._check(REFUSED, not any(made.values()), str(made))


def _goes(job: Document, minor: int) -> bool:
    """Return whether a Job is removed by the cluster; old servers keep every Job.

    One that has ended is, and one that was stopped while a queue held it back: it has no pods, and its deadline ends it
    as soon as the queue lets it go on.
    """
    del minor
    spec = job["spec"]
    is_stopped = bool(spec.get("suspend")) and spec["parallelism"] == 0 and "activeDeadlineSeconds" in spec
    return "ttlSecondsAfterFinished" in spec and (is_stopped or has_condition(job, "Complete", "Failed"))
