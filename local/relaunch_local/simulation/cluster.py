"""The cluster of a run: the fake API server on the run's clock, called by the application's own client.

What a pod does reaches the invariants as an event of a task of ECS, so that those of tasks hold for pods too.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.labels import OWNER, TASK
from relaunch.adapters.kubernetes.target import KubernetesTarget, kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.effects import Effect, StopTask
from relaunch.core.kubernetes.ack import SHARING
from relaunch.core.kubernetes.node_labels import NodeLabel
from relaunch.core.launches.launch import TaskObservation
from relaunch.ports import Targets, TaskTarget
from relaunch_local.ecs import Clock, Event, ProcessSpec
from relaunch_local.ecs.engine.region import iso
from relaunch_local.ecs.processes.port import LogTarget, ProcessHandle
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.state import Document
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.delayed_ecs import TASK_STATE_CHANGE
from relaunch_local.simulation.aws.rank_environment import is_of_gang as is_rank
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.template import STACK
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.cluster_api import NAMESPACE, ClusterConnection, ClusterTransport
from relaunch_local.simulation.cluster_gangs import ClusterGangs, GangTask, is_of_gang
from relaunch_local.simulation.cluster_sign_in import SignIn
from relaunch_local.simulation.scenario import ClusterScenario, Scenario

_GPU_GIB = 15


class WatchedCluster(KubernetesCluster):
    """A cluster that tells what its pods do."""

    on_pod: Callable[[Document, str], None] = staticmethod(lambda _pod, _status: None)
    """Called with a pod and its state in ECS's words."""
    on_success: Callable[[Document], None] = staticmethod(lambda _pod: None)
    """Called with a pod whose program finished, and that nobody had deleted."""
    on_taken: Callable[[Document, str], None] = staticmethod(lambda _pod, _how: None)
    """Called with a pod that is taken away, before it is, and how."""
    on_placed: Callable[[], None] = staticmethod(lambda: None)
    """Called when pods may have been placed."""

    def start_pod(self, pod: Document) -> None:
        """Let a pod that was added be scheduled."""
        self.on_pod(pod, "PROVISIONING")
        super().start_pod(pod)

    def schedule(self) -> None:
        """Place the pods that wait."""
        super().schedule()
        self.on_placed()

    def delete_pod(self, namespace: str, name: str, grace_seconds: float | None = None) -> None:
        """Delete a pod by hand."""
        self.on_taken(self.state.get("pods", namespace, name), "deleted")
        super().delete_pod(namespace, name, grace_seconds)

    def disrupt(self, pod: Document, reason: str, message: str, *, has_condition: bool = True) -> None:
        """Take a pod away."""
        self.on_taken(pod, reason)
        super().disrupt(pod, reason, message, has_condition=has_condition)

    def delete_job(self, namespace: str, name: str) -> None:
        """Delete a Job, and its pods."""
        self._take_all(name, "its Job deleted")
        super().delete_job(namespace, name)

    def suspend_job(self, namespace: str, name: str) -> None:
        """Let a queue take the places of a Job."""
        self._take_all(name, "suspended")
        self.patch_job(namespace, name, {"spec": {"suspend": True}})

    def _take_all(self, job: str, how: str) -> None:
        for pod in self.state.all("pods"):
            if pod["metadata"]["labels"].get("job-name") == job:
                self.on_taken(pod, how)

    def lose_node(self, name: str) -> None:
        """Lose a node, on which nothing runs any more."""
        for pod in self.state.all("pods"):
            if pod["spec"].get("nodeName") == name:
                self.on_taken(pod, "its node lost")
        super().lose_node(name)
        for pod in self.state.all("pods"):
            if pod["spec"].get("nodeName") == name:
                self.on_pod(pod, "STOPPED")

    def _pod_ended(self, pod: Document) -> None:
        self.on_pod(pod, "STOPPED")
        is_deleted = bool(pod["metadata"].get("deletionTimestamp"))
        super()._pod_ended(pod)
        if pod["status"].get("phase") == "Succeeded" and not is_deleted:
            self.on_success(pod)

    def _remove_pod(self, pod: Document) -> None:
        self.on_pod(pod, "STOPPED")
        super()._remove_pod(pod)


@dataclass
class Troubles:
    """What was done to tasks, by their names: when, and what must follow from it (cluster_jobs)."""

    cleaned: dict[str, datetime] = field(default_factory=dict)
    """The pod was removed right after its program finished."""
    suspended: dict[str, datetime] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    """The best-effort capacity of the pod was announced to be released, and was."""
    announced: dict[str, datetime] = field(default_factory=dict)
    """When a taint announced the end of its node, with which the pod ended."""
    looked_at: defaultdict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """When a function was answered what became of it, and could read its node."""
    unheard: set[str] = field(default_factory=set)
    """Its node was cut off."""


class _PodProcesses:
    """Starts the trainings of pods under the names of their tasks."""

    def __init__(self, trainings: Trainings, clock: Clock) -> None:
        self._trainings = trainings
        self._clock = clock
        self.gangs: ClusterGangs
        self.names: dict[str, str] = {}
        self.started_at: dict[str, datetime] = {}
        """When the training of each task started."""

    def start(self, spec: ProcessSpec) -> ProcessHandle:
        task = self.names[spec.task_arn]
        self.started_at[task] = self._clock.now()
        if is_rank(spec.environment):
            # Each rank has its own name: that of its pod.
            return self.gangs.start(spec, self._trainings.start)
        return self._trainings.start(replace(spec, task_arn=task, log_target=None))

    def close(self) -> None:
        self._trainings.close()

    def write(self, target: LogTarget | None, timestamp: int, text: str) -> None:
        del target, timestamp, text


class _NotingTarget:
    """The target; it tells each stop that took effect, and which tasks functions look at."""

    def __init__(
        self,
        target: KubernetesTarget,
        on_effect: Callable[[type[Effect], str], None],
        on_described: Callable[[Sequence[str]], None],
    ) -> None:
        self._target = target
        self._on_effect = on_effect
        self._on_described = on_described

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def describe(self, task_ids: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        found = self._target.describe(task_ids)
        self._on_described(task_ids)
        return found

    def stop(self, task_id: str, reason: str) -> None:
        self._target.stop(task_id, reason)
        self._on_effect(StopTask, task_id)


class ClusterWorld:
    """The cluster of one run."""

    def __init__(self, clock: Clock, trainings: Trainings, scenario: ClusterScenario) -> None:
        """Create it with nodes of two GPUs each."""
        self.trainings = trainings
        self.processes = _PodProcesses(trainings, clock)
        self._scenario = scenario
        is_ack = scenario.definition.target is Target.ACK
        self.cluster = WatchedCluster(clock, self.processes, minor=scenario.minor, is_ack=is_ack, pull_seconds=20.0)
        self.cluster.on_pod = self._pod_changed
        found = (self.cluster.state, NAMESPACE, self.cluster.nodes_out_of_reach)
        self.gangs = self.processes.gangs = ClusterGangs(clock, trainings, *found)
        self.gangs.report = self._report
        self.cluster.on_taken = self.gangs.taken
        self.cluster.on_placed = self.gangs.look
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.asked_at: dict[str, datetime] = {}
        """When each task was asked to stop first."""
        self.ended_at: dict[str, datetime] = {}
        """When the pod of each task ended."""
        self.pod_counts = Counter[str]()
        """How many pods each task had."""
        self.troubles = Troubles()
        self._clock = clock
        self._tasks: dict[str, dict[str, Any]] = {}
        self._numbers = iter(range(1_000_000))
        self._bought: dict[str, NodeLabel | None] = {}
        for _ in range(scenario.nodes):
            self.add_node()

    def add_node(self, like: str = "") -> None:
        """Add a node, bought as another one was; without one, nodes are on spot and on demand in turn."""
        number = next(self._numbers)
        name = f"cn-beijing.10.0.0.{number}"
        labels = {"node.kubernetes.io/instance-type": "ecs.gn7i", "topology.kubernetes.io/zone": "cn-beijing-a"}
        if self._scenario.gpu_sharing is not None:
            labels[SHARING] = self._scenario.gpu_sharing.value
        if self._scenario.definition.target is Target.ACS:
            labels["type"] = "virtual-kubelet"
        if self._scenario.labels is not None:
            by_turn = self._scenario.labels.on_demand if number % 2 else self._scenario.labels.spot
            self._bought[name] = self._bought.get(like, by_turn)
            bought = self._bought[name]
            labels |= {bought.key: bought.value} if bought is not None else {}
        self.cluster.add_node(name, gpus=2, gpu_gib=_GPU_GIB, labels=labels)

    def nodes(self) -> list[str]:
        """Return the nodes that are there and heard of."""
        names = [str(each["metadata"]["name"]) for each in self.cluster.state.all("nodes")]
        return [each for each in names if each not in self.cluster.nodes_out_of_reach]

    def pods(self) -> Iterator[Document]:
        """Yield the pods that run."""
        for pod in self.cluster.state.all("pods", NAMESPACE):
            if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
                yield pod

    def make_target(
        self,
        calls: Calls,
        clients: SignIn,
        page_size: int | None,
        on_effect: Callable[[type[Effect], str], None],
        on_refused: Callable[[str], None],
    ) -> TaskTarget:
        """Return the target of the application's functions, which sign in with their clients."""

        def stopped(kind: type[Effect], task_id: str) -> None:
            self.asked_at.setdefault(task_id, self._clock.now())
            on_effect(kind, task_id)

        def described(names: Sequence[str]) -> None:
            self.gangs.described(names)
            for each in names:
                self.troubles.looked_at[each].append(self._clock.now())

        transport = ClusterTransport(self.cluster, calls, page_size, reads_nodes=self._scenario.reads_nodes)
        transport.on_refused = on_refused
        name = self._scenario.definition.target
        connection: Any = ClusterConnection(transport, lambda: clients.sign_in(name), self._clock)
        client = KubernetesClient(connection)
        made = kubernetes_target(client, name, STACK, self._scenario.labels, self._clock.now)
        target: Any = _NotingTarget(made, stopped, described)
        found: TaskTarget = target
        return found

    def _pod_changed(self, pod: Document, status: str) -> None:
        """Report a pod as ECS reports a task."""
        metadata = pod["metadata"]
        name = metadata["labels"][TASK]
        self.processes.names[metadata["uid"]] = name
        if is_of_gang(pod):
            self.gangs.pod_changed(pod, status)
            return
        if status == "PROVISIONING":
            self.pod_counts[name] += 1
        detail = self._tasks.setdefault(
            metadata["uid"], {"taskArn": name, "startedBy": metadata["annotations"][OWNER], "desiredStatus": ""}
        )
        if detail.get("lastStatus") == "STOPPED":
            return
        if status == "STOPPED":
            self.ended_at[name] = self._clock.now()
        self._tell(detail, status)

    def _report(self, task: GangTask, status: str) -> None:
        """Report the pods of a gang as ECS reports one task: it lives while one of them does."""
        self.ended_at |= {task.name: self._clock.now()} if status == "STOPPED" else {}
        detail = self._tasks.setdefault(task.name, {"taskArn": task.name, "startedBy": task.owner, "desiredStatus": ""})
        detail |= {"containerInstanceArn": task.node} if task.node else {}
        self._tell(detail, status)

    def _tell(self, detail: dict[str, Any], status: str) -> None:
        now = iso(self._clock.now())
        detail |= {"lastStatus": status, "version": detail.get("version", 0) + 1}
        detail |= {"stoppedAt": now} if status == "STOPPED" else {"createdAt": now}
        self.on_event({"detail-type": TASK_STATE_CHANGE, "detail": dict(detail)})


def make_cluster(
    clock: Clock, chance: Chance, objects: ObjectStore, scenario: Scenario, invariants: Invariants
) -> ClusterWorld | None:
    """Return the cluster of a run, None if its scenario has none."""
    if scenario.cluster is None:
        return None
    trainings = Trainings(clock, chance, objects, scenario.recipes, invariants.container_started)
    world = ClusterWorld(clock, trainings, scenario.cluster)
    world.on_event = invariants.task_changed
    world.gangs.check = trainings.check = trainings.gangs.check = invariants.check
    return world


def make_targets(
    ecs: TaskTarget,
    world: ClusterWorld | None,
    calls: Calls,
    clients: SignIn,
    scenario: Scenario,
    invariants: Invariants,
) -> Targets:
    """Return the targets of a stack: ECS, and the cluster if there is one, with the clients of functions."""
    makers: dict[Target, Callable[[], TaskTarget]] = {Target.ECS: lambda: ecs}
    if world is not None and scenario.cluster is not None:

        def refused(what: str) -> None:
            invariants.check("the role in the cluster allows what is asked of it", holds=False, message=what)

        on_cluster = world.make_target(calls, clients, scenario.page_size, invariants.effects.done, refused)
        makers[scenario.cluster.definition.target] = lambda: on_cluster
    return Targets(makers)
