"""What goes wrong with gangs in a cluster: no nodes for some pods, one taken away, one that hangs, events forgotten.

Only seeds with gangs in a cluster have these, from a stream of its own.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from relaunch_local.kubernetes.state import Document
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.cluster import ClusterWorld
from relaunch_local.simulation.cluster_api import NAMESPACE
from relaunch_local.simulation.cluster_gangs import is_of_gang

_BETWEEN_SECONDS = (200.0, 900.0)
_FULL_SECONDS = (60.0, 2_400.0)
_FULL = "example.com/maintenance"
"""A taint that says nothing of an end."""


class ClusterGangFaults:
    """Lets these happen while there are faults."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin within minutes, if there are gangs in a cluster."""
        self._account = account
        self._dice = account.chance.stream("cluster-gang-faults")
        self.forgotten_at: list[datetime] = []
        """When the cluster forgot its events."""
        cluster = account.scenario.cluster
        if cluster is not None and cluster.definition.nodes > 1:
            self._next()

    def _next(self) -> None:
        self._account.clock.call_later(self._dice.uniform(*_BETWEEN_SECONDS), self._happen)

    def _happen(self) -> None:
        world = self._account.cluster
        if self._account.chance.is_calm or world is None:
            return
        self._next()
        faults: Mapping[str, Callable[[ClusterWorld], bool]] = {
            "cluster-nodes-full": self._fill,
            "rank-preempted": self._preempt,
            "rank-evicted": self._evict,
            "rank-deleted": self._delete,
            "rank-hung": self._hang,
            "cluster-events-forgotten": self._forget,
        }
        kind = self._dice.choice(tuple(faults))
        if self._account.chance.strikes(kind, 0.7) and not faults[kind](world):
            self._account.chance.withdraw()

    def _fill(self, world: ClusterWorld) -> bool:
        """Let some nodes take no new pod for a while, so that a part of a gang may find none."""
        nodes = world.nodes()
        if not nodes:
            return False
        chosen = self._dice.sample(nodes, self._dice.randint(1, max(1, len(nodes) - 1)))
        for name in chosen:
            world.cluster.taint_node(name, _FULL)
        self._account.clock.call_later(self._dice.uniform(*_FULL_SECONDS), lambda: _free(world, chosen))
        return True

    def _rank(self, world: ClusterWorld) -> Document | None:
        pods = [each for each in world.pods() if is_of_gang(each)]
        return self._dice.choice(pods) if pods else None

    def _preempt(self, world: ClusterWorld) -> bool:
        if (pod := self._rank(world)) is None:
            return False
        said = "default-scheduler: preempting to accommodate a higher priority pod"
        world.cluster.disrupt(pod, "PreemptionByScheduler", said)
        return True

    def _evict(self, world: ClusterWorld) -> bool:
        if (pod := self._rank(world)) is None:
            return False
        version = "policy/v1" if world.cluster.minor >= 22 else "policy/v1beta1"
        world.cluster.evict_pod(NAMESPACE, pod["metadata"]["name"], version)
        return True

    def _delete(self, world: ClusterWorld) -> bool:
        """Delete a pod by hand, some by force."""
        if (pod := self._rank(world)) is None:
            return False
        grace = self._dice.choice((None, None, 0.0))
        world.cluster.delete_pod(NAMESPACE, pod["metadata"]["name"], grace)
        return True

    def _hang(self, world: ClusterWorld) -> bool:
        pod = self._rank(world)
        return pod is not None and world.gangs.hang(pod)

    def _forget(self, world: ClusterWorld) -> bool:
        """Let the cluster forget its events before their time, as one does whose store has no room for them."""
        events = world.cluster.state.all("events", NAMESPACE)
        for each in events:
            world.cluster.state.remove("events", each)
        self.forgotten_at.append(self._account.clock.now())
        return bool(events)


def _free(world: ClusterWorld, names: list[str]) -> None:
    for name in names:
        node = world.cluster.state.find("nodes", "", name)
        if node is None:
            continue
        taints = node["spec"].get("taints") or []
        gone = next((each for each in taints if each["key"] == _FULL), None)
        if gone is not None:
            taints.remove(gone)
            world.cluster.state.touch(node)
    world.cluster.schedule()
