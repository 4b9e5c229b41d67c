"""What the fragment of a pod template may say, and in which words the rest is refused."""

from typing import Any

import pytest

from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodSecurity, SecretKey
from relaunch.core.kubernetes.pod_fragment import APPARMOR, IDENTITIES, find_fragment_problems

SIDECAR = {"name": "sync", "image": "registry.example.com/git-sync:4", "restartPolicy": "Always"}
TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def problems_of(pod: dict[str, Any], **fields: Any) -> dict[str, str]:
    workload = KubernetesWorkload("trainer", pod=pod, secrets={"WANDB": SecretKey("wandb", "key")}, **fields)
    found = find_fragment_problems(workload, "main", {"SEED": "1"})
    assert all(each.key[:2] == ("kubernetes", "pod") for each in found)
    return {".".join(map(str, each.key[2:])): str(each) for each in found}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def main(**fields: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "main", **fields}])


def init(**fields: Any) -> dict[str, Any]:
    return spec(initContainers=[SIDECAR | fields])


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}}},
        spec(affinity={"nodeAffinity": {}}, dnsConfig={"options": []}, runtimeClassName="nvidia", hostUsers=False),
        spec(volumes=[{"name": "cfg", "configMap": {"name": "cfg"}}, {"name": "tmp", "emptyDir": {}}]),
        spec(volumes=[{"name": "api", "projected": {"sources": [{"secret": {"name": "a"}}]}}]),
        spec(securityContext={"fsGroup": 1000, "supplementalGroups": [1]}),
        main(volumeMounts=[{"name": "cfg", "mountPath": "/etc/config"}], imagePullPolicy="Always"),
        main(env=[{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}], envFrom=[]),
        main(resources={"limits": {"rdma/hca": 1}}, securityContext={"capabilities": {"add": ["IPC_LOCK"]}}),
        main(livenessProbe={"exec": {"command": ["true"]}}, ports=[{"containerPort": 6006}]),
        init(args=["--repo=x"], resources={"limits": {"memory": "1Gi"}}),
    ],
)
def test_what_a_fragment_may_say(pod: dict[str, Any]) -> None:
    assert problems_of(pod) == {}


@pytest.mark.parametrize(
    ("pod", "path", "said"),
    [
        ({"status": {}}, "status", "`pod.status` may not be set: those that may are metadata, spec"),
        ({"spec": []}, "spec", "`pod.spec` must be a mapping of keys to values"),
        ({"metadata": {"name": "x"}}, "metadata.name", "those that may are annotations, labels"),
        ({"metadata": {"labels": {"aliyun.com/gpu-count": "2"}}}, "metadata.labels.aliyun.com/gpu-count", "is taken"),
        ({"metadata": {"labels": {"relaunch/stack": "x"}}}, "metadata.labels.relaunch/stack", "Relaunch sets it"),
        ({"metadata": {"annotations": {"relaunch/owner": "x/1"}}}, "metadata.annotations.relaunch/owner", "is taken"),
        ({"metadata": {"annotations": {"iam.amazonaws.com/role": "x"}}}, "metadata.annotations.iam.amazonaws.com/role",
         "gives a pod an identity: that of a job is its `service_account`"),
        ({"metadata": {"annotations": {f"{APPARMOR}/main": "unconfined"}}}, f"metadata.annotations.{APPARMOR}/main",
         "may not be set: a container has the AppArmor profile of its node"),
        (spec(preemptionPolicy="Never"), "spec.preemptionPolicy", "those that may are affinity"),
        (spec(restartPolicy="Always"), "spec.restartPolicy", "Kubernetes restarts nothing: leave it out"),
        (spec(activeDeadlineSeconds=9), "spec.activeDeadlineSeconds", "say `max_runtime` or `deadline`"),
        (spec(terminationGracePeriodSeconds=9), "spec.terminationGracePeriodSeconds", "has the same time to save"),
        (spec(serviceAccountName="a"), "spec.serviceAccountName", "say `kubernetes.service_account`"),
        (spec(nodeSelector={}), "spec.nodeSelector", "say `kubernetes.node_selector`"),
        (spec(tolerations=[]), "spec.tolerations", "say `kubernetes.tolerations`"),
        (spec(nodeName="n"), "spec.nodeName", "the scheduler chooses the node"),
        (spec(hostNetwork=True), "spec.hostNetwork", "a pod gets nothing of its node but what it asks for"),
        (spec(hostPID=True), "spec.hostPID", "a pod gets nothing of its node"),
        (spec(hostIPC=True), "spec.hostIPC", "for shared memory say `kubernetes.shared_memory`"),
        (spec(tolerance=[]), "spec.tolerance", "those that may are affinity, containers, "),
        (spec(volumes={}), "spec.volumes", "`pod.spec.volumes` must be a list"),
        (spec(volumes=[{"name": "r", "hostPath": {}}]), "spec.volumes.0.hostPath", "`pod.spec.volumes[0].hostPath`"),
        (spec(volumes=[{"name": "n", "nfs": {}}]), "spec.volumes.0.nfs", "mount a claim by `kubernetes.volumes`"),
        (spec(volumes=[{"emptyDir": {}}]), "spec.volumes.0.name", "is missing, or starts with relaunch-"),
        (spec(volumes=[{"name": "relaunch-claim-0"}]), "spec.volumes.0.name", "is missing, or starts with relaunch-"),
        (spec(volumes=[{"name": "t", **TOKEN}]), "spec.volumes.0.projected", "say `service_account_token`"),
        (spec(securityContext={"runAsUser": 0}), "spec.securityContext.runAsUser", "say `kubernetes.run_as_user`"),
        (spec(securityContext={"sysctls": []}), "spec.securityContext.sysctls", "those that may are fsGroup"),
        (spec(containers=["x"]), "spec.containers.0", "must be a mapping of keys to values"),
        (spec(containers=[{"name": "log"}]), "spec.containers.0.name", "make that one of `initContainers`"),
        (main(image="x"), "spec.containers.0.image", "say `kubernetes.image`"),
        (main(command=[]), "spec.containers.0.command", "say `command`"),
        (main(args=[]), "spec.containers.0.args", "say `command`, which has the arguments too"),
        (main(workingDir="/"), "spec.containers.0.workingDir", "say `kubernetes.working_directory`"),
        (main(ports=[{"hostPort": 80}]), "spec.containers.0.ports.0.hostPort", "a pod gets nothing of its node"),
        (main(livenessProbe={"httpGet": {"host": "a"}}), "spec.containers.0.livenessProbe.httpGet.host", "of the pod"),
        (main(env=[{"name": "RELAUNCH_JOB_ID"}]), "spec.containers.0.env.0.name", "set by Relaunch, `environment` or"),
        (main(env=[{"name": "SEED"}]), "spec.containers.0.env.0.name", "give another"),
        (main(env=[{"name": "WANDB"}]), "spec.containers.0.env.0.name", "give another"),
        (main(env=[{"value": "x"}]), "spec.containers.0.env.0.name", "is missing"),
        (main(resources={"limits": {"nvidia.com/gpu": 8}}), "spec.containers.0.resources.limits.nvidia.com/gpu",
         "may not be set: say `accelerator.gpu`"),
        (main(resources={"requests": {"memory": "1Gi"}}), "spec.containers.0.resources.requests.memory",
         "may not be set: say `kubernetes.memory`"),
        (main(securityContext={"privileged": True}), "spec.containers.0.securityContext.privileged", "a pod gets"),
        (main(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
         "spec.containers.0.securityContext.capabilities.add", "may not have `SYS_ADMIN`: the capabilities that a pod"),
        (init(name="main"), "spec.initContainers.0.name", "that of the main container, `main`: give another"),
        (init(image=None), "spec.initContainers.0.image", "`pod.spec.initContainers[0].image` is missing"),
        (init(securityContext={"privileged": True}), "spec.initContainers.0.securityContext.privileged", "may not be"),
        (init(resources={"limits": {"aliyun.com/gpu-mem": 1}}),
         "spec.initContainers.0.resources.limits.aliyun.com/gpu-mem", "say `accelerator.gpu`"),
    ],
)  # fmt: skip
def test_what_a_fragment_may_not_say(pod: dict[str, Any], path: str, said: str) -> None:
    found = problems_of(pod)

    assert list(found) == [path]
    assert said in found[path]
    assert found[path].startswith(f"`pod.{path.partition('.')[0]}")


@pytest.mark.parametrize("key", [*IDENTITIES, f"{APPARMOR}/main"])
def test_annotations_of_the_job_and_its_pod_are_held_to_the_same(key: str) -> None:
    (found,) = find_fragment_problems(KubernetesWorkload("trainer", annotations={"a": "b", key: "x"}), "main", {})

    assert found.key == ("kubernetes", "annotations", key)
    assert str(found).startswith(f"`{key}` ")


def test_a_token_may_be_projected_where_the_pod_has_one() -> None:
    pod = spec(volumes=[{"name": "t", **TOKEN}])

    assert problems_of(pod, service_account="trainer", service_account_token=True) == {}
    assert problems_of(pod, service_account="trainer") != {}


@pytest.mark.parametrize(("capability", "is_allowed"), [("NET_BIND_SERVICE", True), ("IPC_LOCK", False)])
def test_a_restricted_pod_adds_no_capability_but_one(capability: str, is_allowed: bool) -> None:
    found = problems_of(
        main(securityContext={"capabilities": {"add": [capability]}}), pod_security=PodSecurity.RESTRICTED
    )

    assert (found == {}) is is_allowed
