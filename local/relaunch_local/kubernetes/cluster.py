"""A cluster: API objects, the Job controller, a scheduler, kubelets, and what may happen to nodes and pods.

It answers as real servers do (1.36.2 and 1.20.2), as far as a launcher asks. What it does not do: watches, RBAC but for
what is forbidden by hand, several main containers in a pod, what is in volumes.
"""

import base64
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import LogTarget, Processes
from relaunch_local.kubernetes.ack_rules import COMPUTE, COUNT, MEMORY, admit_gpu_shares
from relaunch_local.kubernetes.device_plugins import refuse_after_boot
from relaunch_local.kubernetes.errors import ApiError, conflict
from relaunch_local.kubernetes.job_controller import JobController, select_pods
from relaunch_local.kubernetes.job_rules import POD_POLICIES, admit_change, admit_job
from relaunch_local.kubernetes.kubelet import Kubelet
from relaunch_local.kubernetes.patches import MERGE, apply_patch
from relaunch_local.kubernetes.pod_admission import PodAdmission
from relaunch_local.kubernetes.pod_logs import read_lines
from relaunch_local.kubernetes.pod_placing import PodPlacing
from relaunch_local.kubernetes.scheduler import is_over
from relaunch_local.kubernetes.state import ClusterState, Document, set_condition, write_time

_EVICTION_BY_TAINT_SECONDS = 300.0
_POD_GC_SECONDS = 40.0
RELEASE_NOTICE_SECONDS = 300.0
"""How long before its end the release of best-effort capacity of ACS is announced."""


class KubernetesCluster:
    """A cluster of one minor version; `is_ack` adds the rules of ACK's shared GPUs, and its own scheduler.

    Methods may be called by several threads.
    """

    def __init__(
        self, clock: Clock, processes: Processes, *, minor: int = 36, is_ack: bool = False, pull_seconds: float = 1.0
    ) -> None:
        self.clock = clock
        self.minor = minor
        self.state = ClusterState(clock)
        self._is_ack = is_ack
        self._kubelet = Kubelet(self.state, processes, pull_seconds)
        self._kubelet.on_end = self._pod_ended
        self._kubelet.on_event = self.record_event
        self._kubelet.refuse_after_boot = lambda pod: refuse_after_boot(pod, minor)
        self._jobs = JobController(self.state, self, minor)
        self._scheduler = PodPlacing(self.state, self._kubelet.start, self.record_event, is_ack=is_ack)

    # What is asked of the API.

    def create_job(
        self, namespace: str, sent: Mapping[str, Any], *, is_strict: bool = False
    ) -> tuple[Document, list[str]]:
        """Create a Job; return it as it is stored, and warnings.

        Raises:
            ApiError: it is malformed, invalid, denied, or there is one of its name.
        """
        job, warnings = admit_job(sent, self.minor, is_strict=is_strict)
        if self._is_ack:
            admit_gpu_shares(job)
        with self.clock.lock:
            self.state.add("jobs", namespace, job)
            select_pods(job, self.minor)
            created = deepcopy(job)
            self._jobs.begin(job)
            return created, warnings

    def patch_job(self, namespace: str, name: str, patch: Mapping[str, Any], kind: str = MERGE) -> Document:
        """Merge a patch into a Job; `kind` is its media type.

        Raises:
            ApiError: 404; 422, what it changes cannot be changed.
        """
        with self.clock.lock:
            job = self.state.get("jobs", namespace, name)
            changed = apply_patch(job, patch, kind)
            admit_change(changed, job, self.minor)
            before = job["spec"]
            job["spec"] = changed["spec"]
            job["metadata"] = changed["metadata"]
            self.state.touch(job)
            changed = deepcopy(job)
            self._jobs.follow(job, before)
            return changed

    def delete_job(self, namespace: str, name: str) -> None:
        """Delete a Job, and its pods in the background.

        Raises:
            ApiError: 404.
        """
        with self.clock.lock:
            self._jobs.remove(self.state.get("jobs", namespace, name))

    def delete_pod(self, namespace: str, name: str, grace_seconds: float | None = None) -> None:
        """Delete a pod: SIGTERM, SIGKILL after its grace period.

        Raises:
            ApiError: 404.
        """
        with self.clock.lock:
            self.end_pod(self.state.get("pods", namespace, name), grace_seconds)

    def evict_pod(self, namespace: str, name: str, api_version: str = "policy/v1") -> None:
        """Evict a pod by the eviction API, as a drain does; one that has ended is deleted at once.

        Source: EvictionREST.Create and canIgnorePDB in pkg/registry/core/pod/storage/eviction.go of Kubernetes, which
        answers both alike.

        Raises:
            ApiError: 404; 400, the server is older than the version.
        """
        known = {"policy/v1": self.minor >= 22, "policy/v1beta1": self.minor < 25}
        if not known.get(api_version, False):
            said = f'no kind "Eviction" is registered for version "{api_version}" in scheme'
            raise ApiError(400, "BadRequest", f'Eviction in version "v1" cannot be handled as a Eviction: {said}')
        with self.clock.lock:
            pod = self.state.get("pods", namespace, name)
            self.disrupt(pod, "EvictionByEvictionAPI", "Eviction API: evicting")

    def replace_config_map(self, namespace: str, name: str, sent: Document) -> Document:
        """Store a ConfigMap that was read before.

        Raises:
            ApiError: 404; 409, it was changed since.
        """
        with self.clock.lock:
            stored = self.state.get("configmaps", namespace, name)
            if sent["metadata"].get("resourceVersion") not in {None, stored["metadata"]["resourceVersion"]}:
                raise conflict("configmaps", name)
            fixed = {key: stored["metadata"][key] for key in ("name", "namespace", "uid", "creationTimestamp")}
            replaced = {**deepcopy(sent), "metadata": {**sent["metadata"], **fixed}}
            self.state.replace("configmaps", replaced)
            return replaced

    def read_log(self, namespace: str, name: str, container: str, since: str = "") -> list[tuple[str, str]]:
        """Return the lines of a container with their times, from a time on (`pod_logs.read_lines`)."""
        with self.clock.lock:
            return read_lines(self.state, namespace, name, container, since)

    # What happens in the cluster.

    def add_node(
        self,
        name: str,
        *,
        gpus: int = 0,
        gpu_gib: int = 0,
        labels: Mapping[str, str] | None = None,
        extended: Mapping[str, str] | None = None,
    ) -> Document:
        """Add a node with whole GPUs, or with GPUs that are shared if its label `ack.node.gpu.schedule` says so.

        `extended` are resources that it offers besides, such as partitions of GPUs.
        """
        mode = (labels or {}).get("ack.node.gpu.schedule", "")
        resources = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        if mode in {"core_mem", "cgpu", "share"}:
            resources |= {COUNT: str(gpus), MEMORY: str(gpus * gpu_gib)}
        if mode == "core_mem":
            resources[COMPUTE] = str(gpus * 100)
        elif gpus and MEMORY not in resources:
            resources["nvidia.com/gpu"] = str(gpus)
        resources |= extended or {}
        status: Document = {"capacity": resources, "allocatable": dict(resources), "conditions": []}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}
        with self.clock.lock:
            set_condition(node, "Ready", "True", self.state.now(), ("KubeletReady", "kubelet is posting ready status"))
            self.state.add("nodes", "", node)
            self.schedule()
            return node

    def add_namespace(self, name: str) -> None:
        """Add a namespace; what is created in one that is not there is taken all the same."""
        with self.clock.lock:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.state.add("namespaces", "", namespace | {"status": {"phase": "Active"}})

    def taint_node(self, name: str, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        """Give a node a taint, which keeps new pods away, and those that are there with NoSchedule stay."""
        with self.clock.lock:
            node = self.state.get("nodes", "", name)
            node["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
            self.state.touch(node)

    def untaint_node(self, name: str, key: str) -> None:
        """Take a taint from a node, as Karpenter does where the replacement of the node did not come up."""
        with self.clock.lock:
            node = self.state.get("nodes", "", name)
            node["spec"]["taints"] = [each for each in node["spec"].get("taints", ()) if each["key"] != key]
            self.state.touch(node)
            self.schedule()

    def delete_node(self, name: str) -> None:
        """Delete a node with a finalizer, as Karpenter's have ("Disruption"): it is there until it is removed."""
        with self.clock.lock:
            node = self.state.get("nodes", "", name)
            node["metadata"].setdefault("deletionTimestamp", self.state.now())
            self.state.touch(node)

    def add_claim(self, namespace: str, name: str) -> None:
        """Add a persistent volume claim that is bound, for which a pod may wait."""
        with self.clock.lock:
            status = {"phase": "Bound"}
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "status": status}
            self.state.add("persistentvolumeclaims", namespace, claim)
            self.schedule()

    def add_secret(self, namespace: str, name: str, **values: str) -> None:
        """Add a Secret with these keys."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        with self.clock.lock:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
            self.state.add("secrets", namespace, secret)

    def lose_node(self, name: str) -> None:
        """Lose a node: its pods stay as they were, for five minutes, and then are deleted without being gone."""
        with self.clock.lock:
            self._unready(name)
            self._kubelet.lose(name)
            self.clock.call_later(_EVICTION_BY_TAINT_SECONDS, lambda: self._evict_from(name))

    def cut_off_node(self, name: str, *, for_seconds: float) -> None:
        """Cut a node off for a time: what runs there goes on, and what is deleted meanwhile ends when it is back."""
        with self.clock.lock:
            self._unready(name)
            self._kubelet.cut_off(name)
            self.clock.call_later(_EVICTION_BY_TAINT_SECONDS, lambda: self._evict_from(name))
            self.clock.call_later(for_seconds, lambda: self._reconnect(name))

    def restart_runtime(self, name: str) -> None:
        """Restart the container runtime of a node, which loses the containers that run there."""
        with self.clock.lock:
            self._kubelet.restart_runtime(name)

    def reboot_node(self, name: str, *, for_seconds: float = 120.0) -> None:
        """Reboot a node: its pods stay as they were until it is back, and have lost their containers then."""
        with self.clock.lock:
            self._unready(name)
            self._kubelet.shut_down(name)
            self.clock.call_later(_EVICTION_BY_TAINT_SECONDS, lambda: self._evict_from(name))
            self.clock.call_later(for_seconds, lambda: self._reconnect(name))

    def _reconnect(self, name: str) -> None:
        node = self.state.find("nodes", "", name)
        if node is None:
            return
        set_condition(node, "Ready", "True", self.state.now(), ("KubeletReady", "kubelet is posting ready status"))
        self.state.touch(node)
        self._kubelet.reconnect(name)
        for pod in self.state.all("pods"):
            if pod["spec"].get("nodeName") == name and pod["metadata"].get("deletionTimestamp"):
                self.end_pod(pod)
        self.schedule()

    def _unready(self, name: str) -> None:
        node = self.state.get("nodes", "", name)
        set_condition(node, "Ready", "Unknown", self.state.now(), ("NodeStatusUnknown", "Kubelet stopped posting"))
        self.state.touch(node)

    def remove_node(self, name: str) -> None:
        """Remove a node, as the cloud's controller does with a machine that is gone; 40 s later its pods are too."""
        with self.clock.lock:
            self.state.remove("nodes", self.state.get("nodes", "", name))
            self._kubelet.lose(name)
            self.clock.call_later(_POD_GC_SECONDS, lambda: self._collect_pods(name))

    def release_best_effort(self, namespace: str, name: str) -> None:
        """Announce that a best-effort pod of ACS is released, and end it five minutes later.

        Source: "Overview of BestEffort computing" (ACS): the event. The status of a released pod is not documented:
        here it gives no reason, as the worst that may be.

        Raises:
            ApiError: 404.
        """
        with self.clock.lock:
            pod = self.state.get("pods", namespace, name)
            self.record_event(pod, "Warning", "BestEffortToBeReleased", "BestEffort instance will be released")
            # Undivided by the clock's speed, as the time that a program has to save.
            self.clock.call_later(RELEASE_NOTICE_SECONDS * self.clock.speed, lambda: self._kubelet.release(pod))

    @property
    def nodes_out_of_reach(self) -> set[str]:
        """Nodes that nothing is heard of: lost, or cut off for a time."""
        return self._kubelet.lost_nodes

    @property
    def qualities_out_of_stock(self) -> set[str]:
        """Qualities of service of ACS, `default` and `best-effort`, whose pods are placed and get no instance."""
        return self._kubelet.qualities_out_of_stock

    def disrupt(self, pod: Document, reason: str, message: str, *, has_condition: bool = True) -> None:
        """Take a pod away; without the condition DisruptionTarget as servers before 1.26 do, and perhaps others."""
        with self.clock.lock:
            if has_condition and self.minor >= POD_POLICIES:
                set_condition(pod, "DisruptionTarget", "True", self.state.now(), (reason, message))
            self.end_pod(pod)

    def record_event(self, about: Document, kind: str, reason: str, message: str) -> None:
        """Record an event; `kind` is Normal or Warning. Repeated ones are counted."""
        with self.clock.lock:
            self.state.record_event(about, kind, reason, message)

    def write_log(self, target: LogTarget | None, milliseconds: int, text: str) -> None:
        """Add a line of a container's output; for the sink of processes."""
        if target is None:
            return
        at = datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        with self.clock.lock:
            self.state.logs.setdefault(target.stream, []).append((at, text))

    # For the Job controller.

    def start_pod(self, pod: Document) -> None:
        """Let a pod that was added be scheduled, with all that wait."""
        self.state.touch(pod)
        self.schedule()

    def end_pod(self, pod: Document, grace_seconds: float | None = None) -> None:
        """Let a pod end within its grace period; it is removed then, as it is at once if nothing of it runs.

        Source: CheckGracefulDelete in pkg/registry/core/pod/strategy.go: a pod that has ended has no grace period.
        """
        grace = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace_seconds is None else grace_seconds
        grace = 0 if is_over(pod) else grace
        # When it is to be gone (BeforeDelete in pkg/registry of k8s.io/apiserver).
        gone_by = write_time(self.clock.now() + timedelta(seconds=grace))
        pod["metadata"].setdefault("deletionTimestamp", gone_by)
        pod["metadata"]["deletionGracePeriodSeconds"] = int(grace)
        self.state.touch(pod)
        self._jobs.pod_is_deleted(pod)
        is_silent = pod["spec"].get("nodeName") in self._kubelet.lost_nodes and grace > 0
        if is_silent or self._kubelet.stop(pod, grace):
            return
        self._remove_pod(pod)

    def schedule(self) -> None:
        """Place the pods that wait, the oldest first."""
        self._scheduler.place_pods()

    @property
    def schedulers(self) -> set[str]:
        """The names of the schedulers that there are."""
        return self._scheduler.names

    @property
    def admission(self) -> PodAdmission:
        """What the pods of Jobs must pass to be created."""
        return self._jobs.admission

    @property
    def missing_images(self) -> set[str]:
        """Images that no registry has: pods with them wait."""
        return self._kubelet.missing_images

    @property
    def image_ids(self) -> dict[str, str]:
        """What the runtime reports of images, where that is not the digest that follows from their names."""
        return self._kubelet.image_ids

    def _pod_ended(self, pod: Document) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self._remove_pod(pod)
            return
        self._jobs.pod_ended(pod)
        self.schedule()

    def _remove_pod(self, pod: Document) -> None:
        namespace = pod["metadata"]["namespace"]
        name = pod["metadata"]["name"]
        if self.state.find("pods", namespace, name) is not pod:
            return
        self.state.remove("pods", pod)
        self._jobs.pod_ended(pod)
        self.schedule()

    def _evict_from(self, node: str) -> None:
        if node not in self._kubelet.lost_nodes:
            return
        for pod in self.state.all("pods"):
            if pod["spec"].get("nodeName") == node and not is_over(pod):
                self.disrupt(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")

    def _collect_pods(self, node: str) -> None:
        for pod in self.state.all("pods"):
            if pod["spec"].get("nodeName") != node or is_over(pod):
                continue
            if self.minor >= POD_POLICIES:
                why = ("DeletionByPodGC", "PodGC: node no longer exists")
                set_condition(pod, "DisruptionTarget", "True", self.state.now(), why)
                pod["status"]["phase"] = "Failed"
            self.end_pod(pod, 0)
