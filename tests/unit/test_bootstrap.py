"""How the clients of a stack send a call that EC2 throttles, and how they sign in to a cluster."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from fakes.fleet import STACK, make_fleet_request
from relaunch.adapters.kubernetes.api.kubeconfig import KubeconfigError
from relaunch.bootstrap import Clients, make_dependencies, open_own_cluster
from relaunch.core.definitions.targets import Target
from relaunch.ports import MachineSource, TransientError
from relaunch.settings import Settings
from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.processes.port import Script, ScriptedProcesses
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.server import KubernetesServer

OUTPUTS = {
    "StackName": STACK,
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5=g5.xlarge/on-demand",
    "MaxRunningJobs": "20",
    "MaxWaitingJobs": "5000",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.75",
    "TaskDefinitionFamilies": "relaunch-*",
    "TaskRolePath": "relaunch/",
    "ProvisioningDeadlineSeconds": "480",
}
THROTTLED = (
    b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>-</Message></Error></Errors></Response>"
)


class _Body(BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.read()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return []


@pytest.fixture
def fleet(sent: list[str]) -> MachineSource:
    """Return the machines of a stack in a region where EC2 throttles every call."""

    def throttle(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body: Any = request.body
        sent.extend(part.removeprefix("Action=") for part in body.split("&") if part.startswith("Action="))
        return AWSResponse(request.url or "", 503, {}, _Body(THROTTLED))  # type: ignore[arg-type]

    session = boto3.Session("testing", "testing", region_name="us-east-1")
    session.events.register("before-send.ec2", throttle)
    return make_dependencies(Settings.from_stack_outputs(OUTPUTS), session).fleet


@pytest.mark.parametrize(
    ("call", "action"),
    [
        (lambda fleet: fleet.terminate(["i-0123456789abcdef0"]), "TerminateInstances"),
        (lambda fleet: fleet.describe(["i-0123456789abcdef0"]), "DescribeInstances"),
        (lambda fleet: fleet.find("m-1"), "DescribeInstances"),
        (lambda fleet: fleet.find_impaired(["i-0123456789abcdef0"]), "DescribeInstanceStatus"),
    ],
    ids=["terminate", "describe", "find", "find impaired"],
)
def test_what_reads_or_is_idempotent_is_sent_again(
    fleet: MachineSource, sent: list[str], call: Callable[[MachineSource], object], action: str
) -> None:
    with pytest.raises(TransientError, match="RequestLimitExceeded"):
        call(fleet)

    assert sent == [action] * 3


def test_create_fleet_is_sent_once(fleet: MachineSource, sent: list[str]) -> None:
    answer = fleet.request(make_fleet_request())

    assert "RequestLimitExceeded" in str(answer)
    assert sent == ["CreateFleet"]


ON_EKS = Settings.from_stack_outputs({**OUTPUTS, "EksClusterName": "ml"})


class _EksTokens(set[str]):
    """The tokens of whoever signs a request to STS for the cluster."""

    def __contains__(self, token: object) -> bool:
        return str(token).startswith("k8s-aws-v1.") or super().__contains__(token)


@pytest.fixture
def server() -> Iterator[KubernetesServer]:
    clock = Clock()
    with closing(KubernetesServer(KubernetesCluster(clock, ScriptedProcesses(clock, lambda _: Script())))) as server:
        server.tokens = _EksTokens(server.tokens)
        server.start()
        yield server


@pytest.fixture
def session(server: KubernetesServer, sent: list[str]) -> boto3.Session:
    """Return a session in which EKS describes the server as a cluster."""
    authority = base64.b64encode(server.authority.certificate.encode()).decode()

    def describe(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        sent.append((request.url or "").rpartition("/")[2])
        found = {"status": "ACTIVE", "endpoint": server.url, "certificateAuthority": {"data": authority}}
        body = _Body(json.dumps({"cluster": found}).encode())
        return AWSResponse(request.url or "", 200, {}, body)  # type: ignore[arg-type]

    session = boto3.Session("testing", "testing", region_name="us-east-1")
    session.events.register("before-send.eks", describe)
    return session


def test_the_target_of_a_cluster_of_eks_is_signed_in_to_with_credentials_of_aws(
    session: boto3.Session, sent: list[str], server: KubernetesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    target: Any = make_dependencies(ON_EKS, session).targets.named(Target.KUBERNETES)

    assert target.describe(["resnet-1f2e3d4c-1-1"]) == {"resnet-1f2e3d4c-1-1": None}
    assert target.identify().endswith("/training")
    target._cluster._connection.close()
    assert sent == ["ml"]
    assert server.requests


@pytest.mark.parametrize("has_kubeconfig", [False, True])
def test_the_command_reads_a_cluster_of_eks_with_credentials_of_aws_unless_a_kubeconfig_is_named(
    session: boto3.Session,
    sent: list[str],
    server: KubernetesServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_kubeconfig: bool,
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(server.kubeconfig("training"))
    monkeypatch.setenv("KUBECONFIG", str(file) if has_kubeconfig else "")

    with closing(open_own_cluster(ON_EKS, session)) as client:
        assert client.get_job("resnet-1f2e3d4c-1-1") is None

    assert sent == ([] if has_kubeconfig else ["ml"])


def test_of_two_clusters_the_kubeconfig_says_which_one_is_meant(
    session: boto3.Session, sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    secret = "arn:aws:secretsmanager:us-east-1:1:secret:ack"
    both = Settings.from_stack_outputs({**OUTPUTS, "EksClusterName": "ml", "AckKubeconfigSecretArn": secret})

    with closing(open_own_cluster(both, session)) as client, pytest.raises(KubeconfigError, match="cannot be read"):
        client.get_job("resnet-1f2e3d4c-1-1")
    assert sent == []


def test_each_region_of_the_price_list_has_a_client_of_its_own() -> None:
    made: list[str] = []

    def create(service: str, *, region_name: str, config: object) -> object:
        made.append(f"{service} {region_name}")
        return boto3.client(service, region_name, config=config)  # type: ignore[call-overload]  # by any name

    clients = Clients(create, "eu-west-1")
    regions = [clients.lazy("pricing", each).meta.region_name for each in ("eu-central-1", "us-east-1", "us-east-1")]

    assert regions == ["eu-central-1", "us-east-1", "us-east-1"]
    assert made == ["pricing eu-central-1", "pricing us-east-1"]
