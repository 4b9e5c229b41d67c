"""Answers that do not end at once: changes of objects as they happen, and a log that is followed.

Several changes of an object between two looks are one event here, that of the last one. Clients must expect that: a
server too leaves out what happened before a watch began.
"""

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.resources import RESOURCES
from relaunch_local.kubernetes.scheduler import is_over

Document = dict[str, Any]
# A look takes the cluster's lock.
_PAUSE_SECONDS = 0.05
_LONGEST_SECONDS = 1_800.0
_END_OF_FIRST = {"k8s.io/initial-events-end": "true"}


class Watch:
    """Watches the objects of a resource from a version on, those of one namespace if it is given."""

    def __init__(
        self,
        cluster: KubernetesCluster,
        resource: str,
        namespace: str | None,
        is_wanted: Callable[[Document], bool],
        show: Callable[[Document], Document],
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self._namespace = namespace
        self._is_wanted = is_wanted
        self._show = show
        self._known: set[str] = set()
        self._version = 0

    def begin(self, version: str, *, sends_first: bool) -> Iterator[Document]:
        """Yield the events of what is there, if that is asked for or no version is given, and keep the version.

        Raises:
            ApiError: 400, it is no version.
        """
        if not (version or "0").isdecimal():
            raise ApiError(400, "BadRequest", f'Invalid value: "{version}": must be a number')
        with self._cluster.clock.lock:
            found = [each for each in self._objects() if self._is_wanted(each)]
            is_new = sends_first or version in {"", "0"}
            self._version = self._cluster.state.version if is_new else int(version)
            self._known = {
                e["metadata"]["uid"] for e in found if int(e["metadata"]["resourceVersion"]) <= self._version
            }
            first = [self._event("ADDED", each) for each in found] if is_new else []
        yield from first
        if sends_first:
            metadata = {"resourceVersion": str(self._version), "annotations": _END_OF_FIRST}
            resource = RESOURCES[self._resource]
            end = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
            yield {"type": "BOOKMARK", "object": end}

    def changes(self) -> list[Document]:
        """Return the events since the last look.

        Raises:
            ApiError: 410, the version is too old.
        """
        with self._cluster.clock.lock:
            self._cluster.clock.synchronize()
            changed = self._cluster.state.changes_since(self._resource, self._version)
            self._version = self._cluster.state.version
            is_here = [e for e in changed if self._namespace in {None, e[1]["metadata"].get("namespace", "")}]
            return [found for _, each, is_gone in is_here if (found := self._changed(each, is_gone=is_gone))]

    def _objects(self) -> list[Document]:
        return self._cluster.state.all(self._resource, self._namespace)

    def _changed(self, document: Document, *, is_gone: bool) -> Document | None:
        uid = document["metadata"]["uid"]
        was_known = uid in self._known
        if is_gone or not self._is_wanted(document):
            self._known.discard(uid)
            return self._event("DELETED", document) if was_known else None
        self._known.add(uid)
        return self._event("MODIFIED" if was_known else "ADDED", document)

    def _event(self, kind: str, document: Document) -> Document:
        return {"type": kind, "object": deepcopy(self._show(document))}


def follow(
    watch: Watch, first: Iterator[Document], seconds: float, is_closed: Callable[[], bool]
) -> Iterator[Document]:
    """Yield events as they come, at most for this long, or until the server is closed."""
    yield from first
    end = time.monotonic() + min(seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)
    while time.monotonic() < end and not is_closed():
        try:
            changes = watch.changes()
        except ApiError as error:
            yield {"type": "ERROR", "object": error.to_status()}
            return
        yield from changes
        if not changes:
            time.sleep(_PAUSE_SECONDS)


def follow_log(
    cluster: KubernetesCluster, pod: Document, read: Callable[[], list[str]], is_closed: Callable[[], bool]
) -> Iterator[str]:
    """Yield the lines of a pod as they come, until it has ended or the server is closed."""
    shown = 0
    while not is_closed():
        with cluster.clock.lock:
            cluster.clock.synchronize()
            is_last = is_over(pod) or cluster.state.find("pods", *_place(pod)) is not pod
            lines = read()
        yield from lines[shown:]
        shown = len(lines)
        if is_last:
            return
        time.sleep(_PAUSE_SECONDS)


def _place(pod: Document) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
