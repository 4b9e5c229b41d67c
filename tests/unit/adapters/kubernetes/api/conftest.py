"""A client whose transport is scripted, and credentials that are valid but of no use."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess
from relaunch_local.kubernetes.certificates import CertificateAuthority

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
Answer = httpx.Response | Exception


class ScriptedServer:
    """Answers requests in order, each once, and records them; `fetched` counts how often credentials were fetched."""

    def __init__(self, authority: CertificateAuthority) -> None:
        self.answers: list[Answer] = []
        self.requests: list[httpx.Request] = []
        self.fetched = 0
        self.now = NOW
        self.expires_at: datetime | None = None
        self._authority = authority

    def answer(self, status: int, body: Any = None, **headers: str) -> None:
        content = body if isinstance(body, str | bytes) else json.dumps(body if body is not None else {})
        self.answers.append(httpx.Response(status, content=content, headers=headers))

    def refuse(self, code: int, reason: str, message: str, **headers: str) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        self.answer(code, {**body, "reason": reason, "message": message, "metadata": {}}, **headers)

    def fail(self, error: Exception) -> None:
        self.answers.append(error)

    def fetch(self) -> ClusterAccess:
        self.fetched += 1
        return ClusterAccess(
            server="https://192.0.2.1:6443",
            certificate_authority=self._authority.certificate,
            token=f"token-{self.fetched}",
            expires_at=self.expires_at,
        )

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def connect(self, namespace: str = "training") -> Connection:
        transport: Callable[..., httpx.BaseTransport] = lambda _: httpx.MockTransport(self.handle)  # noqa: E731
        return Connection(self.fetch, namespace, now=lambda: self.now, transport=transport)

    @property
    def last(self) -> httpx.Request:
        return self.requests[-1]


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture
def server(authority: CertificateAuthority) -> Iterator[ScriptedServer]:
    server = ScriptedServer(authority)
    yield server
    assert server.answers == [], "answers that were not asked for"


@pytest.fixture
def client(server: ScriptedServer) -> KubernetesClient:
    return KubernetesClient(server.connect())
