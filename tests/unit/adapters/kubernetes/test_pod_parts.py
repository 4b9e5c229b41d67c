"""Volumes, secrets and what else a definition has for its pod, in the manifest, and a fragment merged into it."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import make_attempt, make_definition, make_job, make_launch_request
from relaunch.adapters.kubernetes.launches import check_limits
from relaunch.adapters.kubernetes.manifest import build_job
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import (
    KubernetesWorkload,
    PodSecurity,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch_plan import plan_launch
from relaunch.ports import PermanentError
from relaunch_local.kubernetes.job_rules import admit_job
from relaunch_local.kubernetes.pod_fields import expand
from relaunch_local.kubernetes.pod_security import find_violations

SYNC = {"name": "code", "image": "registry.example.com/git-sync:4", "env": [{"name": "GITSYNC_ONE_TIME", "value": "1"}]}


def job(target: Target = Target.ACK, **fields: Any) -> dict[str, Any]:
    """Return the manifest of a Job, which an API server has taken."""
    workload = KubernetesWorkload("trainer", vcpus=4, memory_mib=32_768, gpu_model="T4", **fields)
    made = build_job(make_launch_request(workload=workload, gpu=GpuRequirement()), target, "relaunch")
    assert admit_job(made, 36, is_strict=True)[1] == []
    assert check_limits(made) == ()
    return made


def pod(target: Target = Target.ACK, **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = job(target, **fields)["spec"]["template"]["spec"]
    return spec


def test_shared_memory_is_a_volume_of_memory() -> None:
    spec = pod(shared_memory_mib=8_192)

    assert spec["volumes"] == [{"name": "relaunch-shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]
    mount = {"name": "relaunch-shared-memory", "mountPath": "/dev/shm"}  # noqa: S108
    assert spec["containers"][0]["volumeMounts"] == [mount]


def test_a_claim_is_one_volume_wherever_it_is_mounted() -> None:
    volumes = (
        PodVolume("data", "/data", read_only=True),
        PodVolume("runs", "/runs"),
        PodVolume("data", "/x", sub_path="x"),
    )

    spec = pod(volumes=volumes)

    assert spec["volumes"] == [
        {"name": "relaunch-claim-0", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "relaunch-claim-1", "persistentVolumeClaim": {"claimName": "runs"}},
    ]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": "relaunch-claim-0", "mountPath": "/data", "readOnly": True},
        {"name": "relaunch-claim-1", "mountPath": "/runs"},
        {"name": "relaunch-claim-0", "mountPath": "/x", "subPath": "x"},
    ]


def test_a_secret_is_a_reference_beside_the_environment() -> None:
    env = pod(secrets={"WANDB_API_KEY": SecretKey("wandb", "key")})["containers"][0]["env"]

    assert env[-1] == {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "key"}}}
    assert all("value" in each for each in env[:-1])


def test_an_input_is_a_value_and_nothing_else() -> None:
    inputs = {"lr": "$(HF_TOKEN) $$ {kubernetes.pod}", "pod": "{spec: {hostNetwork: true}}"}
    workload = KubernetesWorkload("trainer", secrets={"HF_TOKEN": SecretKey("hf", "token")})
    definition = make_definition(target=Target.ACK, kubernetes=workload)
    request = plan_launch(make_job(definition=definition, attempt=make_attempt(), inputs=inputs))

    made = build_job(request, Target.ACK, "relaunch")
    plain = build_job(replace(request, environment={}), Target.ACK, "relaunch")

    env = made["spec"]["template"]["spec"]["containers"][0].pop("env")
    (reference,) = plain["spec"]["template"]["spec"]["containers"][0].pop("env")
    assert made == plain
    assert env[-1] == reference
    seen: dict[str, str] = {}
    for each in env[:-1]:
        seen[each["name"]] = expand(each["value"], seen | {"HF_TOKEN": "of a Secret"})
    assert seen == dict(request.environment)
    assert {seen["RELAUNCH_INPUT_LR"], seen["RELAUNCH_INPUT_POD"]} == set(inputs.values())


@pytest.mark.parametrize(("mib", "extra"), [(20_480, None), (30_720, None), (30_721, "1Gi"), (102_400, "70Gi")])
def test_the_disk_is_a_resource_on_ack_and_an_annotation_on_acs(mib: int, extra: str | None) -> None:
    on_ack = job(Target.ACK, disk_mib=mib)
    on_acs = job(Target.ACS, disk_mib=mib)

    resources = on_ack["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"]["ephemeral-storage"] == resources["limits"]["ephemeral-storage"]
    annotations = on_acs["spec"]["template"]["metadata"]["annotations"]
    assert annotations.get("alibabacloud.com/extra-ephemeral-storage") == extra
    assert "ephemeral-storage" not in str(on_acs["spec"]["template"]["spec"])


def test_what_says_where_a_pod_may_run() -> None:
    spec = pod(
        node_selector={"pool": "gpu"},
        tolerations=(
            Toleration("gpu", "a10", TaintEffect.NO_SCHEDULE),
            Toleration("team"),
            Toleration(effect=TaintEffect.NO_SCHEDULE),
        ),
        image_pull_secrets=("registry",),
        priority_class="high",
        scheduler_name="volcano",
    )  # fmt: skip

    assert spec["nodeSelector"] == {"pool": "gpu", "aliyun.accelerator/nvidia_name": "T4"}
    assert spec["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "a10", "effect": "NoSchedule"},
        {"key": "team", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
    ]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert (spec["priorityClassName"], spec["schedulerName"]) == ("high", "volcano")


def test_annotations_are_those_of_the_job_and_its_pod() -> None:
    made = job(annotations={"example.com/team": "vision"})

    for metadata in (made["metadata"], made["spec"]["template"]["metadata"]):
        assert metadata["annotations"].keys() == {"example.com/team", "relaunch/owner"}


def test_a_fragment_is_merged_by_names_and_its_lists_are_appended() -> None:
    main = {
        "name": "main",
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": {"limits": {"rdma/hca": 1}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    }
    spec = {
        "containers": [main],
        "securityContext": {"fsGroup": 1000},
        "volumes": [{"name": "config", "configMap": {"name": "train"}}],
        "runtimeClassName": "nvidia",
    }
    metadata = {"labels": {"role": "trainer"}, "annotations": {"a": "b"}}

    made = job(shared_memory_mib=1024, pod={"metadata": metadata, "spec": spec})["spec"]["template"]

    (container,) = made["spec"]["containers"]
    assert made["metadata"]["labels"].keys() >= {"role", "relaunch/stack"}
    assert made["metadata"]["annotations"].keys() == {"a", "relaunch/owner"}
    assert [each["name"] for each in made["spec"]["volumes"]] == ["relaunch-shared-memory", "config"]
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/dev/shm", "/etc/config"]  # noqa: S108
    assert container["resources"]["limits"].keys() == {"cpu", "memory", "nvidia.com/gpu", "rdma/hca"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"add": ["IPC_LOCK"]}}
    assert made["spec"]["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1000}
    assert container["env"][-1]["name"] == "POD_IP"
    assert (container["image"], made["spec"]["runtimeClassName"]) == ("trainer", "nvidia")


@pytest.mark.parametrize("level", PodSecurity)
def test_an_init_container_knows_the_attempt_and_passes_the_level_of_its_pod(level: PodSecurity) -> None:
    spec = pod(pod_security=level, run_as_user=1000, pod={"spec": {"initContainers": [SYNC]}})

    (init,) = spec["initContainers"]
    names = [each["name"] for each in init["env"]]
    assert names[-1] == "GITSYNC_ONE_TIME"
    assert names[:-1]
    assert all(name.startswith("RELAUNCH_") for name in names[:-1])
    assert find_violations(spec, level.value) == []


def test_a_fragment_that_no_file_may_have_makes_no_pod() -> None:
    workload = KubernetesWorkload("trainer", pod={"spec": {"hostNetwork": True}})
    request = make_launch_request(workload=workload, gpu=GpuRequirement())

    with pytest.raises(PermanentError, match=r"launching resnet-1f2e3d4c/1: `pod.spec.hostNetwork` may not be set"):
        build_job(request, Target.ACK, "relaunch")
    assert build_job(replace(request, workload=KubernetesWorkload("trainer")), Target.ACK, "relaunch")
