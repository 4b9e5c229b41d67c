"""Answers that no API server gives, to the calls that launch, stop and look at Jobs.

Whoever has the cluster, or the address of its API, answers what they like. What is read of it is a task, or an error
of the port; what follows from the task is decided as for any other.
"""

import base64
import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from typing import Any

import httpx
import yaml

from relaunch.adapters.kubernetes.acs_diagnosis import check_acs
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.diagnosis import Known, check_ack
from relaunch.adapters.kubernetes.inspection import SYSTEM_NAMESPACE, ClusterInspection
from relaunch.adapters.kubernetes.target import KubernetesTarget, kubernetes_target
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt as JobAttempt
from relaunch.core.jobs.attempt import Placement, PlacementState
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.kubernetes.rules import kubernetes_revision
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.launches.launch_plan import plan_launch, pod_image
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.core.lifecycle.table import decide
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.revisions.image_name import parse_image_name
from relaunch.ports import PortError
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import bombs, mutate, places
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request, answer
from relaunch_local.repository import REPOSITORY

STACK = "relaunch"
NAMESPACE = "training"
_NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
_NAMES = tuple(f"atari-{number}-1-1" for number in range(4))
# Longer ones take their time to be made.
_LONGEST_BOMB = 1_500_000
_ODD_STATUS = (204, 301, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 599)


def _packed(text: str) -> str:
    """Return a release as Helm stores it, which the API writes in base64 once more."""
    return base64.b64encode(base64.b64encode(gzip.compress(text.encode(), 1))).decode()


_DIGEST = f"sha256:{'0' * 64}"
# What is of the kind that belongs there, and yet not what a server writes, by the end of the field's name.
_ODD_LEAVES: Mapping[str, tuple[Any, ...]] = {
    "At": ("2026-01-01T00:00:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", 0, -1, 10**12, "now"),
    "phase": ("Running", "Succeeded", "Failed", "Pending", "Unknown", ""),
    "status": ("True", "False", "Unknown", "true"),
    "type": ("DisruptionTarget", "Complete", "Failed", "FailureTarget", "Ready", "PodScheduled"),
    "imageID": (
        *(f"evil.example/x@{_DIGEST}", f"docker-pullable://evil.example/x@{_DIGEST}", _DIGEST, f"docker://{_DIGEST}"),
        *(f"registry.example.com/team/atari@{_DIGEST}", f"registry.example.com/team/atari/../evil@{_DIGEST}"),
        *("registry.example.com/team/atari:2", f"registry.example.com/team/atari@{_DIGEST}@{_DIGEST}"),
    ),
    "exitCode": (-1, 0, 137, 2**40, "0"),
    "owner": ("atari-1/1", "atari-0/2", "atari-0/-1", "/", "a/" * 50, "atari-0/9" + "9" * 400),
    "task": ("atari-3-1-1", "", "atari-0-1-2", "x" * 64),
    "resourceVersion": ("0", "9" * 400, "-1", "\u0661"),
    "selectors": (
        "[" * 100_000,
        f"[{'{},' * 150_000}{{}}]",
        '[{"effect": 7, "objectSelector": []}]',
        "[NaN]",
        "[1e999]",
    ),
    "release": (
        *(_packed("[" * 100_000), _packed("9" * 100_000), _packed("[]"), "%", "AAAA"),
        _packed(" " * 30_000_000),
    ),
    "image": ("cgpu", "cgpu:" + "9" * 5_000, ":", "a/cgpu:v1.0.5-²"),
    "name": ("main", "node-0", "../../kube-system", "x" * 5_000, "atari-1-1-1"),
}
_SAME_KIND = {"startTime": "At", "Timestamp": "At", "Time": "At", "reason": "type", "nodeName": "name"}
_RETRY_AFTER = ("", "1", "9" * 400, "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "²")


def cluster_answers(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Answer the calls in turn with bombs and lists without an end, then drawn ones with answers that are changed."""
    world = _AttackedCluster()
    yield attempt("a list without an end", partial(world.make, world.calls["list_nodes"], _endless))
    sendable = [(what, body) for what, body in bombs() if len(body) <= _LONGEST_BOMB]
    for (name, call), (what, body) in zip(cycle(world.calls.items()), sendable, strict=False):
        yield attempt(f"{what} to {name}", partial(world.make, call, _always(body)))
    for field, name in (("selectors", "doctor of ACS"), ("release", "doctor of ACK")):
        for place, value in enumerate(_ODD_LEAVES[field]):
            yield attempt(f"{field} {place} to {name}", partial(world.make, world.calls[name], _with(field, value)))
    for number in range(count):
        name = dice.choice(("describe", dice.choice(sorted(world.calls))))
        seed = dice.getrandbits(32)
        yield attempt(f"{number}: {name} with {seed}", partial(world.make, world.calls[name], _changed(seed)))


Answer = tuple[int, bytes, Mapping[str, str]]


def _always(body: bytes) -> Callable[[Any], Answer]:
    return lambda _content: (200, body, {})


def _endless(content: Any) -> Answer:
    if isinstance(content, dict) and "items" in content:
        content = {**content, "items": [], "metadata": {**content["metadata"], "continue": "again"}}
    return 200, _written(content), {}


def _with(field: str, value: object) -> Callable[[Any], Answer]:
    """Return what sets a field wherever an answer has it."""

    def change(content: Any) -> Answer:
        changed = copy.deepcopy(content)
        for holder, key in _leaves(changed):
            if key == field:
                holder[key] = value
        return 200, _written(changed), {}

    return change


def _changed(seed: int) -> Callable[[Any], Answer]:
    """Return what changes answers, each in another way."""
    # Reproducible, not a secret.
    dice = random.Random(seed)  # noqa: S311

    def change(content: Any) -> Answer:
        # A call that reads several answers comes to the last ones only if the first were right.
        if dice.random() < 0.5:
            return 200, _written(content), {}
        if dice.random() < 0.1:
            status = dice.choice(_ODD_STATUS)
            said = mutate(
                {"kind": "Status", "message": "no", "reason": "Forbidden", "details": {}, "code": status}, dice
            )
            return status, _written(said), {"Retry-After": dice.choice(_RETRY_AFTER)}
        changed = mutate(content, dice) if dice.random() < 0.7 else copy.deepcopy(content)
        leaves = [(holder, str(key)) for holder, key in _leaves(changed) if _kind_of(str(key))]
        # By the field first: there are many more names and labels than times.
        for field in dice.choices(sorted({key for _, key in leaves}), k=3) if leaves else ():
            holder, key = dice.choice([each for each in leaves if each[1] == field])
            holder[key] = dice.choice(_ODD_LEAVES[_kind_of(key)])
        return 200, _written(changed), {}

    return change


def _kind_of(key: str) -> str:
    """Return the key of `_ODD_LEAVES` for a field, empty if there is none."""
    ending = next((each for each in (*_ODD_LEAVES, *_SAME_KIND) if key.endswith(each)), "")
    return _SAME_KIND.get(ending, ending)


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where the texts and numbers of an answer are."""
    return ((holder, key) for holder, key in places(value) if not isinstance(holder[key], dict | list))


def _written(content: Any) -> bytes:
    return content.encode() if isinstance(content, str) else json.dumps(content).encode("utf-8", "surrogatepass")


class _AttackedCluster:
    """A cluster with a Job that runs, one that failed, one that waits and one that is being stopped, and its client."""

    def __init__(self) -> None:
        clock = Clock()
        scripts = {_NAMES[0]: Script(runtime_seconds=None), _NAMES[1]: Script(runtime_seconds=5.0, exit_code=1)}
        self._cluster = KubernetesCluster(
            clock, ScriptedProcesses(clock, lambda spec: scripts.get(spec.family, Script(runtime_seconds=None)))
        )
        self._cluster.add_node("node-0", gpus=3)
        for resource, namespace, document in _objects():
            self._cluster.state.add(resource, namespace, document)
        self._change: Callable[[Any], Answer] | None = None
        self.target: KubernetesTarget = kubernetes_target(self._open(), Target.ACK, STACK)
        self.jobs = {name: _job(name) for name in _NAMES}
        for job in self.jobs.values():
            self.target.launch(plan_launch(job))
        clock.advance(60.0)
        self.target.stop(_NAMES[2], "Relaunch: cancelled")
        self.calls: Mapping[str, Callable[[], object]] = self._calls()

    def make(self, call: Callable[[], object], change: Callable[[Any], Answer]) -> str | None:
        """Make a call whose answers are changed; return what must not come of it."""
        self._change = change
        try:
            found = call()
        except PortError:
            return None
        finally:
            self._change = None
        return next(filter(None, map(self._decide, found if isinstance(found, list) else ())), None)

    def _decide(self, seen: object) -> str | None:
        """Decide what follows from a task for its job."""
        job = self.jobs.get(seen.task_id) if isinstance(seen, TaskObservation) else None
        if job is None or not isinstance(seen, TaskObservation):
            return None
        after = decide(job, TaskSeen(seen), _NOW, StackLimits()).job
        asked = parse_image_name(pod_image(job))
        runs = parse_image_name(pod_image(after))
        is_same = asked is not None and runs is not None and asked.without_tag == runs.without_tag
        return None if is_same else f"the next attempt runs {pod_image(after)}"

    def _calls(self) -> dict[str, Callable[[], object]]:
        client = self._open()
        target = self.target
        return {
            "describe": lambda: [each for each in target.describe(_NAMES).values() if each is not None],
            "list_tasks": lambda: [task for page in target.list_tasks() for task in page],
            "find_tasks_of": lambda: target.find_tasks_of(self.jobs[_NAMES[0]].attempt_key),
            "list_nodes": lambda: [node for page in target.list_nodes() for node in page],
            "find_node": lambda: target.find_node("node-0"),
            "stop": lambda: target.stop(_NAMES[0], "Relaunch: cancelled"),
            "launch": lambda: target.launch(plan_launch(self.jobs[_NAMES[0]])),
            "log": lambda: list(client.read_log(self._pod(), "main")),
            "nodes": ClusterInspection(client).gpu_nodes,
            "doctor of ACK": lambda: list(check_ack(client, Known())),
            "doctor of ACS": lambda: list(check_acs(client)),
        }

    def _pod(self) -> str:
        return str(self._cluster.state.all("pods", NAMESPACE)[0]["metadata"]["name"])

    def _open(self) -> KubernetesClient:
        connection: Any = _Connection(httpx.MockTransport(self._answer))
        return KubernetesClient(connection)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        query = dict(request.url.params)
        is_rest = "continue" in query
        if is_rest:
            query.pop("continue")
        asked = Request(
            request.method, request.url.path, query, request.read(), request.headers.get("Content-Type", "")
        )
        # An attack changes nothing of the cluster.
        if self._change is not None and request.method != "GET":
            asked = Request("GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{_NAMES[0]}", {})
        status, content = self._answer_truly(asked)
        if self._change is None:
            return httpx.Response(status, content=_written(content))
        status, body, headers = self._change(content)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        return httpx.Response(status, content=body, headers=raw)

    def _answer_truly(self, asked: Request) -> tuple[int, Any]:
        try:
            return answer(self._cluster, asked)[:2]
        except ApiError as error:
            return error.code, error.to_status()


def _objects() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield what doctor reads of a cluster."""
    labels = {"owner": "helm", "name": "ack-ai-installer", "status": "deployed", "version": "1"}
    content = json.dumps({"chart": {"metadata": {"version": "1.12.1"}}})
    spec = {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/acs/cgpu:v1.5.10"}]}}}
    selector = {"name": "t4", "objectSelector": {"matchLabels": {}}, "effect": {"labels": {}}}
    yield "namespaces", "", {"metadata": {"name": NAMESPACE}}
    yield (
        "secrets",
        SYSTEM_NAMESPACE,
        {"metadata": {"name": "r", "labels": labels}, "data": {"release": _packed(content)}},
    )
    yield "daemonsets", SYSTEM_NAMESPACE, {"metadata": {"name": "cgpu"}, "spec": spec}
    yield (
        "configmaps",
        SYSTEM_NAMESPACE,
        {"metadata": {"name": "acs-profile"}, "data": {"selectors": json.dumps([selector])}},
    )
    for document in yaml.safe_load_all(
        (REPOSITORY / "infrastructure/kubernetes/role.yaml").read_text(encoding="utf-8")
    ):
        yield f"{document['kind'].lower()}s", NAMESPACE, document


class _Connection:
    """Implements what the client needs of a connection."""

    namespace = NAMESPACE
    server = "https://cluster.invalid"
    identity = "cluster"

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self.http = httpx.Client(transport=transport, base_url=self.server)

    def renew(self) -> None:
        """Do nothing: the credentials do not expire."""

    def close(self) -> None:
        """Close the client."""
        self.http.close()


def _job(name: str) -> Job:
    """Return a job whose first attempt runs as this task since five minutes."""
    definition = JobDefinition(
        name="atari",
        task_definition="",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement()),
        target=Target.ACK,
        kubernetes=KubernetesWorkload("registry.example.com/team/atari:1"),
        command=("train",),
    )
    placement = Placement(
        number=1,
        offering=OfferingKey("ack", None, PurchaseOption.ON_DEMAND),
        capacity_provider="",
        price_usd_per_hour=0.0,
        requested_at=_NOW - timedelta(minutes=5),
        state=PlacementState.PLACED,
        task_id=name,
    )
    started_at = _NOW - timedelta(minutes=4)
    return Job(
        job_id=name.removesuffix("-1-1"),
        definition=definition,
        trigger=TriggerFacts("direct", f"api:{name}", "a request"),
        revision=kubernetes_revision(definition),
        accepted_at=_NOW - timedelta(minutes=5),
        state=JobState.RUNNING,
        state_since=started_at,
        wake_at=_NOW,
        attempt=JobAttempt(1, placement, task_status="Running", node="node-0", started_at=started_at),
        has_slot=True,
    )
