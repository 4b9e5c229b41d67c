"""What infrastructure/kubernetes/role.yaml allows on a real server, for a token and for a certificate."""

from collections.abc import Callable, Iterator

import pytest

from control_plane.jobs import make_job
from control_plane.namespaces import USER, Namespace, may_list_pods
from control_plane.waiting import wait_for
from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.errors import ForbiddenError, NotFoundError, UnauthorizedError
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.targets import Target

pytestmark = pytest.mark.kubernetes


@pytest.fixture(params=["token", "certificate"])
def client(request: pytest.FixtureRequest, namespace: Namespace) -> Iterator[KubernetesClient]:
    if request.param == "token":
        with namespace.client() as client:
            yield client
        return
    # As the file has it: the user that the certificate of a kubeconfig of ACK is for.
    binding = namespace.get("rolebindings", "relaunch")
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    binding["subjects"] = [subject]
    namespace.api.put(namespace.path("rolebindings", "relaunch"), json=binding).raise_for_status()
    access = namespace.plane.access(namespace.name, user=USER)
    client = KubernetesClient(Connection(lambda: access))
    wait_for("binding", lambda: may_list_pods(client))
    yield client
    client.close()


def test_all_that_the_functions_do_is_allowed(client: KubernetesClient, namespace: Namespace) -> None:
    client.create_job(make_job())
    pod = namespace.pod("cuda-sample")["metadata"]["name"]
    client.patch_job("cuda-sample", {"metadata": {"annotations": {"a": "b"}}})

    assert client.get_job("cuda-sample") is not None
    assert [each.metadata.name for page in client.list_jobs("app=cuda-sample") for each in page] == ["cuda-sample"]
    assert [each.metadata.name for page in client.list_pods("app=cuda-sample") for each in page] == [pod]
    assert client.list_events(reason="Nothing") == []
    assert client.version() == namespace.plane.version


FORBIDDEN: dict[str, Callable[[Namespace], tuple[str, str]]] = {
    "Services are listed": lambda namespace: ("GET", namespace.path("services")),
    "logs are read": lambda namespace: ("GET", f"{namespace.path('pods', 'a')}/log"),
    "pods are deleted": lambda namespace: ("DELETE", namespace.path("pods", "a")),
    "pods are created": lambda namespace: ("POST", namespace.path("pods")),
    "secrets are listed": lambda namespace: ("GET", namespace.path("secrets")),
    "secrets are read": lambda namespace: ("GET", namespace.path("secrets", "a")),
    "ConfigMaps are read": lambda namespace: ("GET", namespace.path("configmaps", "a")),
    "tokens are made": lambda namespace: ("POST", f"{namespace.path('serviceaccounts', 'default')}/token"),
    "commands are run in pods": lambda namespace: ("POST", f"{namespace.path('pods', 'a')}/exec"),
    "Roles are changed": lambda namespace: ("DELETE", namespace.path("roles", "relaunch")),
    "Jobs of all namespaces are listed": lambda _: ("GET", "/apis/batch/v1/jobs"),
    "Jobs of another namespace are listed": lambda _: ("GET", "/apis/batch/v1/namespaces/default/jobs"),
    "pods of another namespace are listed": lambda _: ("GET", "/api/v1/namespaces/kube-system/pods"),
    "nodes are listed": lambda _: ("GET", "/api/v1/nodes"),
    "namespaces are listed": lambda _: ("GET", "/api/v1/namespaces"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_else_is(client: KubernetesClient, namespace: Namespace, what: str) -> None:
    method, path = FORBIDDEN[what](namespace)

    with pytest.raises(ForbiddenError):
        client._json(method, path, what, **({"json": {}} if method == "POST" else {}))


def test_without_a_role_for_nodes_the_target_has_none(client: KubernetesClient) -> None:
    assert list(kubernetes_target(client, Target.ACK, "relaunch").list_nodes()) == []


def test_a_token_of_nobody_is_refused(namespace: Namespace) -> None:
    access = namespace.plane.access(namespace.name, token="nobody")
    client = KubernetesClient(Connection(lambda: access))

    with pytest.raises(UnauthorizedError):
        client.get_job("a")
    client.close()


def test_a_namespace_that_is_not_there_says_so(namespace: Namespace) -> None:
    access = namespace.plane.access("nowhere")
    client = KubernetesClient(Connection(lambda: access))

    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        client.create_job(make_job())
    client.close()
