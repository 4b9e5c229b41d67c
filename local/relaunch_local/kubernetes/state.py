"""The objects of a cluster, their resource versions, and lists of them in pages."""

import base64
import json
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from relaunch_local.ecs.clock import Clock
from relaunch_local.kubernetes.errors import ApiError, not_found

Document = dict[str, Any]
# `--event-ttl` of kube-apiserver.
_EVENTS_KEPT_SECONDS = 3_600.0
_REMOVED_KEPT = 1_000
# Who records events: by their reason, else by the kind that they are about.
_COMPONENTS = {
    **dict.fromkeys(("Scheduled", "FailedScheduling"), "default-scheduler"),
    "Job": "job-controller",
    "Node": "node-controller",
}
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class ClusterState:
    """Objects by resource (`jobs`, `pods`), namespace and name; whoever uses it holds the clock's lock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.logs: dict[str, list[tuple[str, str]]] = {}
        """Lines by the UID of the pod: when, and the text."""
        self._objects: dict[str, dict[tuple[str, str], Document]] = {}
        self._version = 100
        self._oldest_list = 0
        self._removed: deque[tuple[int, str, Document]] = deque(maxlen=_REMOVED_KEPT)
        self._made = 0

    def now(self) -> str:
        """Return the time as the API writes it."""
        return write_time(self.clock.now())

    def find(self, resource: str, namespace: str, name: str) -> Document | None:
        """Return an object, None if there is none."""
        return self._objects.get(resource, {}).get((namespace, name))

    def get(self, resource: str, namespace: str, name: str) -> Document:
        """Return an object.

        Raises:
            ApiError: 404.
        """
        found = self.find(resource, namespace, name)
        if found is None:
            raise not_found("jobs.batch" if resource == "jobs" else resource, name)
        return found

    def all(self, resource: str, namespace: str | None = None) -> list[Document]:
        """Return all objects of a namespace, or of all, in the order of their names, as lists are."""
        found = self._objects.get(resource, {})
        return [found[key] for key in sorted(found) if namespace is None or key[0] == namespace]

    def add(self, resource: str, namespace: str, document: Document) -> Document:
        """Add an object with a UID.

        Raises:
            ApiError: 409, there is one of this name.
        """
        name = document["metadata"]["name"]
        if self.find(resource, namespace, name) is not None:
            kind = "jobs.batch" if resource == "jobs" else resource
            raise ApiError(409, "AlreadyExists", f'{kind} "{name}" already exists')
        self._made += 1
        metadata = document["metadata"]
        metadata |= {"uid": f"00000000-0000-4000-8000-{self._made:012d}", "creationTimestamp": self.now()}
        if namespace:
            metadata["namespace"] = namespace
        self._objects.setdefault(resource, {})[namespace, name] = document
        self.touch(document)
        return document

    def remove(self, resource: str, document: Document) -> None:
        """Remove an object; does nothing if it was removed, even if there is a new one of its name."""
        key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        if self._objects.get(resource, {}).get(key) is document:
            del self._objects[resource][key]
            self._version += 1
            self._removed.append((self._version, resource, document))

    def replace(self, resource: str, document: Document) -> None:
        """Put an object in the place of the one of its name."""
        key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        self._objects[resource][key] = document
        self.touch(document)

    def touch(self, document: Document) -> None:
        """Give an object that was changed a new resource version."""
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)

    def record_event(self, about: Document, kind: str, reason: str, message: str) -> None:
        """Record an event of an object; repeated ones are counted."""
        self.drop_old_events()
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        at = self.now()
        involved = {
            "kind": about["kind"],
            "apiVersion": about.get("apiVersion", "v1"),
            **{key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in metadata},
        }
        for each in self.all("events", namespace):
            if (each["involvedObject"]["uid"], each["reason"], each["message"]) == (involved["uid"], reason, message):
                each |= {"count": each["count"] + 1, "lastTimestamp": at}
                self.touch(each)
                return
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{self.suffix()}"},
            "involvedObject": involved,
            "source": {"component": _COMPONENTS.get(reason) or _COMPONENTS.get(about["kind"], "kubelet")},
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
        }
        self.add("events", namespace, event)

    def drop_old_events(self) -> None:
        """Forget what happened more than an hour ago."""
        oldest = write_time(self.clock.now() - timedelta(seconds=_EVENTS_KEPT_SECONDS / self.clock.speed))
        for each in self.all("events"):
            if each["lastTimestamp"] < oldest:
                self.remove("events", each)

    def suffix(self) -> str:
        """Return five characters for the name of a pod, each time others."""
        self._made += 1
        number = self._made * 7919
        letters = ""
        for _ in range(5):
            number, digit = divmod(number, len(_ALPHABET))
            letters += _ALPHABET[digit]
        return letters

    def page(
        self, found: list[Document], limit: int, continue_token: str, kind: str, api_version: str = "v1"
    ) -> Document:
        """Return a page of a list; `found` is the whole list as it is now.

        Raises:
            ApiError: 410, the token is of a list that expired; 400, it is none.
        """
        start, version = self._read_token(continue_token) if continue_token else (0, self._version)
        page = found[start : start + limit] if limit else found[start:]
        metadata: Document = {"resourceVersion": str(version)}
        left = len(found) - start - len(page)
        if left > 0:
            token = json.dumps({"v": version, "start": start + len(page)}).encode()
            metadata |= {"continue": base64.urlsafe_b64encode(token).decode(), "remainingItemCount": left}
        return {"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata, "items": page}

    @property
    def version(self) -> int:
        """The version of the newest change."""
        return self._version

    def changes_since(self, resource: str, version: int) -> list[tuple[int, Document, bool]]:
        """Return what was changed after a version, in order: the version, the object, and whether it is gone.

        Of several changes of an object there is the last one.

        Raises:
            ApiError: 410, what was removed since then is forgotten.
        """
        if version < self._oldest_list or (len(self._removed) == _REMOVED_KEPT and version < self._removed[0][0]):
            raise ApiError(410, "Expired", f"too old resource version: {version} ({self._version})")
        gone = [(at, each, True) for at, kind, each in self._removed if kind == resource and at > version]
        numbered = [(int(each["metadata"]["resourceVersion"]), each) for each in self.all(resource)]
        return sorted((*gone, *((at, each, False) for at, each in numbered if at > version)), key=itemgetter(0))

    def expire_lists(self) -> None:
        """Let all lists that were begun expire, as after five minutes (etcd's compaction)."""
        self._version += 1
        self._oldest_list = self._version

    def _read_token(self, token: str) -> tuple[int, int]:
        try:
            read = json.loads(base64.urlsafe_b64decode(token))
            start = int(read["start"])
            version = int(read["v"])
        except (ValueError, TypeError, KeyError) as error:
            raise ApiError(400, "BadRequest", "continue key is not valid") from error
        if version < self._oldest_list:
            said = "The provided continue parameter is too old to display a consistent list result. You can start a new"
            raise ApiError(410, "Expired", f"{said} list without the continue parameter.")
        return start, version


def write_time(time: datetime) -> str:
    """Return a time as the API writes it, in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def set_condition(document: Document, kind: str, status: str, at: str, why: tuple[str, str] = ("", "")) -> None:
    """Set a condition of an object; `why` is the reason and the message."""
    conditions = document["status"].setdefault("conditions", [])
    kept = [each for each in conditions if each["type"] != kind]
    condition = {"type": kind, "status": status, "reason": why[0], "message": why[1], "lastTransitionTime": at}
    document["status"]["conditions"] = [*kept, {key: value for key, value in condition.items() if value}]


def has_condition(document: Mapping[str, Any], *kinds: str) -> bool:
    """Return whether one of these conditions holds."""
    conditions = document["status"].get("conditions", ())
    return any(each["type"] in kinds and each["status"] == "True" for each in conditions)
