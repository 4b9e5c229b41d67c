"""A small scripted Kubernetes cluster: Jobs get their pod at once, and pods go on when the test says so."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from relaunch.adapters.kubernetes.api.errors import AlreadyExistsError, NotFoundError
from relaunch.adapters.kubernetes.api.models import Event, Job, Node, Pod, ServerVersion
from relaunch.adapters.kubernetes.labels import OWNER, TASK

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
INSTANCE_TYPE, ZONE = "ecs.gn6v-c8g1.2xlarge", "cn-beijing-i"
TASK_NAME = "resnet-1f2e3d4c-1-1"
Document = dict[str, Any]


class FakeKubernetes:
    """Implements Cluster.

    `failures` are raised by the next creations; with `creates_uncertain` the Job is there all the same. It behaves as a
    server from 1.31 on: a Job whose pods are to be deleted has failed when they are gone, and a pod that is deleted is
    not replaced; `lost_deadlines` of the next ones have no effect, as on old servers at times. `page_size` is that of
    lists, `calls` names what was called; nodes are only readable with `nodes`.
    """

    identity = "a1b2c3d4e5f6/training"

    def __init__(self) -> None:
        self.failures: deque[Exception] = deque()
        self.creates_uncertain = False
        self.lost_deadlines = 0
        self.jobs: dict[str, Document] = {}
        self.pods: dict[str, Document] = {}
        self.nodes: dict[str, Document] | Exception = {}
        self.page_size = 100
        self.events: list[Document] | Exception = []
        self.calls: list[str] = []
        self._now = START

    def version(self) -> ServerVersion:
        return ServerVersion(1, 36, "v1.36.2")

    def create_job(self, manifest: Mapping[str, Any]) -> Job:
        self.calls.append("create_job")
        failure = self.failures.popleft() if self.failures else None
        if failure is None or self.creates_uncertain:
            self._create(deepcopy(dict(manifest)))
        if failure is not None:
            raise failure
        return self._job(manifest["metadata"]["name"])

    def _create(self, job: Document) -> None:
        name = job["metadata"]["name"]
        if name in self.jobs:
            raise AlreadyExistsError(f'jobs.batch "{name}" already exists', 409, "AlreadyExists")
        job["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": self.tick()}
        self.jobs[name] = job | {"status": {"active": 1, "startTime": self.tick()}}
        template = deepcopy(job["spec"]["template"])
        metadata = template.get("metadata", {}) | {"name": f"{name}-d222p", "uid": f"uid-{name}-d222p"}
        metadata |= {"creationTimestamp": self.tick()}
        self.pods[name] = {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}

    def get_job(self, name: str) -> Job | None:
        self.calls.append("get_job")
        return self._job(name) if name in self.jobs else None

    def patch_job(self, name: str, patch: Mapping[str, Any]) -> Job:
        self.calls.append("patch_job")
        if name not in self.jobs:
            raise NotFoundError(f'jobs.batch "{name}" not found', 404, "NotFound")
        job = self.jobs[name]
        before = job["spec"].get("activeDeadlineSeconds")
        _merge(job, patch)
        if self.lost_deadlines:
            self.lost_deadlines -= 1
        elif job["spec"].get("activeDeadlineSeconds") != before:
            self._end_by(name, "DeadlineExceeded", "Job was active longer than specified deadline")
        return self._job(name)

    def _end_by(self, name: str, reason: str, message: str) -> None:
        """Let the Job fail for this reason once its pod is gone, which a pod without a node is at once."""
        self.condition(name, "FailureTarget", reason, message)
        pod = self.pods.get(name)
        if pod is None or not pod["spec"].get("nodeName"):
            self.pods.pop(name, None)
            self.condition(name, "Failed", reason, message)
        else:
            pod["metadata"]["deletionTimestamp"] = self.tick()

    def list_jobs(self, label_selector: str) -> Iterator[Sequence[Job]]:
        self.calls.append("list_jobs")
        for page in self._pages(self.jobs.values(), label_selector):
            yield [Job.model_validate(each) for each in page]

    def list_pods(self, label_selector: str) -> Iterator[Sequence[Pod]]:
        self.calls.append("list_pods")
        for page in self._pages(self.pods.values(), label_selector):
            yield [Pod.model_validate(each) for each in page]

    def list_nodes(self) -> Iterator[Sequence[Node]]:
        if isinstance(self.nodes, Exception):
            raise self.nodes
        for page in self._pages(self.nodes.values(), ""):
            yield [Node.model_validate(each) for each in page]

    def get_node(self, name: str) -> Node | None:
        self.calls.append("get_node")
        if isinstance(self.nodes, Exception):
            raise self.nodes
        return Node.model_validate(self.nodes[name]) if name in self.nodes else None

    def taint(self, node: str, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        """Give a node a taint."""
        assert isinstance(self.nodes, dict)
        taints = self.nodes[node].setdefault("spec", {}).setdefault("taints", [])
        taints.append({"key": key, "value": value, "effect": effect})

    def delete_node(self, node: str) -> None:
        """Delete a node that its finalizer keeps."""
        assert isinstance(self.nodes, dict)
        self.nodes[node]["metadata"]["deletionTimestamp"] = self.tick()

    def list_events(self, involved_object_uid: str = "", reason: str = "") -> Sequence[Event]:
        self.calls.append("list_events")
        if isinstance(self.events, Exception):
            raise self.events
        events = [Event.model_validate(each) for each in self.events]
        return [each for each in events if each.reason == reason or each.involved_object.uid == involved_object_uid]

    def warn(self, name: str, reason: str = "SpotToBeReleased") -> str:
        """Let an event announce that the capacity of a Job's pod is taken away; return when."""
        assert isinstance(self.events, list)
        at = self.tick()
        involved = {"kind": "Pod", "uid": self.pods[name]["metadata"]["uid"]}
        self.events.append(
            {"metadata": {"name": at}, "involvedObject": involved, "reason": reason, "lastTimestamp": at}
        )
        return at

    def _pages(self, documents: Any, selector: str) -> Iterator[list[Document]]:
        found = [each for each in documents if selects(selector, each["metadata"].get("labels", {}))]
        for start in range(0, len(found), self.page_size):
            yield found[start : start + self.page_size]

    def run(self, name: str, node: str) -> None:
        """Let the pod of a Job run on a node, which registers with it."""
        assert isinstance(self.nodes, dict)
        labels = {"node.kubernetes.io/instance-type": INSTANCE_TYPE, "topology.kubernetes.io/zone": ZONE}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": node, "labels": labels, "creationTimestamp": self.tick()}
        self.nodes.setdefault(node, {"metadata": metadata, "status": ready})
        pod = self.pods[name]
        pod["spec"]["nodeName"] = node
        state = {"running": {"startedAt": self.tick()}}
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": self._container(name), "state": state}]}

    def exit(self, name: str, exit_code: int, reason: str = "", **status: Any) -> None:
        """Let the container of a Job exit, and the Job end; a pod that is being deleted is then gone."""
        pod, job = self.pods[name], self.jobs[name]
        word = reason or ("Error" if exit_code else "Completed")
        started = pod["status"].get("containerStatuses", [{}])[0].get("state", {}).get("running", {})
        terminated = {"exitCode": exit_code, "reason": word, "finishedAt": self.tick(), **started}
        statuses = [{"name": self._container(name), "state": {"terminated": terminated}}]
        phase = "Failed" if exit_code else "Succeeded"
        pod["status"] |= {"phase": phase, "containerStatuses": statuses, **status}
        job["status"]["active"] = 0
        target = next((each for each in job["status"].get("conditions", ()) if each["type"] == "FailureTarget"), None)
        if target is not None:
            self.condition(name, "Failed", target["reason"], target["message"])
        elif exit_code:
            said = (
                f"Container main for pod training/{name}-d222p failed with exit code {exit_code} matching FailJob rule"
            )
            self.condition(name, "Failed", "PodFailurePolicy", f"{said} at index 1")
        else:
            self.condition(name, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        if "deletionTimestamp" in pod["metadata"]:
            del self.pods[name]

    def delete_pod(self, name: str) -> None:
        """Let somebody delete the pod of a Job, which stops then."""
        self.pods[name]["metadata"]["deletionTimestamp"] = self.tick()

    def delete_job(self, name: str) -> None:
        """Let somebody delete a Job; its pod is then deleted by the garbage collector."""
        del self.jobs[name]
        if name in self.pods:
            self.delete_pod(name)

    def forget(self, name: str) -> None:
        """Remove a Job and its pod, as some time after it has finished."""
        del self.jobs[name]
        self.pods.pop(name, None)

    def condition(self, name: str, kind: str, reason: str = "", message: str = "") -> None:
        """Set a condition of a Job."""
        condition = {"type": kind, "status": "True", "reason": reason, "message": message}
        conditions = self.jobs[name]["status"].setdefault("conditions", [])
        conditions.append(condition | {"lastTransitionTime": self.tick()})

    def tick(self) -> str:
        """Return the next second, as the API writes times."""
        self._now += timedelta(seconds=1)
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _job(self, name: str) -> Job:
        return Job.model_validate(self.jobs[name])

    def _container(self, name: str) -> str:
        return str(self.jobs[name]["spec"]["template"]["spec"]["containers"][0]["name"])


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a selector of `key=value` and one last `key in (a,b)`."""
    head, _, names = selector.partition(" in (")
    *equal, last = head.split(",") if head else [""]
    if names:
        return labels.get(last) in names.rstrip(")").split(",") and selects(",".join(equal), labels)
    pairs = (each.split("=") for each in (*equal, last) if each)
    return all(labels.get(key) == value for key, value in pairs)


def _merge(document: Document, patch: Mapping[str, Any]) -> None:
    """Apply a JSON Merge Patch (RFC 7386) without deletions."""
    for key, value in patch.items():
        if isinstance(value, Mapping):
            _merge(document.setdefault(key, {}), value)
        else:
            document[key] = value


def read_job(*conditions: tuple[str, str, str], **metadata: Any) -> Job:
    """Build the Job of the first task of `make_job` with conditions (type, reason, message), as a server answers it."""
    held = [{"type": kind, "status": "True", "reason": why, "message": said} for kind, why, said in conditions]
    annotations = {OWNER: "resnet-1f2e3d4c/1", **metadata.pop("annotations", {})}
    common = {"name": TASK_NAME, "labels": {TASK: TASK_NAME}, "creationTimestamp": "2026-11-02T09:00:00Z"}
    common |= {"resourceVersion": "11"}
    at = {"lastTransitionTime": "2026-11-02T10:00:00Z"}
    status = {"conditions": [each | at for each in held], "startTime": "2026-11-02T09:00:00Z"}
    return Job.model_validate({"metadata": common | {"annotations": annotations} | metadata, "status": status})


def read_pod(phase: str = "Running", *, node: str = "node-1", state: Document | None = None, **members: Any) -> Pod:
    """Build the pod of that Job with the state of its container; `members` are of its status or of its metadata."""
    metadata: Document = {"name": f"{TASK_NAME}-d222p", "labels": {TASK: TASK_NAME}}
    metadata |= {"annotations": {OWNER: "resnet-1f2e3d4c/1"}}
    own = ("name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    metadata |= {"resourceVersion": "12"} | {key: members.pop(key) for key in own if key in members}
    statuses = [] if state is None else [{"name": "main", "state": state}]
    status = {"phase": phase, "containerStatuses": statuses} | members
    return Pod.model_validate(
        {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "main"}]}, "status": status}
    )


def ended(exit_code: int, reason: str = "Error", message: str = "") -> Document:
    """Return the state of a container that ran for an hour."""
    times = {"startedAt": "2026-11-02T09:00:30Z", "finishedAt": "2026-11-02T10:00:30Z"}
    return {"terminated": {"exitCode": exit_code, "reason": reason, "message": message, **times}}


def waiting(reason: str, message: str = "") -> Document:
    """Return the state of a container that does not run yet."""
    return {"waiting": {"reason": reason, "message": message}}


def disrupted(reason: str, message: str = "") -> list[Document]:
    """Return the conditions of a pod that is taken away."""
    return [{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}]
