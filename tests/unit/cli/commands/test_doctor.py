"""doctor finds what is broken in an ACK cluster, and is silent about a whole one."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fakes.ack_cluster import NAMESPACE, RAM_ID, SYSTEM, AckCluster, daemon_set, release, serving_ack_cluster
from fakes.cli_session import Outcome, flat, invoke
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.role import read_role
from relaunch_local.stack.alibaba_cluster import ROLE

KNOWN = ("--region", "cn-beijing", "--scheduler", "1.28.1-aliyun-5.6-998282b9")


@pytest.fixture
def ack() -> Iterator[AckCluster]:
    with serving_ack_cluster() as cluster:
        cluster.add_node("n1")
        yield cluster


@pytest.fixture
def kubeconfig(ack: AckCluster, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(ack.server.kubeconfig(NAMESPACE))
    return file


@pytest.fixture
def doctor(kubeconfig: Path) -> Callable[..., Outcome]:
    return partial(invoke, "doctor", "--target", "ack", "--kubeconfig", str(kubeconfig))


def verdicts(result: Outcome) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in result.document["checks"]}


def test_a_whole_cluster_has_no_problem(doctor):
    result = doctor(*KNOWN, "--json")

    assert set(verdicts(result).values()) == {"ok"}
    assert result.document["problems"] == 0
    assert result.exit_code == 0


def test_what_the_cluster_does_not_tell_is_unknown_and_no_problem(doctor):
    result = doctor(columns=160)

    assert flat(result.stdout).endswith("no problem in 10 checks, 2 not known")
    assert "region: give it with --region, like cn-beijing" in flat(result.stdout)
    assert "scheduler: the console shows it under Operations > Add-ons; give it with --scheduler VERSION" in flat(
        result.stdout
    )
    assert result.exit_code == 0


def _replace(ack: AckCluster, version: str) -> None:
    ack.remove("daemonsets", SYSTEM, "cgpu-installer")
    ack.add("daemonsets", SYSTEM, daemon_set(f"registry.example/acs/cgpu-installer:{version}"))


def _relabel(ack: AckCluster) -> None:
    ack.remove("nodes", "", "n1")
    node = ack.add_node("n1", {})
    node["metadata"]["labels"]["ack.node.gpu.schedule"] = "core_mem"


BROKEN: dict[str, tuple[Callable[[AckCluster], object], str, str]] = {
    "old cluster": (lambda ack: setattr(ack.cluster, "minor", 18), "cluster version", "upgrade the cluster"),
    "no chart": (
        lambda ack: ack.remove("secrets", SYSTEM, "sh.helm.release.v1.ack-ai-installer.v1"),
        "ack-ai-installer",
        "install the newest",
    ),
    "old chart": (
        lambda ack: ack.add("secrets", SYSTEM, release("1.2.0", 2)),
        "ack-ai-installer",
        "delete it, and install the newest",
    ),
    "old cGPU": (lambda ack: _replace(ack, "1.0.3"), "cGPU", "upgrade ack-ai-installer"),
    "no namespace": (
        lambda ack: ack.remove("namespaces", "", NAMESPACE),
        "namespace",
        "kubectl create namespace training",
    ),
    "no role": (
        lambda ack: ack.remove("roles", NAMESPACE, "relaunch"),
        "role",
        "kubectl apply -f infrastructure/kubernetes/role.yaml",
    ),
    "a role that allows less": (
        lambda ack: ack.cluster.state.get("roles", NAMESPACE, "relaunch")["rules"].pop(0),
        "role",
        "role.yaml",
    ),
    "a role of nobody": (lambda ack: ack.remove("rolebindings", NAMESPACE, "relaunch"), "role", "role.yaml"),
    "relabelled": (
        _relabel,
        "node n1",
        "kubectl drain n1, remove it in the console, add it to the pool again",
    ),
    "not ready": (lambda ack: ack.cluster.lose_node("n1"), "node n1", "kubectl describe node n1"),
    "no nodes": (
        lambda ack: ack.remove("nodes", "", "n1"),
        "nodes",
        "make a node pool with the label ack.node.gpu.schedule=core_mem",
    ),
}


def test_a_namespace_that_takes_restricted_pods_alone_says_what_definitions_need(ack, doctor):
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    ack.cluster.state.get("namespaces", "", NAMESPACE)["metadata"]["labels"] = labels

    checks = {each["name"]: each for each in doctor(*KNOWN, "--json").document["checks"]}

    assert checks["namespace"]["verdict"] == "ok"
    assert "definitions need `pod_security: restricted`" in checks["namespace"]["text"]


@pytest.mark.parametrize(
    ("user", "minor", "expected"),
    [
        (RAM_ID, 30, ("ok", 0)),
        (f"{RAM_ID}-1676970192", 30, ("problem", 2)),
        ("200000000000000000", 30, ("unknown", 0)),
        (RAM_ID, 26, ("unknown", 0)),
    ],
)
def test_rbac_compares_the_whole_name_of_the_ram_role(ack, kubeconfig, doctor, user, minor, expected):
    ack.server.user = user
    ack.cluster.minor = minor
    kubeconfig.write_text(ack.server.kubeconfig(NAMESPACE, with_certificate=True))

    result = doctor(*KNOWN, "--json")

    (check,) = [each for each in result.document["checks"] if each["name"] == "role"]
    assert (check["verdict"], result.exit_code) == expected
    assert f"relaunch is given to {RAM_ID}" in check["text"]


@pytest.mark.parametrize(("break_it", "name", "to_do"), BROKEN.values(), ids=BROKEN)
def test_a_broken_cluster_is_told_what_to_do(ack, doctor, break_it, name, to_do):
    break_it(ack)

    result = doctor(*KNOWN, "--json")

    found = [each for each in result.document["checks"] if each["verdict"] == "problem"]
    assert [each["name"] for each in found] == [name]
    assert to_do in found[0]["to_do"]
    assert (result.document["problems"], result.exit_code) == (1, 2)


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [("--region", "eu-central-1", "region"), ("--scheduler", "1.28.1-aliyun-5.5-998282b9", "scheduler")],
)
def test_what_is_told_of_the_cluster_is_checked(doctor, option, value, name):
    result = doctor(*KNOWN, option, value, "--json")

    assert [key for key, verdict in verdicts(result).items() if verdict == "problem"] == [name]


def test_what_the_user_may_not_read_is_unknown_with_the_permission_that_is_missing(ack, doctor, kubeconfig):
    kubeconfig.write_text(ack.server.kubeconfig(NAMESPACE, role=read_role(ROLE)))

    result = doctor(*KNOWN, columns=200)

    shown = flat(result.stdout)
    assert "this user has no permission to list secrets in kube-system, which nothing of Relaunch gives" in shown
    assert "kubectl apply -f infrastructure/kubernetes/reader.yaml" in shown
    assert shown.endswith("no problem in 9 checks, 6 not known")
    assert result.exit_code == 0


def test_a_cluster_that_does_not_answer_is_an_error(ack, doctor):
    ack.server.cluster.minor = 28

    def fail(_request):
        raise ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")

    ack.server.serve = fail

    result = doctor(*KNOWN)

    assert result.exit_code == 4
    assert "unable to handle the request" in flat(result.stderr)


def test_without_a_kubeconfig_it_says_which_it_wants(tmp_path):
    result = invoke("doctor", "--target", "ack", "--kubeconfig", str(tmp_path / "none"))

    assert result.exit_code == 5
    assert "cannot be read" in flat(result.stderr)
