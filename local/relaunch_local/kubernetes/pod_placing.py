"""The scheduler of a cluster at work: it places the pods that wait, and says why others have no node."""

from collections.abc import Callable, Sequence

from relaunch_local.kubernetes.pod_groups import find_held_back
from relaunch_local.kubernetes.scheduler import Placement, as_framework, place
from relaunch_local.kubernetes.state import ClusterState, Document, set_condition

_SCHEDULER = "default-scheduler"


class PodPlacing:
    """Places pods; whoever calls it holds the clock's lock. `is_ack` adds groups of pods, and ACK's annotations."""

    def __init__(
        self,
        state: ClusterState,
        start: Callable[[Document], None],
        record_event: Callable[[Document, str, str, str], None],
        *,
        is_ack: bool,
    ) -> None:
        self._state = state
        self._start = start
        self._record_event = record_event
        self._is_ack = is_ack
        self.names = {_SCHEDULER}
        """The names of the schedulers that there are."""

    def place_pods(self) -> None:
        """Place the pods that wait, the oldest first."""
        pods = self._state.all("pods")
        waiting = [e for e in pods if not e["spec"].get("nodeName") and not e["metadata"].get("deletionTimestamp")]
        # What is for another scheduler waits for that one, and nobody says a word of it.
        waiting = [e for e in waiting if e["spec"].get("schedulerName", _SCHEDULER) in self.names]
        waiting.sort(key=lambda each: str(each["metadata"]["uid"]))
        held = find_held_back(waiting, pods, self._place) if self._is_ack else {}
        for pod in waiting:
            found = held.get(pod["metadata"]["uid"]) or self._place(pod, pods)
            if isinstance(found, str):
                self._explain(pod, found)
            else:
                self._bind(pod, found)

    def _place(self, pod: Document, pods: Sequence[Document]) -> Placement | str:
        claims = self._state.all("persistentvolumeclaims", pod["metadata"]["namespace"])
        return place(pod, self._state.all("nodes"), pods, [each["metadata"]["name"] for each in claims])

    def _bind(self, pod: Document, found: Placement) -> None:
        pod["spec"]["nodeName"] = found.node
        shares = as_framework(found.annotations, pod) if self._is_ack else found.annotations
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **shares}
        set_condition(pod, "PodScheduled", "True", self._state.now())
        said = f"Successfully assigned {pod['metadata']['namespace']}/{pod['metadata']['name']} to {found.node}"
        self._record_event(pod, "Normal", "Scheduled", said)
        self._start(pod)

    def _explain(self, pod: Document, why: str) -> None:
        known = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
        if known and known[0].get("message") == why:
            return
        set_condition(pod, "PodScheduled", "False", self._state.now(), ("Unschedulable", why))
        self._state.touch(pod)
        self._record_event(pod, "Warning", "FailedScheduling", why)
