"""Namespaces that refuse pods by their label: which pods, in which words, and what becomes of the Job."""

from typing import Any

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes_clusters import NAMESPACE, served_cluster
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodSecurity
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import TaskPhase
from relaunch_local.kubernetes.pod_security import ENFORCE, find_refusal, find_violations

NAME = "resnet-1f2e3d4c-1-1"
SAFE: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def spec(pod: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A pod that passes restricted by the context of its container alone, with changes to that."""
    context = {key: value for key, value in (SAFE | changes).items() if value is not None}
    return {"containers": [{"name": "main", "securityContext": context}], **(pod or {})}


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (spec(), ""),
        (spec({"securityContext": {"runAsNonRoot": True}}, runAsNonRoot=None), ""),
        (spec({"securityContext": {"seccompProfile": {"type": "Localhost"}}}, seccompProfile=None), ""),
        (spec({"volumes": [{"name": "shm", "emptyDir": {}}]}), ""),
        (spec(allowPrivilegeEscalation=None), 'allowPrivilegeEscalation != false (container "main" must set'),
        (spec(capabilities=None), 'container "main" must set securityContext.capabilities.drop=["ALL"]'),
        (spec(runAsNonRoot=None), 'pod or container "main" must set securityContext.runAsNonRoot=true'),
        (spec(runAsNonRoot=False), "runAsNonRoot != true"),
        (spec(runAsUser=0), "runAsUser=0"),
        (spec({"securityContext": {"runAsUser": 0}}), "runAsUser=0"),
        (spec(seccompProfile=None), 'must set securityContext.seccompProfile.type to "RuntimeDefault"'),
        (spec(seccompProfile={"type": "Unconfined"}), "seccompProfile"),
        (spec({"volumes": [{"name": "disk", "nfs": {}}]}), "restricted volume types"),
        (spec({"volumes": [{"name": "disk", "hostPath": {}}]}), "hostPath volumes"),
        (spec({"hostNetwork": True}), "host namespaces (hostNetwork=true)"),
        (spec(capabilities={"drop": ["ALL"], "add": ["IPC_LOCK"]}), 'non-default capabilities (container "main" must'),
        (spec(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), ""),
        (spec(privileged=True), "must not set securityContext.privileged=true"),
    ],
)
def test_what_a_restricted_namespace_refuses(pod: dict[str, Any], said: str) -> None:
    violations = find_violations(pod, "restricted")

    assert (said in ", ".join(violations)) if said else violations == []


@pytest.mark.parametrize(("level", "count"), [("privileged", 0), ("baseline", 1), ("restricted", 5), ("", 0)])
def test_a_level_refuses_what_the_ones_before_it_do(level: str, count: int) -> None:
    unsafe = {"hostPID": True, "containers": [{"name": "main"}, {"name": "side"}]}

    violations = find_violations(unsafe, level)

    assert len(violations) == count
    assert all('containers "main", "side"' in each for each in violations[1:])


def test_the_label_of_the_namespace_decides() -> None:
    pod = {"metadata": {"name": "train-x"}, "spec": {"containers": [{"name": "main"}]}}

    assert find_refusal(None, pod) == find_refusal({"metadata": {"name": "training"}}, pod) == ""
    refusal = find_refusal({"metadata": {"labels": {ENFORCE: "restricted"}}}, pod)
    assert refusal.startswith('pods "train-x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilege')


@pytest.mark.parametrize(
    ("minor", "level", "is_run"),
    [
        (36, PodSecurity.BASELINE, False),
        (36, PodSecurity.RESTRICTED, True),
        (20, PodSecurity.BASELINE, True),
    ],
    ids=["refused", "restricted", "a server without it"],
)
def test_only_a_restricted_pod_runs_in_a_restricted_namespace(minor: int, level: PodSecurity, *, is_run: bool) -> None:
    workload = KubernetesWorkload("registry.example.com/trainer:1", pod_security=level)
    with served_cluster(Target.ACK, minor=minor) as served:
        labels = {ENFORCE: "restricted"}
        served.cluster.add_node("node-0", gpus=1)
        served.cluster.state.add(
            "namespaces", "", {"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        )
        served.target.launch(make_launch_request(workload=workload, gpu=GpuRequirement()))
        served.advance(3600)
        (task,) = served.target.describe([NAME]).values()
        events = [each.message for each in served.client.list_events(reason="FailedCreate")]

        assert task is not None
        assert (task.phase is TaskPhase.RUNNING) is is_run
        assert all('violates PodSecurity "restricted:latest"' in each for each in events)
        assert bool(events) is not is_run

        if not is_run:  # it is tried again, and taken once the namespace takes it
            served.cluster.state.get("namespaces", "", NAMESPACE)["metadata"]["labels"] = {}
            served.advance(600)
            assert served.pod(NAME)["spec"]["nodeName"]
