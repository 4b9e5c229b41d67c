"""A job of several nodes on the API server of our own, and what can happen to its pods."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fakes.builders import make_definition
from fakes.kubernetes_clusters import NAMESPACE, STACK, ServedKubernetesCluster, served_cluster
from fakes.story import Story
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.adapters.kubernetes.target import KubernetesTarget, kubernetes_target
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.state import JobState
from relaunch.ports import Targets
from relaunch_local.ecs import Clock, ProcessSpec
from relaunch_local.kubernetes.indexed_jobs import index_of
from relaunch_local.kubernetes.state import Document

NODES = 3
WORKLOAD = KubernetesWorkload("registry.example.com/trainer:1", vcpus=4.0, memory_mib=16_384)
DEFINITION = make_definition(
    task_definition="",
    kubernetes=WORKLOAD,
    accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=8)),
    purchase=PurchasePolicy.ON_DEMAND,
    nodes=NODES,
    checkpoint_uri="s3://acme-checkpoints/llama/",
)


class ClusterClock:
    """The clock of a cluster, as a story moves it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def advance(self, step: timedelta | float) -> datetime:
        with self._clock.lock:
            self._clock.advance(step.total_seconds() if isinstance(step, timedelta) else step)
        return self.now()


class ClusterGang(Story):
    """A story of one definition of three nodes; every look comes when a test says so."""

    def __init__(self, cluster: ServedKubernetesCluster, definition: JobDefinition) -> None:
        clock: Any = ClusterClock(cluster.cluster.clock)
        target = kubernetes_target(cluster.client, cluster.kind, STACK, now=clock.now)
        targets = Targets({cluster.kind: lambda: target})
        super().__init__(replace(definition, target=cluster.kind), targets=targets, clock=clock)
        self.clock = clock
        self.target: KubernetesTarget = target
        self.cluster = cluster.cluster
        self.server = cluster.server
        self.processes = cluster.processes

    def add_nodes(self, count: int) -> None:
        """Add nodes with eight GPUs each."""
        there = len(self.cluster.state.all("nodes"))
        for number in range(there, there + count):
            self.cluster.add_node(f"node-{number}", gpus=8)

    def pods(self, job_id: str) -> dict[int, Document]:
        """Return the pods of the current task by their index; of two the one that is not being deleted."""
        found = [
            each
            for each in self.cluster.state.all("pods", NAMESPACE)
            if each["metadata"]["labels"][TASK] == self.arn(job_id)
        ]
        found.sort(key=lambda each: "deletionTimestamp" not in each["metadata"])
        return {index: each for each in found if (index := index_of(each)) is not None}

    def spec(self, pod: Document) -> ProcessSpec:
        """Return what the container of a pod was started with."""
        return self.processes.specs[pod["metadata"]["uid"]]

    def exit(self, job_id: str, rank: int, code: int) -> None:
        """Let the container of a rank exit."""
        with self.cluster.clock.lock:
            self.processes.of_task[self.pods(job_id)[rank]["metadata"]["uid"]].exit(code)

    def look(self, after: float = 60.0) -> None:
        """Let time pass, and look at the job as reconcile does, twice: what is seen first may be to stop it."""
        self.clock.advance(after)
        self.reconcile()
        self.settle()

    def train(self) -> str:
        """Let a push start a job whose pods all run; return its id."""
        job_id = self.submit_and_deliver()
        self.look()
        assert self.job(job_id).state is JobState.RUNNING
        return job_id

    def save(self, job_id: str, *codes: int) -> None:
        """Let the ranks that are to stop exit with these codes, or with 0."""
        for number, rank in enumerate(sorted(self.pods(job_id))):
            self.exit(job_id, rank, codes[number] if number < len(codes) else 0)

    def objects(self, kind: str) -> list[str]:
        """Return the names of the objects of a kind."""
        return [each["metadata"]["name"] for each in self.cluster.state.all(kind, NAMESPACE)]


@contextmanager
def cluster_gang(
    kind: Target = Target.ACK, *, minor: int = 36, nodes: int = NODES, definition: JobDefinition = DEFINITION
) -> Iterator[ClusterGang]:
    """Serve a cluster of a kind with so many nodes, and yield the story of a definition on it."""
    with served_cluster(kind, minor=minor) as served:
        story = ClusterGang(served, definition)
        story.add_nodes(nodes)
        yield story
