"""A queue of the cluster of a run: it lets a Job go on that was created suspended once there are GPUs for all its pods.

As Kueue does with the Jobs that name a queue ("Run A Kubernetes Job", Kueue), the oldest first; what it has admitted it
leaves alone.
"""

from relaunch.core.kubernetes.rules import QUEUE_LABEL
from relaunch_local.ecs import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.scheduler import is_over
from relaunch_local.kubernetes.state import Document, has_condition

_GPUS = "nvidia.com/gpu"
_EVERY_SECONDS = 15.0


class ClusterQueue:
    """Looks at the Jobs that wait, every few seconds."""

    def __init__(self, clock: Clock, cluster: KubernetesCluster, namespace: str) -> None:
        """Begin at once."""
        self._clock = clock
        self._cluster = cluster
        self._namespace = namespace
        self._admitted: set[str] = set()
        self._look()

    def _look(self) -> None:
        self._clock.call_later(_EVERY_SECONDS, self._look)
        jobs = [each for each in self._cluster.state.all("jobs", self._namespace) if self._waits(each)]
        for job in sorted(jobs, key=lambda each: str(each["metadata"]["creationTimestamp"])):
            if job["spec"]["parallelism"] > self._free():
                return
            self._admitted.add(job["metadata"]["uid"])
            self._cluster.patch_job(self._namespace, job["metadata"]["name"], {"spec": {"suspend": False}})

    def _waits(self, job: Document) -> bool:
        is_new = job["metadata"]["uid"] not in self._admitted and bool(job["spec"].get("suspend"))
        is_queued = QUEUE_LABEL in (job["metadata"].get("labels") or {})
        return is_new and is_queued and not has_condition(job, "Complete", "Failed")

    def _free(self) -> int:
        """Return how many GPUs no pod has, of nodes that are there and take pods."""
        nodes = self._cluster.state.all("nodes")
        taking = [each for each in nodes if has_condition(each, "Ready") and not each["spec"].get("taints")]
        names = {each["metadata"]["name"] for each in taking}
        pods = self._cluster.state.all("pods")
        used = sum(each["spec"].get("nodeName", "") in {*names, ""} and not is_over(each) for each in pods)
        return sum(int(each["status"]["allocatable"].get(_GPUS, 0)) for each in taking) - used
