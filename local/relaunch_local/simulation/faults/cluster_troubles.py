"""What takes places of pods in a cluster: quotas, nodes out of reach or that go, clean-ups, queues, ACS's preemption.

Only some seeds have these, from streams of their own, so that all others are as they were.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from relaunch.adapters.kubernetes.labels import TASK
from relaunch.core.kubernetes.acs import BEST_EFFORT, COMPUTE_QOS
from relaunch_local.kubernetes.cluster import RELEASE_NOTICE_SECONDS
from relaunch_local.kubernetes.state import ClusterState, Document, has_condition
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.cluster import ClusterWorld
from relaunch_local.simulation.cluster_api import NAMESPACE

_EVERY = 4
_FIRST = 3
_BETWEEN_SECONDS = (300.0, 1_200.0)
_REFUSED_SECONDS = (300.0, 7_200.0)
_UNHEARD_SECONDS = (60.0, 2_400.0)
# Longer than Relaunch takes to see that a Job is suspended, and to withdraw it.
_SUSPENDED_SECONDS = (1_200.0, 3_000.0)
_SEEN_AFTER = timedelta(minutes=5)
_CLEANED_AFTER = (0.5, 20.0)
_SUSPENDS = 22
_POLICY_V1 = 22
_KARPENTER = "karpenter.sh/disrupted"
_AUTOSCALER = "ToBeDeletedByClusterAutoscaler"
_TAINTS = (_KARPENTER, _AUTOSCALER, "aws-node-termination-handler/spot-itn")
# A spot interruption is two minutes ahead, of which functions that fail may miss both looks.
_NOTICE_SECONDS = (300.0, 600.0)
# The Cluster Autoscaler's --node-delete-delay-after-taint.
_EVICTED_AFTER_SECONDS = 5.0
# The kubelet says how its containers ended before its machine does.
_KUBELET_SECONDS = 30.0
_QUOTA = "simulated"
# So many looks may fail until it is over.
_MOST_UNTOLD = 8
WITHDRAWN_WITHIN = timedelta(minutes=25)
"""How long a Job may stay without a pod that is refused: five minutes, and looks that fail."""


class ClusterTroubles:
    """Lets these happen while there are faults."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin within minutes, in some of the seeds with a cluster."""
        self._account = account
        self._dice = account.chance.stream("cluster-troubles")
        self._world = account.cluster
        if self._world is not None and account.chance.seed % _EVERY == _FIRST:
            self._world.cluster.on_success = self._succeeded
            self._world.cluster._jobs.fails_suspended = self._dice.random() < 0.5  # noqa: SLF001 - has no other word
            self._next()

    def _next(self) -> None:
        self._account.clock.call_later(self._dice.uniform(*_BETWEEN_SECONDS), self._happen)

    def _happen(self) -> None:
        if self._account.chance.is_calm or self._world is None:
            return
        self._next()
        faults: Mapping[str, Callable[[ClusterWorld], bool]] = {
            "pods-refused": self._refuse_pods,
            "node-unheard": self._cut_off,
            "job-suspended": self._suspend,
            "best-effort-released": self._release,
        }
        if self._account.scenario.cluster is not None and self._account.scenario.cluster.reads_nodes:
            faults = {**faults, "node-announced": self._announce}
        kind = self._dice.choice(tuple(faults))
        if self._account.chance.strikes(kind, 2.0) and not faults[kind](self._world):
            self._account.chance.withdraw()

    def _refuse_pods(self, world: ClusterWorld) -> bool:
        state = world.cluster.state
        if state.find("resourcequotas", NAMESPACE, _QUOTA) is not None:
            return False
        quota: Document = {"metadata": {"name": _QUOTA}, "spec": {"hard": {"pods": "0"}}}
        state.add("resourcequotas", NAMESPACE, quota)
        begun_at = self._account.clock.now()

        def lift() -> None:
            if self._account.clock.now() - begun_at >= WITHDRAWN_WITHIN:
                self._check_withdrawn(world)
            state.remove("resourcequotas", quota)

        self._account.clock.call_later(self._dice.uniform(*_REFUSED_SECONDS), lift)
        return True

    def _check_withdrawn(self, world: ClusterWorld) -> None:
        """Check that no Job waits for long for a pod that is refused."""
        state = world.cluster.state
        with_pod = {pod["metadata"]["labels"]["job-name"] for pod in state.all("pods", NAMESPACE)}
        since = self._account.clock.now() - WITHDRAWN_WITHIN
        late = [
            job["metadata"]["name"]
            for job in state.all("jobs", NAMESPACE)
            if job["metadata"]["name"] not in with_pod
            and not has_condition(job, "Complete", "Failed", "Suspended")
            and _refused_since(state, job) < since
            and not self._account.scenario.outages
            and not self._is_untold(since)
        ]
        self._account.invariants.check("a Job whose pod is refused is withdrawn", not late, ", ".join(late))

    def _is_untold(self, since: datetime) -> bool:
        """Return whether the lists of events failed again and again, which alone say that pods are refused."""
        return sum(at >= since for at in self._account.calls.failed_at["kubernetes:list_events"]) >= _MOST_UNTOLD

    def _cut_off(self, world: ClusterWorld) -> bool:
        nodes = world.nodes()
        if not nodes:
            return False
        node = self._dice.choice(nodes)
        there = [pod for pod in world.cluster.state.all("pods", NAMESPACE) if pod["spec"].get("nodeName") == node]
        world.troubles.unheard |= {_task_of(pod) for pod in there}
        world.gangs.unclear(there)
        world.cluster.cut_off_node(node, for_seconds=self._dice.uniform(*_UNHEARD_SECONDS))
        return True

    def _suspend(self, world: ClusterWorld) -> bool:
        # One that has not run for long may have been seen by nobody: it goes on when the queue lets it.
        since = self._account.clock.now() - _SEEN_AFTER
        started_at = world.processes.started_at
        pods = [pod for pod in world.pods() if started_at[_task_of(pod)] < since]
        if not pods or world.cluster.minor < _SUSPENDS:
            return False
        pod = self._dice.choice(pods)
        job = pod["metadata"]["labels"]["job-name"]
        world.troubles.suspended[_task_of(pod)] = self._account.clock.now()
        world.cluster.suspend_job(NAMESPACE, job)
        self._account.clock.call_later(self._dice.uniform(*_SUSPENDED_SECONDS), lambda: _resume(world, job))
        return True

    def _release(self, world: ClusterWorld) -> bool:
        pods = [pod for pod in world.pods() if pod["metadata"]["labels"].get(COMPUTE_QOS) == BEST_EFFORT]
        if not pods:
            return False
        pod = self._dice.choice(pods)
        world.troubles.released.add(_task_of(pod))
        world.gangs.unclear([pod])
        self._account.clock.call_later(RELEASE_NOTICE_SECONDS, lambda: world.cluster.on_taken(pod, "released"))
        world.cluster.release_best_effort(NAMESPACE, pod["metadata"]["name"])
        return True

    def _announce(self, world: ClusterWorld) -> bool:
        """Announce the end of a node by a taint; its pods end with it and say no reason, as one may without a drain.

        Karpenter has deleted the node then, and drains none of a pod that is not to be disrupted. The Cluster
        Autoscaler evicts its pods, and its taint says nothing that it does not take back.
        """
        state = world.cluster.state
        used = {str(pod["spec"]["nodeName"]) for pod in world.pods()} & set(world.nodes())
        nodes = sorted(each for each in used if not state.get("nodes", "", each)["spec"].get("taints"))
        if not nodes:
            return False
        node = self._dice.choice(nodes)
        world.gangs.unclear(pod for pod in world.pods() if pod["spec"]["nodeName"] == node)
        taint = self._dice.choice(_TAINTS)
        world.cluster.taint_node(node, taint)
        if taint == _KARPENTER:
            world.cluster.delete_node(node)
        clock = self._account.clock
        announced_at = clock.now()
        ends_in = self._dice.uniform(*_NOTICE_SECONDS)
        if taint == _AUTOSCALER:
            clock.call_later(_EVICTED_AFTER_SECONDS, lambda: _evict_pods(world, node))
        else:
            clock.call_later(ends_in, lambda: _end_pods(world, node, announced_at))
        clock.call_later(ends_in + _KUBELET_SECONDS, lambda: _remove_node(world, node))
        return True

    def _succeeded(self, pod: Document) -> None:
        world = self._world
        if world is None or not self._account.chance.strikes("pod-cleaned", 2.0):
            return
        world.troubles.cleaned[_task_of(pod)] = self._account.clock.now()
        self._account.clock.call_later(self._dice.uniform(*_CLEANED_AFTER), lambda: _clean(world, pod))


def _task_of(pod: Document) -> str:
    return str(pod["metadata"]["labels"][TASK])


def _evict_pods(world: ClusterWorld, node: str) -> None:
    version = "policy/v1" if world.cluster.minor >= _POLICY_V1 else "policy/v1beta1"
    for pod in list(world.pods()):
        if pod["spec"].get("nodeName") == node:
            world.cluster.evict_pod(NAMESPACE, pod["metadata"]["name"], version)


def _end_pods(world: ClusterWorld, node: str, announced_at: datetime) -> None:
    for pod in list(world.pods()) if node in world.nodes() else ():
        if pod["spec"].get("nodeName") == node:
            world.troubles.announced[_task_of(pod)] = announced_at
            world.cluster.on_taken(pod, "announced")
            world.cluster._kubelet.release(pod)  # noqa: SLF001 - the fake has no other word for it


def _remove_node(world: ClusterWorld, node: str) -> None:
    if node in world.nodes():
        world.cluster.lose_node(node)
        world.cluster.remove_node(node)
        world.add_node(node)


def _began(job: Document) -> datetime:
    """Return when a Job began, or a queue let it begin."""
    return datetime.fromisoformat(job["status"].get("startTime") or job["metadata"]["creationTimestamp"])


def _refused_since(state: ClusterState, job: Document) -> datetime:
    """Return when a pod of a Job was first refused: it may have had one before, which is gone; else when it began."""
    events = (each for each in state.all("events", NAMESPACE) if each["reason"] == "FailedCreate")
    of_job = (each for each in events if each["involvedObject"]["uid"] == job["metadata"]["uid"])
    first = min((str(each["firstTimestamp"]) for each in of_job), default="")
    return max(_began(job), datetime.fromisoformat(first)) if first else _began(job)


def _resume(world: ClusterWorld, name: str) -> None:
    job = world.cluster.state.find("jobs", NAMESPACE, name)
    if job is not None and not has_condition(job, "Complete", "Failed"):
        world.cluster.patch_job(NAMESPACE, name, {"spec": {"suspend": False}})


def _clean(world: ClusterWorld, pod: Document) -> None:
    name = pod["metadata"]["name"]
    if world.cluster.state.find("pods", NAMESPACE, name) is pod:
        world.cluster.delete_pod(NAMESPACE, name)
