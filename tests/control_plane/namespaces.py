"""Namespaces of a real control plane, each with a service account that has the Role of the functions."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import yaml

from control_plane.waiting import wait_for
from fakes.repository import REPOSITORY
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection, TransportFactory
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch_local.control_plane.kubelet import Kubelets
from relaunch_local.control_plane.plane import ControlPlane

Document = dict[str, Any]
ROLE = REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml"
ACCOUNT = "launcher"
READER = "log-reader"
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

    def started(self, job: str) -> Document:
        """Return a Job once its controller has written its status."""
        return wait_for("status", lambda: each if (each := self.get("jobs", job))["status"].get("startTime") else None)

    def running(self, job: str) -> Document:
        """Return the pod of a Job once it runs."""
        return wait_for(
            "running pod",
            lambda: next((each for each in self.pods(job) if each["status"]["phase"] == "Running"), None),
        )

    def finished(self, job: str) -> Document:
        """Return the condition that says that a Job has finished, once it does."""
        return wait_for("finished Job", lambda: finish_of(self.get("jobs", job)))

    def grant(self, subject: Document) -> None:
        """Bind the Role of infrastructure/kubernetes/role.yaml; what is changed of it are the names."""
        role, binding = yaml.safe_load_all(ROLE.read_text(encoding="utf-8"))
        for document in (role, binding):
            document["metadata"]["namespace"] = self.name
        self.create("roles", role)
        self.create("rolebindings", binding | {"subjects": [subject]})

    def token(self, account: str = ACCOUNT) -> str:
        """Return a token for a service account, that of the Role (TokenRequest, authentication.k8s.io/v1)."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"{self.path('serviceaccounts', account)}/token"
        return str(self.api.post(path, json=asked).raise_for_status().json()["status"]["token"])

    @contextmanager
    def client(self, transport: TransportFactory | None = None) -> Iterator[KubernetesClient]:
        """Yield the client of the functions, signed in by the token of the service account."""
        access = self.plane.access(self.name, token=self.token())
        with closing(KubernetesClient(Connection(lambda: access, transport=transport))) as client:
            yield client

    @contextmanager
    def log_reader(self) -> Iterator[KubernetesClient]:
        """Yield the client of a person who may do what docs/kubernetes.md says that `relaunch logs` needs."""
        rules = [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        ]
        metadata, group = {"name": READER}, "rbac.authorization.k8s.io"
        self.create("serviceaccounts", {"metadata": metadata})
        self.create("roles", {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": READER, "namespace": self.name}
        role = {"apiGroup": group, "kind": "Role", "name": READER}
        binding = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata}
        self.create("rolebindings", binding | {"roleRef": role, "subjects": [subject]})
        access = self.plane.access(self.name, token=self.token(READER))
        with closing(KubernetesClient(Connection(lambda: access))) as client:
            wait_for("binding", lambda: may_list_pods(client))
            yield client

    def delete_job(self, name: str) -> None:
        """Delete a Job, with its pods in the background; no error if there is none: the functions may not."""
        access = self.plane.access(self.name)
        with closing(KubernetesClient(Connection(lambda: access))) as client:
            client.delete_job(name)


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
    wait_for("binding", lambda: _may_create_jobs(namespace))
    try:
        yield namespace
    finally:
        kubelets.end_all(name)
        api.delete(f"/api/v1/namespaces/{name}").raise_for_status()


def _may_create_jobs(namespace: Namespace) -> bool:
    """Return whether the Role counts already (SubjectAccessReview, authorization.k8s.io/v1)."""
    asked = {"namespace": namespace.name, "verb": "create", "group": "batch", "resource": "jobs"}
    user = f"system:serviceaccount:{namespace.name}:{ACCOUNT}"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }
    answer = namespace.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review).raise_for_status()
    return bool(answer.json()["status"]["allowed"])


def may_list_pods(client: KubernetesClient) -> bool:
    """Return whether a client may list pods: a binding counts some moments after it was made."""
    try:
        list(client.list_pods(""))
    except ForbiddenError:
        return False
    return True


def finish_of(job: Document) -> Document | None:
    """Return the condition that says that a Job has finished, None if there is none."""
    conditions = job["status"].get("conditions") or ()
    return next((e for e in conditions if e["type"] in {"Complete", "Failed"} and e["status"] == "True"), None)


def _has_account(namespace: Namespace) -> bool:
    answer = namespace.api.get(namespace.path("serviceaccounts", "default"))
    if not answer.is_success:
        return False
    return namespace.plane.version.minor >= 24 or bool(answer.json().get("secrets"))
