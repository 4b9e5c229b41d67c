"""The kubelets: they run the containers of pods that were placed, and end them."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relaunch.core.kubernetes.acs import COMPUTE_CLASS, COMPUTE_QOS
from relaunch.core.revisions.image_name import parse_image_name
from relaunch_local.ecs.processes.port import LogTarget, Processes, ProcessHandle, ProcessSpec, ProcessStartError
from relaunch_local.kubernetes.pod_fields import expand
from relaunch_local.kubernetes.scheduler import is_over
from relaunch_local.kubernetes.state import ClusterState, Document, set_condition

_START_ERROR_EXIT = 128
_LOST_EXIT = 255
_OF_METADATA = re.compile(r"metadata\.(?P<kind>labels|annotations)\['(?P<key>.+)'\]")
_STOCK_SECONDS = 10.0
_SYNC_SECONDS = 10.0


class Kubelet:
    """Runs containers by a port for processes; whoever calls it holds the clock's lock, which exits take."""

    def __init__(self, state: ClusterState, processes: Processes, pull_seconds: float) -> None:
        self._state = state
        self._processes = processes
        self._pull_seconds = pull_seconds
        self._running: dict[str, ProcessHandle] = {}
        self._sidecars: dict[str, list[ProcessHandle]] = {}
        self.missing_images: set[str] = set()
        """Images that no registry has."""
        self.image_ids: dict[str, str] = {}
        """What the runtime reports of images, where that is not the digest that follows from their names."""
        self.qualities_out_of_stock: set[str] = set()
        """Qualities of service of ACS, `default` and `best-effort`, whose pods are placed and get no instance."""
        self.lost_nodes: set[str] = set()
        """Nodes that nothing is heard of: their pods stay as they were."""
        self._unheard: dict[str, list[Callable[[], None]]] = {}
        self._rebooting: set[str] = set()
        self.on_end: Any = lambda _pod: None
        """Called with a pod whose container has ended."""
        self.on_event: Any = lambda _pod, _kind, _reason, _message: None
        """Called with the events of pods."""
        self.refuse_after_boot: Callable[[Document], str] = lambda _pod: ""
        """Returns why a node that was rebooted does not admit a pod again: reason and message, empty if it does."""

    def start(self, pod: Document) -> None:
        """Pull the image, then start the container, unless the pod is deleted by then."""
        pod["status"] |= {"phase": "Pending", "startTime": self._state.now()}
        self._set_state(pod, {"waiting": {"reason": "ContainerCreating"}})
        self._state.clock.call_later(self._pull_seconds, lambda: self._run(pod))

    def stop(self, pod: Document, grace_seconds: float) -> bool:
        """Send SIGTERM, and SIGKILL later; return whether there is a container to wait for."""
        process = self._running.get(pod["metadata"]["uid"])
        if process is None:
            return False
        self._tell_killing(pod, _running_in(pod))
        process.terminate()
        # Undivided by the clock's speed: what a program does until it has saved takes its own time.
        self._state.clock.call_later(grace_seconds * self._state.clock.speed, lambda: self._kill(pod))
        return True

    def lose(self, node: str) -> None:
        """Lose a node: its processes end unheard."""
        self.lost_nodes.add(node)
        for pod in self._state.all("pods"):
            process = self._running.pop(pod["metadata"]["uid"], None) if pod["spec"].get("nodeName") == node else None
            if process is not None:
                process.kill()

    def cut_off(self, node: str) -> None:
        """Hear nothing more of a node, on which all goes on."""
        self.lost_nodes.add(node)
        self._unheard[node] = []

    def restart_runtime(self, node: str) -> None:
        """Restart the container runtime of a node, which finds the containers that it ran no more.

        That is so where the processes which watch over containers end with it; they outlive a restart otherwise.

        Source: loadContainer in internal/cri/server/restart.go of containerd: what ran by its checkpoint, and is not
        found, has ended now, with 255 for "Unknown". A kubelet makes no other sandbox for a pod that never restarts
        (computePodActions in pkg/kubelet/kuberuntime): the pod has failed.
        """
        for pod in self._pods_on(node):
            self._lose_containers(pod)

    def shut_down(self, node: str) -> None:
        """Lose a node that boots again, of which nothing is heard until it is reconnected."""
        self._rebooting.add(node)
        self.lose(node)

    def reconnect(self, node: str) -> None:
        """Hear of a node again what happened there meanwhile; what waits there to start starts."""
        self.lost_nodes.discard(node)
        for report in self._unheard.pop(node, ()):
            report()
        if node in self._rebooting:
            self._rebooting.discard(node)
            for pod in self._pods_on(node):
                self._lose_containers(pod, self.refuse_after_boot(pod))
        for pod in self._state.all("pods"):
            is_waiting = pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp")
            if pod["spec"].get("nodeName") == node and is_waiting:
                self.start(pod)

    def _pods_on(self, node: str) -> list[Document]:
        return [each for each in self._state.all("pods") if each["spec"].get("nodeName") == node and not is_over(each)]

    def _lose_containers(self, pod: Document, refusal: str = "") -> None:
        """End a pod whose containers the runtime lost; `refusal` is why it is not admitted again, empty if it is."""
        uid = pod["metadata"]["uid"]
        for process in (*self._sidecars.pop(uid, ()), *filter(None, [self._running.pop(uid, None)])):
            process.kill()
        if refusal:
            self._reject(pod, refusal)
        elif running := _running_in(pod):
            self._end_lost(pod, running[-1])

    def _end_lost(self, pod: Document, name: str) -> None:
        """End a pod by the container that its runtime lost: an init container, or the main one."""
        init = next((each for each in pod["spec"].get("initContainers") or () if each["name"] == name), None)
        if init is None:
            self._end(pod, _LOST_EXIT, "Unknown", "")
            return
        lost = {"exitCode": _LOST_EXIT, "reason": "Unknown", "finishedAt": self._state.now()}
        self._set_state(pod, {"terminated": lost}, init)
        pod["status"]["phase"] = "Failed"
        self.on_end(pod)

    def _reject(self, pod: Document, why: str) -> None:
        """Reject a pod, of whose containers the status tells no more (rejectPod in pkg/kubelet/kubelet.go)."""
        reason, _, message = why.partition(": ")
        self.on_event(pod, "Warning", reason, message)
        pod["status"] |= {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
        pod["status"].pop("containerStatuses", None)
        pod["status"].pop("initContainerStatuses", None)
        self._state.touch(pod)
        self.on_end(pod)

    def _run(self, pod: Document) -> None:
        if not self._may_start(pod):
            return
        if not self._has_instance(pod):
            self._state.clock.call_later(_STOCK_SECONDS, lambda: self._run(pod))
            return
        self._tell_pull_secrets(pod)
        self._start_container(pod)

    def _start_container(self, pod: Document, number: int = 0) -> None:
        """Start a container of the pod, the init containers one after the other, and then the main one."""
        containers = [*(pod["spec"].get("initContainers") or ()), pod["spec"]["containers"][0]]
        container = containers[number]
        if container["image"] in self.missing_images:
            said = f'Back-off pulling image "{container["image"]}"'
            self._set_state(pod, {"waiting": {"reason": "ImagePullBackOff", "message": said}}, container)
            return
        environment = self._environment(pod, container)
        if isinstance(environment, str):
            why = {"reason": "CreateContainerConfigError", "message": environment}
            self._set_state(pod, {"waiting": why}, container)
            self._state.clock.call_later(_SYNC_SECONDS, lambda: self._start_again(pod, number))
            return
        is_main = number == len(containers) - 1
        try:
            process = self._processes.start(self._spec(pod, container, environment, None if is_main else number))
        except ProcessStartError as error:
            self._end(pod, _START_ERROR_EXIT, "StartError", str(error))
            return
        uid = pod["metadata"]["uid"]
        self._set_state(pod, {"running": {"startedAt": self._state.now()}}, container)
        if container.get("restartPolicy") == "Always" and not is_main:
            self._sidecars.setdefault(uid, []).append(process)
            self._start_container(pod, number + 1)
            return
        self._running[uid] = process
        if is_main:
            pod["status"]["phase"] = "Running"
            for kind in ("ContainersReady", "Ready"):
                set_condition(pod, kind, "True", self._state.now())

    def _start_again(self, pod: Document, number: int) -> None:
        if self._may_start(pod):
            self._start_container(pod, number)

    def _init_exited(self, pod: Document, number: int, code: int) -> None:
        with self._state.clock.lock:
            container = pod["spec"]["initContainers"][number]
            # A sidecar ends with its pod.
            if container.get("restartPolicy") == "Always":
                return
            if self._running.pop(pod["metadata"]["uid"], None) is None:
                return
            reason = "Error" if code else "Completed"
            ended = {"exitCode": code, "reason": reason, "finishedAt": self._state.now()}
            self._set_state(pod, {"terminated": ended}, container)
            if code == 0 and not pod["metadata"].get("deletionTimestamp"):
                self._start_container(pod, number + 1)
                return
            pod["status"]["phase"] = "Failed"
            self._state.touch(pod)
            self.on_end(pod)

    def _may_start(self, pod: Document) -> bool:
        metadata = pod["metadata"]
        is_there = self._state.find("pods", metadata["namespace"], metadata["name"]) is pod
        is_going = bool(metadata.get("deletionTimestamp")) or pod["spec"]["nodeName"] in self.lost_nodes
        return is_there and not is_going and metadata["uid"] not in self._running

    def _has_instance(self, pod: Document) -> bool:
        """Return whether a virtual node has an instance for the pod, as any other node always has.

        Source: "Custom conditions of ACS pods": the condition of a pod that was placed, and gets none.
        """
        labels = pod["metadata"].get("labels", {})
        if COMPUTE_CLASS not in labels:
            return True
        has_stock = labels.get(COMPUTE_QOS, "default") not in self.qualities_out_of_stock
        said = "Create failed because the specified instance is out of stock. cn-hangzhou-i"
        why = ("", "") if has_stock else ("NoStock", said)
        set_condition(pod, "ContainerInstanceCreated", str(has_stock), self._state.now(), why)
        self._state.touch(pod)
        return has_stock

    def release(self, pod: Document) -> None:
        """Kill the container of a pod without a word."""
        self._kill(pod)

    def _tell_pull_secrets(self, pod: Document) -> None:
        """Warn of secrets that are not there: images that need none are pulled all the same."""
        names = [each["name"] for each in pod["spec"].get("imagePullSecrets") or ()]
        namespace = pod["metadata"]["namespace"]
        missing = [each for each in names if self._state.find("secrets", namespace, each) is None]
        if missing:
            said = "attempting to pull the image may not succeed."
            text = f"Unable to retrieve some image pull secrets ({', '.join(missing)}); {said}"
            self.on_event(pod, "Warning", "FailedToRetrieveImagePullSecret", text)

    def _environment(self, pod: Document, container: Document) -> Mapping[str, str] | str:
        """Return the variables of a container, or why it cannot be made: a Secret or a key of it is not there."""
        namespace = pod["metadata"]["namespace"]
        variables: dict[str, str] = {}
        for each in container.get("env") or ():
            source = each.get("valueFrom") or {}
            reference = source.get("secretKeyRef")
            if "fieldRef" in source:
                variables[each["name"]] = _field(pod, str(source["fieldRef"]["fieldPath"]))
                continue
            if reference is None:
                variables[each["name"]] = expand(each.get("value", ""), variables)
                continue
            secret = self._state.find("secrets", namespace, reference["name"])
            if secret is None:
                return f'secret "{reference["name"]}" not found'
            if reference["key"] not in secret.get("data", {}):
                return f"couldn't find key {reference['key']} in Secret {namespace}/{reference['name']}"
            variables[each["name"]] = base64.b64decode(secret["data"][reference["key"]]).decode()
        return variables

    def _spec(
        self, pod: Document, container: Document, environment: Mapping[str, str], init_number: int | None
    ) -> ProcessSpec:
        metadata = pod["metadata"]

        def exited(code: int, reason: str | None) -> None:
            if init_number is None:
                self._exited(pod, code, reason)
            else:
                self._init_exited(pod, init_number, code)

        return ProcessSpec(
            task_arn=metadata["uid"],
            family=metadata.get("labels", {}).get("job-name", ""),
            container=container["name"],
            image=container["image"],
            command=(*container.get("command", ()), *container.get("args", ())),
            environment=environment,
            on_exit=exited,
            log_target=LogTarget(metadata["namespace"], metadata["uid"]) if init_number is None else None,
            instance_id=pod["spec"]["nodeName"],
        )

    def _exited(self, pod: Document, code: int, reason: str | None) -> None:
        with self._state.clock.lock:
            if (unheard := self._unheard.get(pod["spec"]["nodeName"])) is not None:
                unheard.append(lambda: self._exited(pod, code, reason))
                return
            if self._running.pop(pod["metadata"]["uid"], None) is None:
                return
            word = "Error" if code else "Completed"
            if reason and reason.startswith("OutOfMemory"):
                word = "OOMKilled"
            self._end(pod, code, word, "")

    def _end(self, pod: Document, code: int, reason: str, message: str) -> None:
        started = pod["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt")
        terminated = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": self._state.now()}
        if message:
            terminated["message"] = message
        pod["status"]["phase"] = "Failed" if code else "Succeeded"
        self._set_state(pod, {"terminated": terminated})
        self._end_sidecars(pod)
        for kind in ("ContainersReady", "Ready"):
            set_condition(pod, kind, "False", self._state.now(), ("PodCompleted", ""))
        self.on_end(pod)

    def _end_sidecars(self, pod: Document) -> None:
        """End the sidecars of a pod whose program has ended (computePodActions in pkg/kubelet/kuberuntime).

        Those of one that is deleted were to end with it, of which there are events.
        """
        sidecars = self._sidecars.pop(pod["metadata"]["uid"], ())
        for each in sidecars:
            each.kill()
        if sidecars and not pod["metadata"].get("deletionTimestamp"):
            self._tell_killing(pod, _running_in(pod))

    def _tell_killing(self, pod: Document, names: Iterable[str]) -> None:
        for name in names:
            self.on_event(pod, "Normal", "Killing", f"Stopping container {name}")

    def _kill(self, pod: Document) -> None:
        process = self._running.get(pod["metadata"]["uid"])
        if process is not None:
            process.kill()

    def _set_state(self, pod: Document, state: Document, container: Document | None = None) -> None:
        """Set the state of a container, the main one if none is given, which waits for the others."""
        main = pod["spec"]["containers"][0]
        shown = container or main
        kind = "containerStatuses" if shown is main else "initContainerStatuses"
        others = [each for each in pod["status"].get(kind, ()) if each["name"] != shown["name"]]
        same = [each for each in pod["status"].get(kind, ()) if each["name"] == shown["name"]]
        # A container keeps the image that it was started with.
        known = same[0].get("imageID") if same else ""
        image_id = known or self.image_ids.get(shown["image"]) or _image_id(shown["image"])
        status = {"name": shown["name"], "image": shown["image"], "imageID": "", "restartCount": 0}
        has_image = "waiting" not in state
        status |= {
            "imageID": image_id if has_image else "",
            "ready": "running" in state,
            "state": state,
            "lastState": {},
        }
        pod["status"][kind] = [*others, status]
        if shown is not main:
            self._set_state(pod, {"waiting": {"reason": "PodInitializing"}})
        self._state.touch(pod)


def _running_in(pod: Document) -> list[str]:
    """Return the containers that a pod tells as running, those that start first before the others."""
    statuses = (*(pod["status"].get("initContainerStatuses") or ()), *(pod["status"].get("containerStatuses") or ()))
    return [each["name"] for each in statuses if "running" in each["state"]]


def _field(pod: Document, path: str) -> str:
    """Return the field of a pod that a variable refers to: a label or annotation, empty if it has none of this name."""
    found = _OF_METADATA.fullmatch(path)
    return str((pod["metadata"].get(found["kind"]) or {}).get(found["key"], "")) if found is not None else ""


def _image_id(image: str) -> str:
    """Return the ID of an image as containerd reports it: its repository, and a digest that follows from its name."""
    name = parse_image_name(image)
    digest = f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"
    return digest if name is None else name.at(name.digest or digest)
