"""The logs of pods, as a kubelet answers the API server that asks for them."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from relaunch_local.control_plane.loopback_service import Answer

_TEXT = "text/plain"


class PodLogs:
    """Lines by namespace, pod and container."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, str], list[tuple[str, str]]] = {}

    def add(self, pod: dict[str, Any]) -> None:
        """Begin the logs of a pod whose containers start."""
        for container in pod["spec"]["containers"]:
            self._lines.setdefault((pod["metadata"]["namespace"], pod["metadata"]["name"], container["name"]), [])

    def forget(self, namespace: str, pod: str) -> None:
        """Forget the logs of a pod, as if its containers had not started."""
        for key in [each for each in self._lines if each[:2] == (namespace, pod)]:
            del self._lines[key]

    def write(self, namespace: str, pod: str, container: str, at: str, text: str) -> None:
        """Add a line of a container; `at` is as RFC 3339 has times, with fractions."""
        self._lines[namespace, pod, container].append((at, text))

    def answer(self, path: str, _body: bytes) -> Answer:
        """Answer `/containerLogs/<namespace>/<pod>/<container>`."""
        parts = urlsplit(path)
        query = dict(parse_qsl(urlsplit(path).query))
        _, kind, *key = parts.path.split("/")
        if kind != "containerLogs" or len(key) != 3:
            return Answer("404 page not found", 404, _TEXT)
        namespace, pod, container = key
        found = self._lines.get((namespace, pod, container))
        if found is None:
            said = f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating'
            return Answer(said, 400, _TEXT)
        lines = [each for each in found if each[0][:19] >= query.get("sinceTime", "")[:19]]
        if "tailLines" in query:
            count = int(query["tailLines"])
            lines = lines[-count:] if count else []
        shown = [f"{at} {text}" if query.get("timestamps") == "true" else text for at, text in lines]
        content = "".join(f"{each}\n" for each in shown).encode()
        return Answer(content[: int(query.get("limitBytes", len(content)))].decode(errors="replace"), 200, _TEXT)
