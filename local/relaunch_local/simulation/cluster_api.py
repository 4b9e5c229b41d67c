"""How the functions of a run reach its cluster: requests are calls that may fail, made by who signed in."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.alibaba.cluster_access import KUBECONFIG_MINUTES
from relaunch.adapters.aws.client_config import SINGLE_SEND_CONFIG
from relaunch.adapters.kubernetes.api.connection import EXPIRY_MARGIN
from relaunch_local.ecs import Clock
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request, answer
from relaunch_local.kubernetes.role import Role, read_cluster_role, read_role
from relaunch_local.repository import REPOSITORY
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import AWS_ERRORS
from relaunch_local.simulation.cluster_sign_in import ADDRESS

NAMESPACE = "training"
_MANIFESTS = REPOSITORY / "infrastructure" / "kubernetes"
_STATUSES = {"ThrottlingException": 429, "AccessDeniedException": 403}


class ClusterTransport(httpx.BaseTransport):
    """Sends each request as a call that may fail; the user has the Role of functions."""

    def __init__(self, cluster: KubernetesCluster, calls: Calls, page_size: int | None, *, reads_nodes: bool) -> None:
        """Send them to this cluster; `reads_nodes`: the user may read nodes, too."""
        self._cluster = cluster
        self._calls = calls
        self._page_size = page_size
        role = read_role(_MANIFESTS / "role.yaml", NAMESPACE)
        added = read_cluster_role(_MANIFESTS / "nodes.yaml").grants if reads_nodes else frozenset()
        self._role = Role(role.user, role.grants | added)
        self.on_refused: Callable[[str], None] = lambda _what: None
        """Called with what the Role does not allow."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer of the cluster, or of a call that failed."""
        query = dict(parse_qsl(request.url.query.decode(), keep_blank_values=True))
        if self._page_size is not None and "limit" in query:
            query["limit"] = str(min(int(query["limit"]), self._page_size))
        content_type = request.headers.get("Content-Type", "")
        asked = Request(request.method, request.url.path, query, request.read(), content_type)
        action = f"{asked.access.verb}_{asked.access.resource}"
        try:
            status, content, headers = self._calls.perform(
                "kubernetes", action, lambda: self._answer(asked), AWS_ERRORS, SINGLE_SEND_CONFIG
            )
        except ClientError as error:
            code = _STATUSES.get(error.response["Error"]["Code"], 500)
            return httpx.Response(code, json={"kind": "Status", "message": str(error), "code": code})
        except BotoCoreError as error:
            raise httpx.ReadTimeout(str(error), request=request) from error
        text = content if isinstance(content, str) else json.dumps(content)
        return httpx.Response(status, text=text, headers=dict(headers))

    def _answer(self, asked: Request) -> tuple[int, Any, Any]:
        if refusal := self._role.refusal(asked.access, asked.name):
            # To list nodes, or to read one, is a ClusterRole of its own, which need not be bound.
            if asked.access.resource != "nodes":
                self.on_refused(refusal)
            return 403, ApiError(403, "Forbidden", refusal).to_status(), {}
        try:
            return answer(self._cluster, asked)
        except ApiError as error:
            return error.code, error.to_status(), {}


class ClusterConnection:
    """Implements what the client needs of a connection: one of all functions, each of which signs in for itself."""

    namespace = NAMESPACE
    server = ADDRESS
    identity = f"000000000000/{NAMESPACE}"

    def __init__(self, transport: httpx.BaseTransport, sign_in: Callable[[], None], clock: Clock) -> None:
        """Send requests by this, after `sign_in`."""
        self._http = httpx.Client(transport=transport, base_url=ADDRESS)
        self._sign_in = sign_in
        self._clock = clock
        self._signed_in_until: datetime | None = None

    @property
    def http(self) -> httpx.Client:
        """The client, once there are credentials: those of Alibaba Cloud and of EKS are for 15 minutes."""
        if self._signed_in_until is None or self._clock.now() >= self._signed_in_until:
            self._sign_in()
            self._signed_in_until = self._clock.now() + timedelta(minutes=KUBECONFIG_MINUTES) - EXPIRY_MARGIN
        return self._http

    def renew(self) -> None:
        """Drop the credentials."""
        self._signed_in_until = None

    def close(self) -> None:
        """Close the client."""
        self._http.close()
