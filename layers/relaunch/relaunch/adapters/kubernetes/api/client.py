"""A client of the Kubernetes API for what a launcher needs of a namespace.

Errors are those of errors.py, errors of ports: throttling, server errors, time-outs and lost connections are transient,
and then the request may have taken effect. Nothing is retried but a request whose credentials were refused, once, with
new ones.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, GoneError, NotFoundError, to_port_error
from relaunch.adapters.kubernetes.api.models import (
    ConfigMap,
    ConfigMapTexts,
    Event,
    Job,
    ListMetadata,
    Model,
    Node,
    Pod,
    RawObject,
    ServerVersion,
    Status,
)
from relaunch.adapters.validation import describe_errors
from relaunch.ports import TransientError


def with_text_quantities(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the quantities of all `limits` and `requests` as text.

    The API takes numbers too, but clients that read the object later refuse them (the official one, from 37 on).
    """
    return {key: _convert(key, value) for key, value in manifest.items()}


def _convert(key: str, value: object) -> object:
    match value:
        case Mapping() if key in {"limits", "requests"}:
            return {name: str(quantity) for name, quantity in value.items()}
        case Mapping():
            return {name: _convert(name, each) for name, each in value.items()}
        case list() | tuple():
            return [_convert("", each) for each in value]
        case _:
            return value


_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
PAGE = 100
_MAX_RESTARTS = 3
# 100,000 objects of a hundred a page: more than a namespace has, or than the pods of 900 nodes (110 each by default).
_MAX_PAGES = 1_000
# A page has 100 objects of at most 1.5 MiB each (etcd), and mostly of some KiB.
_MAX_ANSWER_BYTES = 64 << 20
# A container may write without line ends.
_MAX_LOG_BYTES = 10 << 20
Object = TypeVar("Object", bound=Model)


class KubernetesClient:
    """Jobs, their Services, pods, logs and events of one namespace; nodes and ConfigMaps, if a ClusterRole allows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def namespace(self) -> str:
        """The namespace that jobs, pods and events are looked for in."""
        return self._connection.namespace

    @property
    def identity(self) -> str:
        """What tells the namespace from one of the same name in another cluster."""
        return self._connection.identity

    def version(self) -> ServerVersion:
        """Return the server's version."""
        try:
            return ServerVersion.parse(self._json("GET", "/version", "reading the server's version"))
        except ValueError as error:
            raise TransientError(f"reading the server's version: {error}") from error

    def create_job(self, manifest: Mapping[str, Any]) -> Job:
        """Create a Job and return it as the server stored it.

        A field that the server does not know is an error ("Field validation", Kubernetes API concepts); servers before
        1.25 drop it.

        Raises:
            AlreadyExistsError: there is a Job of this name, perhaps by an earlier call that timed out.
        """
        doing = f"creating Job {manifest.get('metadata', {}).get('name', '')}"
        strict = {"fieldValidation": "Strict"}
        return self._object(Job, "POST", self._jobs(), doing, json=with_text_quantities(manifest), params=strict)

    def get_job(self, name: str) -> Job | None:
        """Return a Job, None if there is none of this name."""
        try:
            return self._object(Job, "GET", self._jobs(name), f"reading Job {name}")
        except NotFoundError:
            return None

    def patch_job(self, name: str, patch: Mapping[str, Any]) -> Job:
        """Merge a patch into a Job (JSON Merge Patch, RFC 7386), the same result however often it is sent.

        Raises:
            NotFoundError: there is no Job of this name.
        """
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._object(Job, "PATCH", self._jobs(name), f"changing Job {name}", json=dict(patch), headers=headers)

    def delete_job(self, name: str) -> None:
        """Delete a Job, and its pods by the garbage collector; no error if there is none."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        try:
            self._json("DELETE", self._jobs(name), f"deleting Job {name}", json=options)
        except NotFoundError:
            return

    def create_headless_service(self, manifest: Mapping[str, Any], *, is_dry: bool = False) -> None:
        """Create a Service; with `is_dry` the server only says whether it would (API concepts, "Dry-run").

        Raises:
            AlreadyExistsError: there is a Service of this name, perhaps by an earlier call that timed out.
        """
        doing = f"creating Service {manifest['metadata']['name']}"
        self._json("POST", self._services(), doing, json=dict(manifest), params={"dryRun": "All"} if is_dry else {})

    def get_headless_service(self, name: str) -> RawObject | None:
        """Return a Service, None if there is none of this name."""
        try:
            return self._object(RawObject, "GET", self._services(name), f"reading Service {name}")
        except NotFoundError:
            return None

    def delete_headless_service(self, name: str) -> None:
        """Delete a Service; no error if there is none."""
        try:
            self._json("DELETE", self._services(name), f"deleting Service {name}")
        except NotFoundError:
            return

    def list_jobs(self, label_selector: str, limit: int = PAGE) -> Iterator[Sequence[Job]]:
        """Yield the Jobs with these labels, in pages; those of a list that had to be restarted come twice."""
        return self._pages(Job, self._jobs(), {"labelSelector": label_selector}, limit)

    def list_pods(self, label_selector: str, limit: int = PAGE) -> Iterator[Sequence[Pod]]:
        """Yield the pods with these labels, in pages; those of a list that had to be restarted come twice."""
        return self._pages(Pod, self._pods(), {"labelSelector": label_selector}, limit)

    def list_events(self, involved_object_uid: str = "", reason: str = "") -> Sequence[Event]:
        """Return the events of an object, by its UID, or for a reason, in the order in which they happened."""
        path = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/events"
        fields = {"involvedObject.uid": involved_object_uid, "reason": reason}
        selector = ",".join(f"{field}={value}" for field, value in fields.items() if value)
        pages = self._pages(Event, path, {"fieldSelector": selector}, PAGE)
        found = {each.metadata.uid or each.metadata.name: each for page in pages for each in page}
        return sorted(found.values(), key=lambda each: each.at or datetime.min.replace(tzinfo=UTC))

    def read_log(
        self,
        pod: str,
        container: str,
        *,
        tail_lines: int | None = None,
        since_time: datetime | None = None,
        timestamps: bool = True,
    ) -> Iterator[str]:
        """Yield the lines of a container's log, at most 10 MiB of them; none while the container waits to start.

        `since_time` counts in whole seconds: who follows a log by reading on compares the lines' timestamps.

        Raises:
            NotFoundError: there is no such pod any more.
        """
        parameters: dict[str, str] = {"container": container, "limitBytes": str(_MAX_LOG_BYTES)}
        if timestamps:
            parameters["timestamps"] = "true"
        if tail_lines is not None:
            parameters["tailLines"] = str(tail_lines)
        if since_time is not None:
            parameters["sinceTime"] = since_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        doing = f"reading the log of {container} in pod {pod}"
        try:
            with self._stream("GET", f"{self._pods(pod)}/log", doing, params=parameters) as answer:
                yield from _lines(answer)
        except ApiRefusedError as error:
            # The server has no other sign for it ("container \"main\" in pod \"x\" is waiting to start: ...").
            if error.status != 400 or "is waiting to start" not in str(error):
                raise

    def list_nodes(self, label_selector: str = "", limit: int = PAGE) -> Iterator[Sequence[Node]]:
        """Yield the nodes, in pages.

        Raises:
            ForbiddenError: the ClusterRole to list nodes is not bound; all else works without it.
        """
        return self._pages(Node, "/api/v1/nodes", {"labelSelector": label_selector}, limit)

    def get_node(self, name: str) -> Node | None:
        """Return a node, None if there is none of this name.

        Raises:
            ForbiddenError: the ClusterRole to read nodes is not bound; all else works without it.
        """
        try:
            return self._object(Node, "GET", f"/api/v1/nodes/{quote(name, safe='')}", f"reading node {name}")
        except NotFoundError:
            return None

    def list_all_pods(self, limit: int = PAGE) -> Iterator[Sequence[Pod]]:
        """Yield the pods of all namespaces, in pages.

        Raises:
            ForbiddenError: the ClusterRole to list pods is not bound.
        """
        return self._pages(Pod, "/api/v1/pods", {}, limit)

    def list_objects(self, path: str, selector: str = "", limit: int = PAGE) -> Iterator[Sequence[RawObject]]:
        """Yield the objects of a path of the API, in pages; `selector` is one of labels.

        Raises:
            ForbiddenError: whoever asks may not list them.
        """
        return self._pages(RawObject, path, {"labelSelector": selector}, limit)

    def get_object(self, path: str) -> RawObject | None:
        """Return the object at a path of the API, None if there is none.

        Raises:
            ForbiddenError: whoever asks may not read it.
        """
        try:
            return self._object(RawObject, "GET", path, f"reading {path.rpartition('/')[2]}")
        except NotFoundError:
            return None

    def review_self(self) -> Mapping[str, Any]:
        """Return a SelfSubjectReview (authentication.k8s.io/v1), which says who asks.

        Raises:
            NotFoundError: the server is older than 1.28.
        """
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return self._json("POST", _SELF, "asking who asks", json=review)

    def get_config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Return a ConfigMap, None if there is none of this name."""
        try:
            doing = f"reading ConfigMap {namespace}/{name}"
            return _to_config_map(self._json("GET", _config_map(namespace, name), doing), doing)
        except NotFoundError:
            return None

    def replace_config_map(self, changed: ConfigMap) -> ConfigMap:
        """Store a ConfigMap that was read and changed.

        Raises:
            ConflictError: it was changed since it was read.
        """
        path = _config_map(changed.namespace, changed.name)
        doing = f"replacing ConfigMap {changed.name}"
        return _to_config_map(self._json("PUT", path, doing, json=dict(changed.document)), doing)

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._connection.close()

    def _jobs(self, name: str = "") -> str:
        return _path(f"/apis/batch/v1/namespaces/{quote(self.namespace, safe='')}/jobs", name)

    def _services(self, name: str = "") -> str:
        return _path(f"/api/v1/namespaces/{quote(self.namespace, safe='')}/services", name)

    def _pods(self, name: str = "") -> str:
        return _path(f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods", name)

    def _pages(self, kind: type[Object], path: str, selector: Mapping[str, str], limit: int) -> Iterator[list[Object]]:
        doing = f"listing {path.rpartition('/')[2]}"
        continue_token = ""
        restarts = 0
        for _ in range(_MAX_PAGES):
            parameters = {"limit": str(limit), **{key: value for key, value in selector.items() if value}}
            if continue_token:
                parameters["continue"] = continue_token
            try:
                page = self._json("GET", path, doing, params=parameters)
            except GoneError:
                if not continue_token or restarts == _MAX_RESTARTS:
                    raise
                continue_token = ""
                restarts = restarts + 1
                continue
            items = page.get("items") or []
            if not isinstance(items, list):
                raise TransientError(f"{doing}: the answer is no list")
            yield [_read(kind, each, doing) for each in items]
            continue_token = _read(ListMetadata, page.get("metadata") or {}, doing).continue_token
            if not continue_token:
                return
        raise TransientError(f"{doing}: the list does not end after {_MAX_PAGES:,} pages")

    def _object(self, kind: type[Object], method: str, path: str, doing: str, **request: Any) -> Object:
        return _read(kind, self._json(method, path, doing, **request), doing)

    def _json(self, method: str, path: str, doing: str, **request: Any) -> dict[str, Any]:
        with self._stream(method, path, doing, **request) as answer:
            body = _limited(answer, doing)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise TransientError(f"{doing}: the answer is not JSON: is this the address of a Kubernetes API?")
        return content

    @contextmanager
    def _stream(self, method: str, path: str, doing: str, **request: Any) -> Iterator[httpx.Response]:
        try:
            http = self._connection.http
            with http.stream(method, path, **request) as answer:
                if answer.status_code != 401:
                    _raise_for_status(answer, doing)
                    yield answer
                    return
            self._connection.renew()
            with self._connection.http.stream(method, path, **request) as answer:
                _raise_for_status(answer, doing)
                yield answer
        except httpx.HTTPError as error:
            raise TransientError(f"{doing}: no answer from {self._connection.server}: {error!r}") from error


def _path(collection: str, name: str) -> str:
    return f"{collection}/{quote(name, safe='')}" if name else collection


def _config_map(namespace: str, name: str) -> str:
    return _path(f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps", name)


def _to_config_map(document: Mapping[str, Any], doing: str) -> ConfigMap:
    """Return a ConfigMap, which keeps the document; its texts are checked."""
    _read(ConfigMapTexts, document, doing)
    return ConfigMap(document)


def _lines(answer: httpx.Response) -> Iterator[str]:
    # Not iter_lines of httpx, which also splits at form feeds and the like, as str.splitlines does.
    rest = ""
    for text in answer.iter_text():
        *lines, rest = (rest + text).split("\n")
        yield from lines
    if rest:
        yield rest


def _limited(answer: httpx.Response, doing: str) -> bytes:
    """Return the body of an answer.

    Raises:
        TransientError: it is longer than any of an API server.
    """
    body = bytearray()
    for part in answer.iter_bytes():
        body += part
        if len(body) > _MAX_ANSWER_BYTES:
            raise TransientError(f"{doing}: the answer is longer than {_MAX_ANSWER_BYTES >> 20} MiB")
    return bytes(body)


def _raise_for_status(answer: httpx.Response, doing: str) -> None:
    if answer.is_success:
        return
    body = _limited(answer, doing)
    try:
        status = Status.model_validate_json(body)
    except ValidationError:
        # A proxy or a load balancer, or the server in plain text.
        status = Status(message=body.decode(errors="replace").strip())
    raise to_port_error(doing, answer.status_code, status, answer.headers.get("Retry-After"))


def _read(kind: type[Object], content: object, doing: str) -> Object:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise TransientError(f"{doing}: the answer is no {kind.__name__}: {describe_errors(error)}") from error
