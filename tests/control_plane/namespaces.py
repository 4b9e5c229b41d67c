"""Namespaces of a real control plane, each with a service account that has the Role of the functions."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import yaml

from control_plane.waiting import wait_for
from fakes.repository import REPOSITORY
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection, TransportFactory
from relaunch_local.control_plane.kubelet import Kubelets
from relaunch_local.control_plane.plane import ControlPlane

Document = dict[str, Any]
ROLE = REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml"
ACCOUNT = "launcher"
USER = "300000000000000000"
"""The user that the file names."""
RBAC = "apis/rbac.authorization.k8s.io/v1"
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Namespace:
    """A namespace, and the API as its administrator sees it."""

    name: str
    plane: ControlPlane
    kubelets: Kubelets
    api: httpx.Client

    def get(self, resource: str, name: str = "") -> Document:
        """Return an object of the namespace, or a list of them."""
        return dict(self.api.get(self.path(resource, name)).raise_for_status().json())

    def path(self, resource: str, name: str = "") -> str:
        """Return the path of a resource."""
        group = {"jobs": "apis/batch/v1", "roles": RBAC, "rolebindings": RBAC}.get(resource, "api/v1")
        return f"/{group}/namespaces/{self.name}/{resource}{f'/{name}' if name else ''}"

    def create(self, resource: str, document: Document) -> Document:
        """Create an object."""
        answer = self.api.post(self.path(resource), json=document)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def pods(self, job: str) -> list[Document]:
        """Return the pods of a Job."""
        selector = {"labelSelector": f"job-name={job}"}
        return list(self.api.get(self.path("pods"), params=selector).raise_for_status().json()["items"])

    def pod(self, job: str) -> Document:
        """Return the pod of a Job, once it has one."""
        return wait_for("pod", lambda: self.pods(job))[0]

    def running(self, job: str) -> Document:
        """Return the pod of a Job once it runs."""
        return wait_for(
            "running pod",
            lambda: next((each for each in self.pods(job) if each["status"]["phase"] == "Running"), None),
        )

    def finished(self, job: str) -> Document:
        """Return the condition by which a Job has finished, once it has."""
        return wait_for("finished Job", lambda: finish_of(self.get("jobs", job)))

    def grant(self, subject: Document) -> None:
        """Bind the Role of infrastructure/kubernetes/role.yaml; what is changed of it are the names."""
        role, binding = yaml.safe_load_all(ROLE.read_text(encoding="utf-8"))
        for document in (role, binding):
            document["metadata"]["namespace"] = self.name
        self.create("roles", role)
        self.create("rolebindings", binding | {"subjects": [subject]})

    def token(self) -> str:
        """Return a token for the service account that has the Role (TokenRequest, authentication.k8s.io/v1)."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"{self.path('serviceaccounts', ACCOUNT)}/token"
        return str(self.api.post(path, json=asked).raise_for_status().json()["status"]["token"])

    @contextmanager
    def client(self, transport: TransportFactory | None = None) -> Iterator[KubernetesClient]:
        """Yield the client of Relaunch, signed in by the token of the service account."""
        access = self.plane.access(self.name, token=self.token())
        client = KubernetesClient(Connection(lambda: access, transport=transport))
        try:
            yield client
        finally:
            client.close()


@contextmanager
def new_namespace(plane: ControlPlane, kubelets: Kubelets, api: httpx.Client) -> Iterator[Namespace]:
    """Create a namespace with a service account that has the Role; delete it at the end, with what runs there."""
    name = f"training-{next(_NUMBERS)}"
    namespace = Namespace(name, plane, kubelets, api)
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.post("/api/v1/namespaces", json=document).raise_for_status()
    namespace.create("serviceaccounts", {"metadata": {"name": ACCOUNT}})
    namespace.grant({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": name})
    # Pods are refused until a controller has made the account that they have by default, and its token on old servers.
    wait_for("default service account", lambda: _has_account(namespace))
    try:
        yield namespace
    finally:
        kubelets.end_all(name)
        api.delete(f"/api/v1/namespaces/{name}").raise_for_status()


def finish_of(job: Document) -> Document | None:
    """Return the condition by which a Job has finished, None if it has not."""
    conditions = job["status"].get("conditions") or ()
    return next((e for e in conditions if e["type"] in {"Complete", "Failed"} and e["status"] == "True"), None)


def _has_account(namespace: Namespace) -> bool:
    answer = namespace.api.get(namespace.path("serviceaccounts", "default"))
    if not answer.is_success:
        return False
    return namespace.plane.version.minor >= 24 or bool(answer.json().get("secrets"))
