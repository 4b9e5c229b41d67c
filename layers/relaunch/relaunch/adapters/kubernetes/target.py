"""Jobs and nodes of a namespace of a Kubernetes cluster as tasks and nodes of a target."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

from relaunch.adapters.kubernetes.api.errors import AlreadyExistsError, NotFoundError
from relaunch.adapters.kubernetes.api.models import Event, Job, Node, Pod
from relaunch.adapters.kubernetes.gang_ends import RankEnds, has_late_pod, read_ends, read_replaced, reason_of_end
from relaunch.adapters.kubernetes.gang_launch import GangCluster, check_cluster, finish_launch
from relaunch.adapters.kubernetes.gang_observation import GangSigns, lacks_ranks, nodes_of, observe_ranks
from relaunch.adapters.kubernetes.labels import (
    REQUEST,
    STOP_REASON,
    TASK,
    is_task_name,
    select_attempt,
    select_stack,
    select_tasks,
)
from relaunch.adapters.kubernetes.launches import check_limits, outcome_of_error, outcome_of_existing
from relaunch.adapters.kubernetes.manifest import manifest_builder
from relaunch.adapters.kubernetes.observation import is_ending, is_stop_called, observe_node, observe_task
from relaunch.adapters.kubernetes.own_ends import COMPLETED, KILLING, find_finished, lacks_end
from relaunch.adapters.kubernetes.pod_refusals import FAILED_CREATE, report_refusal
from relaunch.adapters.kubernetes.pod_warnings import PodWarnings, is_ending_pod
from relaunch.adapters.kubernetes.queues import KNOWS_SUSPEND, QUEUE_PENDING, find_queue_words, is_held_back
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.launches.launch import (
    LaunchOutcome,
    LaunchRequest,
    LaunchUncertain,
    NodeObservation,
    StopReport,
    TaskObservation,
    TaskPlaced,
)
from relaunch.core.selection.gpu_share import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources
from relaunch.ports import PermanentError, PortError, TransientError

# A name has up to 63 characters, and proxies take addresses of 8 KiB.
_NAMES_PER_REQUEST = 50
# The Job controller deletes the pods of a Job that is older than this. That of old servers (1.20) waits for ever when
# the deadline is set in the moment in which it begins with the Job, and looks again when another deadline is set.
_DEADLINE_SECONDS = 1
_OTHER_DEADLINE_SECONDS = 2

ManifestBuilder = Callable[[LaunchRequest], Mapping[str, Any]]
"""Builds the Job of a placement, the same for the same request, with the labels and the owner of `labels`."""


class Cluster(GangCluster, Protocol):
    """What is asked of the Kubernetes API; see `api.client`, whose errors these are."""

    @property
    def identity(self) -> str: ...

    def create_job(self, manifest: Mapping[str, Any]) -> Job: ...

    def get_job(self, name: str) -> Job | None: ...

    def patch_job(self, name: str, patch: Mapping[str, Any]) -> Job: ...

    def list_jobs(self, label_selector: str) -> Iterator[Sequence[Job]]: ...

    def list_pods(self, label_selector: str) -> Iterator[Sequence[Pod]]: ...

    def list_nodes(self) -> Iterator[Sequence[Node]]: ...

    def get_node(self, name: str) -> Node | None: ...

    def list_events(self, involved_object_uid: str = "", reason: str = "") -> Sequence[Event]: ...


class KubernetesTarget:
    """Implements TaskTarget for the Jobs of one stack in one namespace.

    A task is a Job with one pod, or with one for each node, and its name in the target is that of the Job. The Job of a
    placement has a name of its own, so that it is created once however often it is sent. Machines are the cluster's:
    what asks for EC2 instances finds none.
    """

    def __init__(self, cluster: Cluster, stack: str, build_manifest: ManifestBuilder, warnings: PodWarnings) -> None:
        self._cluster = cluster
        self._now = warnings.now
        self._stack = stack
        self._build_manifest = build_manifest
        self._warnings = warnings

    def identify(self) -> str:
        return self._cluster.identity

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        manifest = self._build_manifest(request)
        if violations := check_limits(manifest):
            raise PermanentError(f"launching {request.attempt}: {'; '.join(violations)}")
        name = str(manifest["metadata"]["name"])
        request_hash = hash_of(manifest)
        try:
            if manifest["spec"].get("suspend"):
                self._check_suspend()
            if request.nodes > 1:
                check_cluster(self._cluster, manifest)
            created = self._cluster.create_job(with_hash(manifest, request_hash))
        except AlreadyExistsError:
            return self._outcome_of_existing(manifest, request_hash)
        except PortError as error:
            return outcome_of_error(error)
        return TaskPlaced(name) if request.nodes == 1 else finish_launch(self._cluster, manifest, created)

    def _check_suspend(self) -> None:
        """Check that the cluster holds Jobs back: one that does not would run the job past its queue.

        Raises:
            PermanentError: it does not.
        """
        version = self._cluster.version()
        if version.minor < KNOWS_SUSPEND:
            raise PermanentError(
                f"`kubernetes.queue` needs Kubernetes 1.{KNOWS_SUSPEND}, which suspends Jobs: the cluster has "
                f"{version.git_version}, on which the job would run past its queue"
            )

    def _outcome_of_existing(self, manifest: Mapping[str, Any], request_hash: str) -> LaunchOutcome:
        name = str(manifest["metadata"]["name"])
        try:
            existing = self._cluster.get_job(name)
        except PortError as error:
            return LaunchUncertain(f"the Job {name} exists and cannot be read: {error}")
        outcome = outcome_of_existing(name, existing, request_hash)
        if existing is None or nodes_of(existing, ()) == 1:
            return outcome
        finished = finish_launch(self._cluster, manifest, existing)
        is_conflict = isinstance(finished, TaskPlaced) and not isinstance(outcome, TaskPlaced)
        return outcome if is_conflict else finished

    def stop(self, task_id: str, reason: str) -> None:
        """Stop a task by the deadline of its Job: no pod replaces the one that the Job controller then deletes.

        If the pod were deleted, an old server (1.20) would start another one; if the Job were, the task would soon be
        unknown, and its outcome with it. The reason is in the same request, so that there is no stop without it; the
        first one stays.
        """
        job = self._cluster.get_job(task_id) if is_task_name(task_id) else None
        if job is None or is_ending(job):
            return
        is_set = job.spec.active_deadline_seconds == _DEADLINE_SECONDS
        deadline = _OTHER_DEADLINE_SECONDS if is_set else _DEADLINE_SECONDS
        annotations = {STOP_REASON: job.metadata.annotations.get(STOP_REASON, reason)}
        spec = {"activeDeadlineSeconds": deadline}
        if is_held_back(job):
            # The deadline counts from when a queue lets it go on: then without a pod, which needs no quota.
            spec["parallelism"] = 0
        patch = {"metadata": {"annotations": annotations}, "spec": spec}
        try:
            self._cluster.patch_job(task_id, patch)
        except NotFoundError:
            return

    def describe(self, task_ids: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        observed: dict[str, TaskObservation | None] = dict.fromkeys(task_ids)
        names = [each for each in observed if is_task_name(each)]
        for start in range(0, len(names), _NAMES_PER_REQUEST):
            selector = select_tasks(self._stack, names[start : start + _NAMES_PER_REQUEST])
            jobs = [job for page in self._cluster.list_jobs(selector) for job in page]
            observed.update({task.task_id: task for task in self._observe(jobs, selector)})
        return observed

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        for page in self._cluster.list_jobs(select_stack(self._stack)):
            unfinished = [job for job in page if not is_stop_called(job)]
            yield [task for task in self._observe_page(unfinished) if not task.phase.is_ending]

    def find_tasks_of(self, attempt: AttemptKey) -> list[TaskObservation]:
        selector = select_attempt(self._stack, attempt)
        jobs = [job for page in self._cluster.list_jobs(selector) for job in page]
        # A label may be a hash of the job.
        return [task for task in self._observe(jobs, selector) if task.owner == attempt]

    def list_nodes(self) -> Iterator[Sequence[NodeObservation]]:
        """Yield the nodes; none if the role of Relaunch may not read them, which it need not."""
        # Those of one task may be on several nodes.
        pods = {pod.metadata.name: pod for page in self._cluster.list_pods(select_stack(self._stack)) for pod in page}
        counts = Counter(pod.spec.node_name for pod in pods.values() if not is_ending_pod(pod))
        try:
            for nodes in self._cluster.list_nodes():
                yield [observe_node(each, counts[each.metadata.name]) for each in nodes]
        except PermanentError:
            return

    def find_daemon_services(self) -> frozenset[str]:
        """Return none: only tasks of Relaunch are listed, and counted on nodes."""
        return frozenset()

    def find_node(self, node: str) -> NodeObservation | None:
        found = (each for page in self.list_nodes() for each in page)
        return next((each for each in found if each.node.name == node), None)

    def find_tasks_on(self, instance_id: str) -> list[TaskObservation]:
        del instance_id
        return []

    def drain(self, instance_id: str) -> None:
        """Do nothing: the instance is EC2's, and no node of the cluster."""

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        del instance_type, capacity_provider
        return []

    def find_remaining_resources(
        self, instance_type: str, capacity_provider: str, instance_id: str = ""
    ) -> list[RemainingResources]:
        del instance_type, capacity_provider, instance_id
        return []

    def find_node_of(self, instance_id: str) -> NodeObservation | None:
        del instance_id
        return None

    def deregister(self, node: str) -> None:
        """Do nothing: nodes are the cluster's."""

    def _observe_page(self, jobs: Sequence[Job]) -> Iterator[TaskObservation]:
        for start in range(0, len(jobs), _NAMES_PER_REQUEST):
            chunk = jobs[start : start + _NAMES_PER_REQUEST]
            yield from self._observe(chunk, select_tasks(self._stack, [job.metadata.name for job in chunk]))

    def _observe(self, jobs: Sequence[Job], selector: str) -> list[TaskObservation]:
        """Return the tasks of Jobs and of the pods that the selector finds, which are read after the Jobs.

        A pod outlives its Job when that is deleted, and ends in its own time.
        """
        read_at = self._now()
        pods = [pod for page in self._cluster.list_pods(selector) for pod in page]
        pods_of = _by_task(pods)
        known = {job.metadata.name: job for job in jobs}
        warned = self._warnings.find(pods)
        without_pod = [job for name, job in known.items() if lacks_ranks(job, pods_of.get(name, ()))]
        refused = self._find_refusals(without_pod)
        finished = self._find_finished([job for job in without_pod if job.metadata.name not in pods_of])
        ends = self._find_ends([job for job in without_pod if nodes_of(job, ()) > 1])
        ends = {**ends, **self._find_replaced([job for job in known.values() if job not in without_pod], pods_of)}
        queues = self._find_queue_words(without_pod)
        observed: list[TaskObservation] = []
        for name in dict.fromkeys((*known, *pods_of)):
            job = known.get(name)
            own = pods_of.get(name, [])
            warning = warned.get(name)
            warned_at = warning.at if warning is not None else None
            if nodes_of(job, own) > 1:
                signs = GangSigns(warned_at, refused.get(name), queues.get(name, ""), ends.get(name, RankEnds()))
                seen = observe_ranks(job, own, signs, read_at)
            else:
                has_finished = name in finished
                words = queues.get(name, "")
                seen = observe_task(job, own, warned_at, refused.get(name), has_finished=has_finished, queue=words)
            said = warning.words if warning is not None else seen.warning
            observed.append(replace(seen, cluster=self.identify(), warning=said))
        return observed

    def _find_finished(self, jobs: Iterable[Job]) -> frozenset[str]:
        """Return the names of the complete Jobs whose programs had ended before their pods were removed.

        Raises:
            TransientError: events cannot be read now: the Job, which is kept, is looked at again soon.
        """
        asked = [job for job in jobs if lacks_end(job)]
        if not asked:
            return frozenset()
        try:
            # The end of a Job is read first: what led to it is older.
            completed = self._cluster.list_events(reason=COMPLETED)
            return find_finished(asked, completed, self._cluster.list_events(reason=KILLING))
        except PermanentError:
            return frozenset()

    def _find_ends(self, jobs: Iterable[Job]) -> Mapping[str, RankEnds]:
        """Return what events say about pods that are gone, for Jobs of several nodes that finished by themselves.

        Raises:
            TransientError: events cannot be read now: the Job, which is kept, is looked at again soon.
        """
        reasons = {job.metadata.name: reason_of_end(job) for job in jobs}
        asked = [job for job in jobs if reasons[job.metadata.name]]
        if not asked:
            return {}
        try:
            # The ends of Jobs are read first: what led to them is older.
            ended = {reason: self._cluster.list_events(reason=reason) for reason in filter(None, {*reasons.values()})}
            killed = self._cluster.list_events(reason=KILLING)
        except PermanentError:
            return {}
        names = ((job, job.metadata.name) for job in asked)
        return {name: read_ends(job, nodes_of(job, ()), ended[reasons[name]], killed) for job, name in names}

    def _find_replaced(self, jobs: Iterable[Job], pods_of: Mapping[str, Sequence[Pod]]) -> Mapping[str, RankEnds]:
        """Return what events say about pods that were taken away and replaced, for Jobs of several nodes that go on.

        Servers before 1.25 do that at once.

        Raises:
            TransientError: events cannot be read now, and a pod has ended, whose program would be blamed for the loss
                of another pod: the Job is looked at again soon.
        """
        gangs = ((job, job.metadata.name) for job in jobs if nodes_of(job, ()) > 1 and not is_ending(job))
        late = [(job, name) for job, name in gangs if has_late_pod(pods_of.get(name, ()))]
        if not late:
            return {}
        try:
            killed = self._cluster.list_events(reason=KILLING)
        except PermanentError:
            return {}
        except TransientError:
            if any(is_ending_pod(pod) for _, name in late for pod in pods_of[name]):
                raise
            return {}
        found = ((name, read_replaced(job, nodes_of(job, ()), pods_of[name], killed)) for job, name in late)
        return {name: RankEnds(replaced_at=replaced) for name, replaced in found}

    def _find_refusals(self, jobs: Iterable[Job]) -> Mapping[str, StopReport]:
        """Return the latest words of the events that say why Jobs have no pod, by the names of the Jobs.

        Those that cannot be read are not waited for: the task is looked at again soon.
        """
        asked = (job for job in jobs if not is_stop_called(job) and not is_held_back(job))
        names = {job.metadata.uid: job.metadata.name for job in asked}
        if not names:
            return {}
        try:
            events = self._cluster.list_events(reason=FAILED_CREATE)
        except PortError:
            return {}
        uids = [(each.involved_object.uid, each.message) for each in events if each.involved_object.uid in names]
        return {names[uid]: report_refusal(names[uid], message) for uid, message in uids}

    def _find_queue_words(self, jobs: Iterable[Job]) -> Mapping[str, str]:
        """Return the words of a queue for the Jobs that it holds back, by their names; none if it cannot be read."""
        suspended = [job for job in jobs if is_held_back(job)]
        if not suspended:
            return {}
        try:
            return find_queue_words(suspended, self._cluster.list_events(reason=QUEUE_PENDING))
        except PortError:
            return {}


def kubernetes_target(
    cluster: Cluster,
    kind: Target,
    stack: str,
    labels: NodeLabels | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> KubernetesTarget:
    """Return the target for the Jobs of a stack in a cluster of a kind, whose nodes have these labels."""
    warnings = PodWarnings(cluster, kind.capabilities.has_node_taints, now)
    return KubernetesTarget(cluster, stack, manifest_builder(kind, stack, labels), warnings)


def hash_of(manifest: Mapping[str, Any]) -> str:
    """Return the hash that distinguishes a repeated request from another one."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def with_hash(manifest: Mapping[str, Any], request_hash: str) -> dict[str, Any]:
    """Return a copy of a manifest that carries the hash of its request."""
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), REQUEST: request_hash}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _by_task(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    ordered = sorted(pods, key=_task_of)
    return {name: list(group) for name, group in groupby(ordered, key=_task_of) if name}


def _task_of(pod: Pod) -> str:
    return pod.metadata.labels.get(TASK, "")
