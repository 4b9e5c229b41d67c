"""The client of Relaunch against the server: certificates, tokens, pages, logs, faults."""

from datetime import UTC, datetime, timedelta

import pytest

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.connection import Connection
from relaunch.adapters.kubernetes.api.errors import (
    AlreadyExistsError,
    ApiRefusedError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig
from relaunch.ports import TransientError
from relaunch_local.ecs.processes.port import LogTarget, Script
from relaunch_local.kubernetes.certificates import CertificateAuthority
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.server import Fault, KubernetesServer
from tests.unit.local.kubernetes.conftest import NAMESPACE, World, manifest


def test_a_job_is_created_followed_and_deleted(client: KubernetesClient, world: World) -> None:
    created = client.create_job(manifest())
    assert created.metadata.uid
    with pytest.raises(AlreadyExistsError, match=r'jobs\.batch "cuda-sample" already exists'):
        client.create_job(manifest())

    world.clock.advance(1)
    ((pod,),) = client.list_pods("job-name=cuda-sample")
    assert (pod.status.phase, pod.spec.node_name) == ("Running", "gpu-1")
    world.clock.advance(60)
    done = client.get_job("cuda-sample")
    assert done is not None
    assert done.find_condition("Complete")

    client.delete_job("cuda-sample")
    client.delete_job("cuda-sample")
    assert client.get_job("cuda-sample") is None
    assert [len(page) for page in client.list_pods("")] == [0]


def test_a_client_certificate_is_enough(server: KubernetesServer) -> None:
    kubeconfig = server.kubeconfig(NAMESPACE, with_certificate=True)
    client = KubernetesClient(Connection(lambda: read_kubeconfig(kubeconfig)))

    assert client.version().minor == 36
    client.close()


def test_a_certificate_of_another_authority_is_no_credential(server: KubernetesServer) -> None:
    access = read_kubeconfig(server.kubeconfig(NAMESPACE))
    stranger = CertificateAuthority().issue_client("launcher")
    forged = access.__class__(
        access.server,
        access.certificate_authority,
        client_certificate=stranger.certificate,
        client_key=stranger.key,
    )

    with pytest.raises(TransientError, match="no answer"):
        KubernetesClient(Connection(lambda: forged)).version()


def test_a_token_that_is_revoked_is_refused_after_new_credentials_were_fetched(server, client) -> None:
    client.version()
    server.tokens.clear()

    with pytest.raises(UnauthorizedError):
        client.version()


def test_lists_come_in_pages_and_begin_again_when_they_expire(client: KubernetesClient, world: World) -> None:
    for number in range(5):
        world.create(f"job-{number}")
    pages = client.list_jobs("app=cuda-sample", limit=2)
    first = [each.metadata.name for each in next(pages)]
    world.cluster.state.expire_lists()

    rest = [[each.metadata.name for each in page] for page in pages]

    assert first == ["job-0", "job-1"]
    assert rest == [["job-0", "job-1"], ["job-2", "job-3"], ["job-4"]]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=cuda-sample", 2),
        ("app!=cuda-sample", 0),
        ("app in (x,cuda-sample),!other", 2),
        ("app notin (cuda-sample)", 0),
        ("app", 2),
        ("other", 0),
    ],
)
def test_selectors(client: KubernetesClient, world: World, selector: str, found: int) -> None:
    world.create("a")
    world.create("b")

    assert sum(len(page) for page in client.list_jobs(selector)) == found


def test_a_malformed_selector_is_refused(client: KubernetesClient, world: World) -> None:
    world.create()

    with pytest.raises(ApiRefusedError, match="unable to parse requirement"):
        list(client.list_jobs("a b"))


def test_a_log_is_read_on_from_a_time(client: KubernetesClient, world: World) -> None:
    world.script = Script(runtime_seconds=None)
    world.create()
    name, uid = world.pod["metadata"]["name"], world.pod["metadata"]["uid"]
    assert list(client.read_log(name, "main")) == []
    world.clock.advance(1)
    start = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    for second in range(3):
        at = start + timedelta(seconds=second)
        world.cluster.write_log(LogTarget(NAMESPACE, uid), int(at.timestamp() * 1000), f"step {second}")

    assert list(client.read_log(name, "main", tail_lines=1, timestamps=False)) == ["step 2"]
    later = list(client.read_log(name, "main", since_time=start + timedelta(seconds=1)))
    assert later == ["2026-01-01T00:00:02.000000000Z step 1", "2026-01-01T00:00:03.000000000Z step 2"]
    with pytest.raises(ApiRefusedError, match="container x is not valid for pod"):
        list(client.read_log(name, "x"))


def test_events_of_a_pod_tell_why_it_waits(client: KubernetesClient, world: World) -> None:
    world.create(limits={"aliyun.com/gpu-mem": 99})

    events = client.list_events(world.pod["metadata"]["uid"])

    assert [each.reason for each in events] == ["FailedScheduling"]
    assert events[-1].message == "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem."


def test_nodes_tell_their_shares_unless_no_role_allows_it(client: KubernetesClient, server) -> None:
    ((node,),) = client.list_nodes("ack.node.gpu.schedule=core_mem")
    shares = {key: value for key, value in node.status.allocatable.items() if key.startswith("aliyun.com/")}
    assert shares == {
        "aliyun.com/gpu-core.percentage": "400",
        "aliyun.com/gpu-count": "4",
        "aliyun.com/gpu-mem": "60",
    }
    server.forbidden.add(("list", "nodes"))

    with pytest.raises(ForbiddenError, match='cannot list resource "nodes"'):
        list(client.list_nodes())


def test_a_request_that_is_throttled_says_how_long(client: KubernetesClient, server) -> None:
    server.faults.append(Fault(ApiError(429, "TooManyRequests", "too many requests", 2)))

    with pytest.raises(TooManyRequestsError) as caught:
        client.create_job(manifest())

    assert caught.value.retry_after_seconds == 2
    assert client.get_job("cuda-sample") is None


@pytest.mark.parametrize("error", [None, ApiError(504, "Timeout", "request did not complete within timeout")])
def test_a_creation_may_have_succeeded_though_nothing_was_answered(client, server, error) -> None:
    server.faults.append(Fault(error, after=True))

    with pytest.raises(TransientError):
        client.create_job(manifest())

    assert client.get_job("cuda-sample") is not None


def test_two_changes_of_a_config_map_conflict(client: KubernetesClient, world: World) -> None:
    profile = {"kind": "ConfigMap", "metadata": {"name": "acs-profile"}, "data": {"selectors": "", "vpcId": "vpc-1"}}
    world.cluster.state.add("configmaps", "kube-system", profile)
    found = client.get_config_map("kube-system", "acs-profile")
    assert found is not None

    changed = client.replace_config_map(found.with_value("selectors", "[]"))
    assert changed.data == {"selectors": "[]", "vpcId": "vpc-1"}

    with pytest.raises(ConflictError, match="the object has been modified"):
        client.replace_config_map(found.with_value("selectors", "[1]"))
    assert client.get_config_map("kube-system", "none") is None


def test_a_job_is_changed_by_a_merge_patch(client: KubernetesClient, world: World) -> None:
    world.script = Script(runtime_seconds=None)
    client.create_job(manifest())

    changed = client.patch_job("cuda-sample", {"spec": {"activeDeadlineSeconds": 1}})

    assert changed.spec.active_deadline_seconds == 1
    with pytest.raises(NotFoundError):
        client.patch_job("other", {})
