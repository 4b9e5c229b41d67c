"""What goes wrong in the cluster of a run: nodes are lost and removed, pods evicted or deleted, Jobs deleted."""

from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.cluster_api import NAMESPACE

_BETWEEN_SECONDS = (200.0, 1_500.0)
_REMOVED_AFTER = (60.0, 900.0)
_NEW_AFTER = (60.0, 600.0)


class ClusterFaults:
    """Lets things happen in the cluster while there are faults."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin within minutes, if there is a cluster."""
        self._account = account
        self._dice = account.chance.stream("cluster-faults")
        if account.cluster is not None:
            self._next()

    def _next(self) -> None:
        self._account.clock.call_later(self._dice.uniform(*_BETWEEN_SECONDS), self._happen)

    def _happen(self) -> None:
        world = self._account.cluster
        if self._account.chance.is_calm or world is None:
            return
        self._next()
        pods = list(world.pods())
        nodes = world.nodes()
        kind = self._dice.choice(("node-lost", "pod-evicted", "pod-deleted", "cluster-job-deleted"))
        found = nodes if kind == "node-lost" else [each["metadata"]["name"] for each in pods]
        if not found or not self._account.chance.strikes(kind, 0.6):
            return
        name = self._dice.choice(found)
        match kind:
            case "node-lost":
                self._lose(name)
            case "pod-evicted":
                version = "policy/v1" if world.cluster.minor >= 22 else "policy/v1beta1"
                world.cluster.evict_pod(NAMESPACE, name, version)
            case "pod-deleted":
                world.cluster.delete_pod(NAMESPACE, name)
            case _:
                pod = world.cluster.state.get("pods", NAMESPACE, name)
                world.cluster.delete_job(NAMESPACE, pod["metadata"]["labels"]["job-name"])

    def _lose(self, name: str) -> None:
        world = self._account.cluster
        if world is None:
            return
        world.cluster.lose_node(name)
        clock = self._account.clock
        clock.call_later(self._dice.uniform(*_REMOVED_AFTER), lambda: world.cluster.remove_node(name))
        clock.call_later(self._dice.uniform(*_NEW_AFTER), lambda: world.add_node(name))
