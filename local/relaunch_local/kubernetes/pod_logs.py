"""The log of a pod, as its kubelet gives it."""

from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.state import ClusterState


def read_lines(state: ClusterState, namespace: str, name: str, container: str, since: str) -> list[tuple[str, str]]:
    """Return the lines of a container with their times, from a time on; `container` is empty for the first one.

    Raises:
        ApiError: 404; 400, there is no such container, or it waits to start.
    """
    pod = state.get("pods", namespace, name)
    if container not in {"", *(each["name"] for each in pod["spec"]["containers"])}:
        raise ApiError(400, "BadRequest", f"container {container} is not valid for pod {name}")
    statuses = pod["status"].get("containerStatuses", [{}])
    # A pod that has no node has an empty log.
    waiting = statuses[0].get("state", {}).get("waiting")
    if waiting is not None:
        said = f'container "{container}" in pod "{name}" is waiting to start: {waiting["reason"]}'
        raise ApiError(400, "BadRequest", said)
    return [each for each in state.logs.get(pod["metadata"]["uid"], ()) if each[0][:19] >= since[:19]]
