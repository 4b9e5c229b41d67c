"""Lists as tables, as servers print them for `kubectl get`.

Source: pkg/printers/internalversion/printers.go of Kubernetes, columns and words; ages are those of HumanDuration.
The column Status of Jobs is there from 1.30 on (kubernetes/kubernetes#123226).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from relaunch_local.kubernetes.state import has_condition

Document = dict[str, Any]
NONE = "<none>"
UNKNOWN = "<unknown>"
HAS_JOB_STATUS = 30
"""The minor version of the first servers whose table of Jobs has a column Status."""
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_UNITS = {1: "s", _MINUTE: "m", _HOUR: "h", _DAY: "d"}
# Below so many seconds, the units that a duration is printed in; 0 for none.
_FIGURES = (
    (2 * _MINUTE, 1, 0),
    (10 * _MINUTE, _MINUTE, 1),
    (3 * _HOUR, _MINUTE, 0),
    (8 * _HOUR, _HOUR, _MINUTE),
    (2 * _DAY, _HOUR, 0),
    (8 * _DAY, _DAY, _HOUR),
)
_TABLE = "as=Table"


def is_table_wanted(accept: str) -> bool:
    """Return whether the first thing that a client accepts is a table of `meta.k8s.io/v1`."""
    wanted = {each.strip() for each in accept.split(",", maxsplit=1)[0].split(";")}
    return {_TABLE, "g=meta.k8s.io", "v=v1"} <= wanted


def to_table(
    resource: str, listed: Iterable[Document], metadata: Mapping[str, Any], now: datetime, minor: int
) -> Document:
    """Return a table of objects; with the metadata of their list, or of the one object."""
    columns = _columns(resource, minor)
    definitions = [
        {
            "name": name,
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": wide,
        }
        for name, wide, _ in columns
    ]
    rows = [{"cells": [cell(each, now) for _, _, cell in columns], "object": _partial(each)} for each in listed]
    kept = {key: each for key, each in metadata.items() if key in {"resourceVersion", "continue", "remainingItemCount"}}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": kept,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def human_duration(seconds: float) -> str:
    """Return a duration as servers print it, with two or three significant figures."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for below, large, small in _FIGURES:
        if whole < below:
            return _two(whole, large, small)
    return f"{whole // _DAY}d"


def pod_status(pod: Mapping[str, Any]) -> str:
    """Return the column Status of a pod: its reason or phase, or what its containers wait for or ended with."""
    status = pod["status"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    shown = status.get("reason") or status.get("phase", "")
    if initializing := _init_status(pod):
        return initializing
    for each in reversed(status.get("containerStatuses") or ()):
        shown = _container_word(each) or shown
    return str(shown)


def job_status(job: Mapping[str, Any]) -> str:
    """Return the column Status of a Job."""
    words = {"Complete": "Complete", "Failed": "Failed"}
    later = {"Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet"}
    ended = next((word for kind, word in words.items() if has_condition(job, kind)), "")
    if ended or job["metadata"].get("deletionTimestamp"):
        return ended or "Terminating"
    return next((word for kind, word in later.items() if has_condition(job, kind)), "Running")


_Cell = Callable[[Mapping[str, Any], datetime], Any]
_Column = tuple[str, int, _Cell]


def _columns(resource: str, minor: int) -> Sequence[_Column]:
    """Return the columns of a resource: the name, 1 if it is shown with `-o wide` alone, and what is in it."""
    columns = _COLUMNS.get(resource, _OTHERS)
    if resource == "jobs" and minor < HAS_JOB_STATUS:
        return [each for each in columns if each[0] != "Status"]
    return columns


def _partial(document: Mapping[str, Any]) -> Document:
    """Return the metadata of an object, as rows of tables have it."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"]}


def _age(document: Mapping[str, Any], now: datetime) -> str:
    return _since(document["metadata"].get("creationTimestamp"), now)


def _since(time: str | None, now: datetime) -> str:
    return human_duration((now - _read(time)).total_seconds()) if time else UNKNOWN


def _read(time: str) -> datetime:
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _two(whole: int, large: int, small: int) -> str:
    rest = whole % large // small if small else 0
    return f"{max(0, whole) // large}{_UNITS[large]}" + (f"{rest}{_UNITS[small]}" if rest else "")


def _init_status(pod: Mapping[str, Any]) -> str:
    """Return why init containers have not ended, empty if they have."""
    containers = pod["spec"].get("initContainers") or ()
    sidecars = {each["name"] for each in containers if each.get("restartPolicy") == "Always"}
    for number, each in enumerate(pod["status"].get("initContainerStatuses") or ()):
        state = each["state"]
        ended = state.get("terminated")
        waiting = state.get("waiting") or {}
        if (ended and ended["exitCode"] == 0) or (each["name"] in sidecars and each.get("ready")):
            continue
        if ended:
            return f"Init:{_container_word(each)}"
        if waiting.get("reason", "PodInitializing") != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{number}/{len(containers)}"
    return ""


def _container_word(status: Mapping[str, Any]) -> str:
    state = status["state"]
    if waiting := state.get("waiting"):
        return str(waiting.get("reason", ""))
    if ended := state.get("terminated"):
        return str(ended.get("reason") or f"ExitCode:{ended['exitCode']}")
    return ""


def _ready(pod: Mapping[str, Any], _now: datetime) -> str:
    sidecars = [e for e in pod["spec"].get("initContainers") or () if e.get("restartPolicy") == "Always"]
    names = {each["name"] for each in sidecars}
    statuses = [e for e in pod["status"].get("initContainerStatuses") or () if e["name"] in names]
    ready = [e for e in (*statuses, *(pod["status"].get("containerStatuses") or ())) if e.get("ready")]
    return f"{len(ready)}/{len(pod['spec']['containers']) + len(sidecars)}"


def _duration(job: Mapping[str, Any], now: datetime) -> str:
    started = job["status"].get("startTime")
    ended = job["status"].get("completionTime")
    return "" if not started else _since(started, _read(ended) if ended else now)


def _containers(key: str) -> _Cell:
    return lambda job, _now: ",".join(each[key] for each in job["spec"]["template"]["spec"]["containers"])


def _selector(job: Mapping[str, Any], _now: datetime) -> str:
    labels = (job["spec"].get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _node_status(node: Mapping[str, Any], _now: datetime) -> str:
    ready = next((e["status"] for e in node["status"].get("conditions") or () if e["type"] == "Ready"), None)
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if node["spec"].get("unschedulable") else word


def _node_info(key: str, unset: str = UNKNOWN) -> _Cell:
    return lambda node, _now: (node["status"].get("nodeInfo") or {}).get(key) or unset


def _field(*path: str, unset: str = "") -> _Cell:
    def find(document: Mapping[str, Any], _now: datetime) -> Any:
        value: Any = document
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return unset if value is None else value

    return find


def _count(key: str) -> _Cell:
    return lambda document, _now: str(len(document.get(key) or ()))


def _involved(event: Mapping[str, Any], _now: datetime) -> str:
    about = event["involvedObject"]
    return f"{about['kind'].lower()}/{about['name']}"


def _subjects(kind: str) -> _Cell:
    return lambda binding, _now: ", ".join(e["name"] for e in binding.get("subjects") or () if e["kind"] == kind)


_NAME: _Column = ("Name", 0, _field("metadata", "name"))
_AGE: _Column = ("Age", 0, _age)
_OTHERS: Sequence[_Column] = (
    _NAME,
    ("Created At", 0, _field("metadata", "creationTimestamp")),
)
_BINDINGS: Sequence[_Column] = (
    _NAME,
    ("Role", 0, lambda each, _now: f"{each['roleRef']['kind']}/{each['roleRef']['name']}"),
    _AGE,
    ("Users", 1, _subjects("User")),
    ("Groups", 1, _subjects("Group")),
    ("ServiceAccounts", 1, _subjects("ServiceAccount")),
)
_COLUMNS: Mapping[str, Sequence[_Column]] = {
    "pods": (
        _NAME,
        ("Ready", 0, _ready),
        ("Status", 0, lambda pod, _now: pod_status(pod)),
        ("Restarts", 0, lambda _pod, _now: "0"),
        _AGE,
        ("IP", 1, _field("status", "podIP", unset=NONE)),
        ("Node", 1, _field("spec", "nodeName", unset=NONE)),
        ("Nominated Node", 1, lambda _pod, _now: NONE),
        ("Readiness Gates", 1, lambda _pod, _now: NONE),
    ),
    "jobs": (
        _NAME,
        ("Status", 0, lambda job, _now: job_status(job)),
        ("Completions", 0, lambda job, _now: f"{job['status'].get('succeeded', 0)}/{job['spec']['completions']}"),
        ("Duration", 0, _duration),
        _AGE,
        ("Containers", 1, _containers("name")),
        ("Images", 1, _containers("image")),
        ("Selector", 1, _selector),
    ),
    "nodes": (
        _NAME,
        ("Status", 0, _node_status),
        ("Roles", 0, lambda _node, _now: NONE),
        _AGE,
        ("Version", 0, _node_info("kubeletVersion", "")),
        ("Internal-IP", 1, lambda _node, _now: NONE),
        ("External-IP", 1, lambda _node, _now: NONE),
        ("OS-Image", 1, _node_info("osImage")),
        ("Kernel-Version", 1, _node_info("kernelVersion")),
        ("Container-Runtime", 1, _node_info("containerRuntimeVersion")),
    ),
    "events": (
        ("Last Seen", 0, lambda event, now: _since(event["lastTimestamp"], now)),
        ("Type", 0, _field("type")),
        ("Reason", 0, _field("reason")),
        ("Object", 0, _involved),
        ("Subobject", 1, _field("involvedObject", "fieldPath")),
        ("Source", 1, _field("source", "component")),
        ("Message", 0, lambda event, _now: event["message"].strip()),
        ("First Seen", 1, lambda event, now: _since(event["firstTimestamp"], now)),
        ("Count", 1, _field("count")),
        ("Name", 1, _field("metadata", "name")),
    ),
    "namespaces": (_NAME, ("Status", 0, _field("status", "phase")), _AGE),
    "configmaps": (_NAME, ("Data", 0, _count("data")), _AGE),
    "secrets": (_NAME, ("Type", 0, _field("type", unset="Opaque")), ("Data", 0, _count("data")), _AGE),
    "rolebindings": _BINDINGS,
    "clusterrolebindings": _BINDINGS,
}
