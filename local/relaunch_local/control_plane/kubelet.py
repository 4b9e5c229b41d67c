"""Simulated nodes of a real control plane: pods go through their phases, end when they are deleted, and have logs.

Containers are not run.

Sources: "Pod Lifecycle" and "Nodes" (Kubernetes documentation); the kubelet's answers to log requests are its source's.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from relaunch_local.control_plane.loopback_service import LoopbackService
from relaunch_local.control_plane.plane import ControlPlane
from relaunch_local.control_plane.pod_logs import PodLogs
from relaunch_local.ecs.clock import WallClock
from relaunch_local.kubernetes.state import write_time

Document = dict[str, Any]
SIGTERM_EXIT = 143
SIGKILL_EXIT = 137
_HEARTBEAT_SECONDS = 2.0
_WATCH_SECONDS = 2
_PATCH = {"Content-Type": "application/strategic-merge-patch+json"}


@dataclass(frozen=True)
class Behaviour:
    """What containers do by themselves, and on SIGTERM.

    They exit with 0 after `run_seconds`, None for when they are told to; on SIGTERM they exit with `stop_exit` at once,
    None to go on until their grace period is over.
    """

    run_seconds: float | None = None
    stop_exit: int | None = SIGTERM_EXIT


@dataclass
class _Container:
    """A container that runs or has run."""

    pod: Document
    started_at: str
    stopping: bool = False
    exit_code: int | None = None


class Kubelets:
    """The kubelets of all simulated nodes, on threads of their own until they are closed."""

    def __init__(self, plane: ControlPlane, behaviour: Behaviour = Behaviour()) -> None:
        self.behaviour = behaviour
        self.logs = PodLogs()
        self._api = plane.open_http()
        self._watching = plane.open_http()
        self._clock = WallClock()
        self._containers: dict[str, _Container] = {}
        self._nodes: set[str] = set()
        self._is_closing = threading.Event()
        self._service = LoopbackService(self.logs.answer, plane.authority)
        self._thread = threading.Thread(target=self._watch, name="kubelets", daemon=True)
        self._clock.start()
        self._thread.start()

    def close(self) -> None:
        """Stop; pods stay as they are."""
        self._is_closing.set()
        self._thread.join()
        self._clock.stop()
        self._service.close()
        self._watching.close()
        self._api.close()

    def add_node(self, name: str, resources: Mapping[str, str], labels: Mapping[str, str] | None = None) -> None:
        """Register a node with these extended resources beside processors and memory; it is ready."""
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        self._api.post("/api/v1/nodes", json=node).raise_for_status()
        capacity = {"cpu": "32", "memory": "128Gi", "pods": "500", **resources}
        with self._clock.lock:
            self._nodes.add(name)
        status: Document = {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._service.port}},
        }
        self._post_status(name, status)
        self._clock.call_later(_HEARTBEAT_SECONDS, lambda: self._beat(name))

    def lose_node(self, name: str) -> None:
        """Let nothing be heard of a node any more."""
        with self._clock.lock:
            self._nodes.discard(name)

    def remove_node(self, name: str) -> None:
        """Remove a node with what runs there, as the cloud does with a machine that is gone."""
        self.lose_node(name)
        answer = self._api.delete(f"/api/v1/nodes/{name}")
        if answer.status_code != 404:
            answer.raise_for_status()

    def exit(self, uid: str, code: int) -> None:
        """Let the container of a pod exit."""
        with self._clock.lock:
            self._exit(self._containers[uid], code)

    def end_all(self, namespace: str) -> None:
        """Let all containers of a namespace exit, as a test that ends does."""
        with self._clock.lock:
            running = [each for each in self._containers.values() if each.pod["metadata"]["namespace"] == namespace]
            for each in running:
                self._exit(each, SIGKILL_EXIT)

    def _beat(self, name: str) -> None:
        if name in self._nodes and not self._is_closing.is_set():
            self._post_status(name, {})
            self._clock.call_later(_HEARTBEAT_SECONDS, lambda: self._beat(name))

    def _post_status(self, name: str, status: Document) -> None:
        now = write_time(datetime.now(UTC))
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        self._patch(f"/api/v1/nodes/{name}/status", status | {"conditions": [ready]})

    def _watch(self) -> None:
        version = ""
        while not self._is_closing.is_set():
            try:
                version = self._watch_from(version) if version else self._list()
            except (httpx.HTTPError, ValueError):
                # The server ends, or does not know the version any more: the list is read anew.
                version = ""
                self._is_closing.wait(0.1)

    def _list(self) -> str:
        listed = self._watching.get("/api/v1/pods").raise_for_status().json()
        for pod in listed["items"]:
            self._see(pod)
        return str(listed["metadata"]["resourceVersion"])

    def _watch_from(self, version: str) -> str:
        parameters = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}
        with self._watching.stream("GET", "/api/v1/pods", params=parameters) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ValueError(event["object"].get("message", ""))
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    self._forget(event["object"])
                else:
                    self._see(event["object"])
        return version

    def _see(self, pod: Document) -> None:
        metadata = pod["metadata"]
        with self._clock.lock:
            if pod["spec"].get("nodeName") not in self._nodes:
                return
            container = self._containers.get(metadata["uid"])
            is_over = pod["status"].get("phase") in {"Succeeded", "Failed"}
            if metadata.get("deletionTimestamp"):
                self._end(pod, None if is_over else container)
            elif container is None and not is_over:
                self._start(pod)

    def _forget(self, pod: Document) -> None:
        with self._clock.lock:
            self._containers.pop(pod["metadata"]["uid"], None)

    def _start(self, pod: Document) -> None:
        started_at = write_time(datetime.now(UTC))
        container = _Container(pod, started_at)
        self._containers[pod["metadata"]["uid"]] = container
        self.logs.add(pod)
        self._post_pod(container, "Running", {"running": {"startedAt": started_at}})
        if self.behaviour.run_seconds is not None:
            self._clock.call_later(self.behaviour.run_seconds, lambda: self._exit(container, 0))

    def _end(self, pod: Document, container: _Container | None) -> None:
        """End the container of a pod that is being deleted; the pod is gone once it has ended."""
        if container is None or container.exit_code is not None:
            self._remove(pod)
        elif not container.stopping:
            container.stopping = True
            grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            self._clock.call_later(grace, lambda: self._exit(container, SIGKILL_EXIT))
            if self.behaviour.stop_exit is not None:
                self._exit(container, self.behaviour.stop_exit)

    def _exit(self, container: _Container, code: int) -> None:
        if container.exit_code is not None or container.pod["spec"]["nodeName"] not in self._nodes:
            return
        container.exit_code = code
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": container.started_at}
        ended["finishedAt"] = write_time(datetime.now(UTC))
        self._post_pod(container, "Failed" if code else "Succeeded", {"terminated": ended})
        if container.stopping:
            self._remove(container.pod)

    def _post_pod(self, container: _Container, phase: str, state: Document) -> None:
        spec = container.pod["spec"]["containers"][0]
        is_running = phase == "Running"
        status = {"name": spec["name"], "image": spec["image"], "imageID": "", "restartCount": 0, "ready": is_running}
        ready = {"status": "True" if is_running else "False"}
        conditions = [{"type": kind, **ready} for kind in ("Ready", "ContainersReady")]
        changed = {"phase": phase, "startTime": container.started_at, "conditions": conditions}
        self._patch(f"{_path(container.pod)}/status", changed | {"containerStatuses": [status | {"state": state}]})

    def _remove(self, pod: Document) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._api.request("DELETE", _path(pod), json=options)

    def _patch(self, path: str, status: Document) -> None:
        # What was deleted meanwhile is not there any more.
        self._api.patch(path, content=json.dumps({"status": status}), headers=_PATCH)


def _path(pod: Document) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
