"""What a cluster announces of pods that are going to be taken away, beside the conditions of the pods themselves."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from relaunch.adapters.kubernetes.api.models import Event, Pod
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.adapters.kubernetes.observation import TO_BE_RELEASED
from relaunch.core.kubernetes.acs import BEST_EFFORT, COMPUTE_QOS
from relaunch.ports import PortError


class Announcements(Protocol):
    """What is asked of the Kubernetes API; see `api.client`."""

    def list_events(self, involved_object_uid: str = "", reason: str = "") -> Sequence[Event]: ...


def find_warnings(pods: Iterable[Pod], cluster: Announcements) -> Mapping[str, datetime]:
    """Return the tasks on preemptible capacity that is going to be taken away, with when that was announced.

    A warning that cannot be read is not waited for: the task is looked at again soon.
    """
    preemptible = {pod.metadata.uid: pod.metadata.labels.get(TASK, "") for pod in pods if _is_preemptible(pod)}
    if not preemptible:
        return {}
    try:
        events = [each for reason in TO_BE_RELEASED for each in cluster.list_events(reason=reason)]
    except PortError:
        return {}
    known = ((preemptible.get(each.involved_object.uid), each.at) for each in events)
    announced = sorted((at, name) for name, at in known if name is not None and at is not None)
    return {name: at for at, name in reversed(announced)}


def _is_preemptible(pod: Pod) -> bool:
    return pod.metadata.labels.get(COMPUTE_QOS) == BEST_EFFORT and pod.status.phase != "Pending"
