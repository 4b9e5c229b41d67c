"""The gangs in the cluster of a run: their pods, how each rank ended, and what was taken away from them.

All of it is what the simulated cluster and its programs know; nothing is read from what the application stored.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from relaunch.adapters.kubernetes.labels import NODES, OWNER, TASK
from relaunch_local.ecs import Clock, ProcessSpec
from relaunch_local.ecs.processes.port import ProcessHandle
from relaunch_local.kubernetes.indexed_jobs import index_of
from relaunch_local.kubernetes.scheduler import is_over
from relaunch_local.kubernetes.services import resolve
from relaunch_local.kubernetes.state import ClusterState, Document
from relaunch_local.simulation.aws.gangs import Gang, Rank
from relaunch_local.simulation.aws.trainings import Trainings

BY_THEMSELVES = frozenset({"failed", "out of memory", "left early", "hung"})
"""The endings of ranks whose program is at fault; what follows it at the others is not."""
GENERATIONS = "two generations of a gang never have pods at once"
HAS_CONDITIONS = 26
"""The minor version of the first servers whose pods have a condition when they are taken away."""
_WITHOUT_CONDITION = frozenset({"deleted", "its node lost", "DeletionByTaintManager", "released", "announced"})
_ADDRESS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?-0\.[a-z]([-a-z0-9]*[a-z0-9])?")


def is_of_gang(pod: Document) -> bool:
    """Return whether a pod is one of several that train together."""
    return nodes_of(pod) > 1


def nodes_of(pod: Document) -> int:
    """Return how many pods train together with this one, itself included."""
    return int(pod["metadata"].get("labels", {}).get(NODES, "1"))


def task_of(pod: Document) -> str:
    """Return the name of the task of a pod."""
    return str(pod["metadata"]["labels"][TASK])


def is_untold(task: "GangTask", minor: int) -> bool:
    """Return whether nothing on virtual nodes tells that a pod was taken away: no kubelet, and no condition of it.

    What a cluster records of pods there is not documented.
    """
    return any(minor < HAS_CONDITIONS or how in _WITHOUT_CONDITION for _, how in task.taken)


class PodNetwork:
    """Implements Network for pods, which find each other by names; DNS knows one once its Service is there."""

    may_change = True

    def __init__(self, state: ClusterState, namespace: str) -> None:
        self._state = state
        self._namespace = namespace

    def check_address(self, address: str) -> None:
        if _ADDRESS.fullmatch(address) is None:
            raise ValueError(f"RELAUNCH_MASTER_ADDR: {address} is no name of the first pod")

    def is_reached(self, spec: ProcessSpec) -> bool:
        del spec
        return True

    def leads_to(self, address: str, spec: ProcessSpec) -> bool:
        pod = resolve(self._state, self._namespace, address)
        return pod is not None and bool(pod["metadata"]["uid"] == spec.task_arn)


@dataclass
class GangTask:
    """A task of several pods; times are those of the run's clock."""

    name: str
    job_id: str
    nodes: int
    owner: str
    pods: set[str] = field(default_factory=set)
    """The UIDs of those that live."""
    node: str = ""
    """That of its first pod, when all had one last."""
    made: int = 0
    """How many pods there were."""
    job_uid: str = ""
    """That of its Job, which may be made again under its name."""
    gang: Gang | None = None
    ends: dict[str, tuple[datetime, str, int]] = field(default_factory=dict)
    """By UID: when the program of a rank ended, how, and its rank."""
    taken: list[tuple[datetime, str]] = field(default_factory=list)
    """When, and how, a pod was taken away, its Job deleted, or its place given to another."""
    started_at: datetime | None = None
    """When the program of one of its pods was started last."""
    seen_running: list[datetime] = field(default_factory=list)
    """When a function looked at it while all of its pods ran."""
    is_unclear: bool = False
    """Whether a node of it was announced to end, or out of reach: what it did then may be for that."""
    held_since: datetime | None = None
    """Since when some of its pods have nodes."""
    broken_since: datetime | None = None
    """Since when it cannot train any more, as a rank is gone."""

    @property
    def failed_at(self) -> datetime | None:
        """When the program of a rank was first at fault; None if none was."""
        return min((at for at, ending, _ in self.ends.values() if ending in BY_THEMSELVES), default=None)

    @property
    def taken_at(self) -> datetime | None:
        """When something of it was first taken away; None if nothing was."""
        return min((at for at, _ in self.taken), default=None)

    @property
    def is_taken_first(self) -> bool:
        """Whether something of it was taken away before the program of any rank was at fault."""
        taken_at = self.taken_at
        return taken_at is not None and (self.failed_at is None or taken_at < self.failed_at)

    @property
    def is_formed(self) -> bool:
        """Whether all of its ranks have met."""
        return self.gang is not None and self.gang.is_formed


class ClusterGangs:
    """The gangs of one cluster."""

    def __init__(
        self,
        clock: Clock,
        trainings: Trainings,
        state: ClusterState,
        namespace: str,
        out_of_reach: Collection[str],
    ) -> None:
        """Let ranks find each other by the names of pods; `out_of_reach` are the nodes that nobody hears of, now."""
        self._out_of_reach = out_of_reach
        self._clock = clock
        self._state = state
        self._namespace = namespace
        self._gangs = trainings.gangs
        self._gangs.network = PodNetwork(state, namespace)
        self._gangs.is_replaced = self._is_deleted
        self._uids: dict[str, GangTask] = {}
        self.tasks: dict[str, GangTask] = {}
        self.of_job: dict[str, list[GangTask]] = defaultdict(list)
        self.counts = Counter[str]()
        """How often it came to what tests should know of: gangs that met, and parts that waited."""
        self.report: Callable[[GangTask, str], None] = lambda _task, _status: None
        """Called with a task, and its state in ECS's words."""
        self.check: Callable[[str, bool, str], None] = lambda _name, _holds, _message: None
        self.is_told: Callable[[GangTask], bool] = lambda _task: True
        """Returns whether nothing kept it from being known what became of a task."""
        self.on_changed: Callable[[GangTask], None] = lambda _task: None
        """Called when the pods of a task change, or what they hold."""

    def pod_changed(self, pod: Document, status: str) -> None:
        """Note that a pod was made, or that nothing of it runs any more."""
        uid = pod["metadata"]["uid"]
        task = self._task(pod)
        if status == "PROVISIONING":
            task.made += 1
            task.pods.add(uid)
            if len(task.pods) == 1:
                self.report(task, status)
        elif uid in task.pods:
            task.pods.discard(uid)
            if not task.pods:
                self.report(task, status)
        self.look()

    def _task(self, pod: Document) -> GangTask:
        name = task_of(pod)
        if name not in self.tasks:
            owner = str(pod["metadata"]["annotations"][OWNER])
            found = GangTask(name, owner.rpartition("/")[0], nodes_of(pod), owner)
            self.tasks[name] = found
            self.of_job[found.job_id].append(found)
        self._uids[pod["metadata"]["uid"]] = self.tasks[name]
        return self.tasks[name]

    def start(self, spec: ProcessSpec, start: Callable[[ProcessSpec], ProcessHandle]) -> ProcessHandle:
        """Start the program of a pod."""
        uid = spec.task_arn
        task = self._uids[uid]
        self._begin_again(task, self._job_of(uid))
        others = {rank.environment.group for rank in self._gangs.ranks.values() if self._is_other(rank, task)}
        self.check(GENERATIONS, not others, f"{task.name} beside {', '.join(sorted(others))}")

        def ended(code: int, reason: str | None) -> None:
            endings = self._gangs.logs[task.job_id].endings
            task.ends.setdefault(uid, (self._clock.now(), endings.get(uid, ""), self._rank_of(uid)))
            spec.on_exit(code, reason)
            self.look()

        task.started_at = self._clock.now()
        handle = start(replace(spec, on_exit=ended, log_target=None))
        if isinstance(handle, Rank):
            task.gang = handle.gang
            self.look()
        return handle

    def _begin_again(self, task: GangTask, job_uid: str) -> None:
        """Forget what became of an earlier Job of this name, which was deleted: its ranks are not waited for."""
        if task.gang is not None and task.job_uid != job_uid:
            self._gangs.groups.pop(task.gang.environment.group, None)
            task.ends.clear()
            task.taken.clear()
        task.job_uid = job_uid

    def _job_of(self, uid: str) -> str:
        pods = self._state.all("pods", self._namespace)
        owners = (each["metadata"]["ownerReferences"] for each in pods if each["metadata"]["uid"] == uid)
        return str(next(owners)[0]["uid"])

    def _is_other(self, rank: Rank, task: GangTask) -> bool:
        return rank.environment.job_id == task.job_id and self._uids[rank.spec.task_arn] is not task

    def _rank_of(self, uid: str) -> int:
        pods = self._state.all("pods", self._namespace)
        return next((index_of(each) or 0 for each in pods if each["metadata"]["uid"] == uid), -1)

    def _is_deleted(self, spec: ProcessSpec) -> bool:
        pods = self._state.all("pods", self._namespace)
        return any(
            each["metadata"]["uid"] == spec.task_arn and each["metadata"].get("deletionTimestamp") for each in pods
        )

    def taken(self, pod: Document, how: str) -> None:
        """Note that a pod is taken away that has not ended."""
        if not is_of_gang(pod) or is_over(pod):
            return
        if pod["metadata"].get("deletionTimestamp"):
            # It was about to end, and its node may be lost, which does not tell how.
            self._task(pod).is_unclear = True
        else:
            self._task(pod).taken.append((self._clock.now(), how))

    def described(self, names: Iterable[str]) -> None:
        """Note that a function has looked at these tasks."""
        for task in (self.tasks[each] for each in names if each in self.tasks):
            phases = [each["status"]["phase"] for each in self.pods_of(task)]
            if phases.count("Running") == task.nodes:
                task.seen_running.append(self._clock.now())

    def unclear(self, pods: Iterable[Document]) -> None:
        """Note that the nodes of these pods are announced to end, or out of reach."""
        for pod in pods:
            if is_of_gang(pod):
                self._task(pod).is_unclear = True

    def hang(self, pod: Document) -> bool:
        """Let the program of a pod hang; return whether it was at work."""
        uid = pod["metadata"]["uid"]
        rank = self._gangs.ranks.get(uid)
        if rank is None or not rank.gang.is_at_work:
            return False
        self._uids[uid].ends[uid] = (self._clock.now(), "hung", rank.environment.rank)
        self._gangs.logs[rank.environment.job_id].failed += 1
        self._gangs.freeze(uid)
        self.look()
        return True

    def pods_of(self, task: GangTask) -> Iterator[Document]:
        """Yield the pods of a task that the cluster has."""
        for pod in self._state.all("pods", self._namespace):
            if task_of(pod) == task.name:
                yield pod

    def look(self) -> None:
        """Look at what the tasks hold whose pods live."""
        for task in self.tasks.values():
            if task.pods or task.held_since is not None or task.broken_since is not None:
                self._look(task)

    def _look(self, task: GangTask) -> None:
        now = self._clock.now()
        # What was on a lost node has ended, though its pod is there; on one out of reach nobody can end it.
        away = {"", *self._out_of_reach}
        live = [each for each in self.pods_of(task) if each["metadata"]["uid"] in task.pods]
        nodes = {index_of(each): str(each["spec"].get("nodeName", "")) for each in live}
        if len(nodes) == task.nodes and all(nodes.values()):
            task.node = nodes[0]
        is_held = any(each["spec"].get("nodeName", "") not in away for each in live)
        is_waiting = is_held and not task.is_formed
        is_broken = is_held and task.gang is not None and task.is_formed and not task.gang.is_at_work
        task.held_since = (task.held_since or now) if is_waiting else None
        task.broken_since = (task.broken_since or now) if is_broken else None
        self.on_changed(task)
