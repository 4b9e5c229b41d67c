"""What contradicts itself in the keys of a pod."""

from typing import Any

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.kubernetes_workload import (
    KubernetesWorkload,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.acs import EXTRA_STORAGE
from relaunch.core.kubernetes.pod_keys import find_pod_problems

NODE_KEYS = {
    "aliyun.accelerator/nvidia_name": "gpu_model",
    "ack.node.gpu.schedule": "gpu_sharing",
    "ack.node.gpu.placement": "gpu_placement",
    "alibabacloud.com/gpu-model-series": "gpu_model",
}


def problems_of(
    target: Target = Target.ACK, environment: dict[str, str] | None = None, **fields: Any
) -> dict[str, str]:
    workload = KubernetesWorkload("trainer", **fields)
    definition = make_definition(target=target, kubernetes=workload, environment=environment or {})
    return {".".join(map(str, each.key)): str(each) for each in find_pod_problems(definition)}


def test_a_pod_may_have_all_of_it() -> None:
    everything: dict[str, Any] = {
        "memory_mib": 16_384,
        "shared_memory_mib": 8_192,
        "disk_mib": 51_200,
        "secrets": {"WANDB_API_KEY": SecretKey("wandb", "token")},
        "volumes": (PodVolume("data", "/data", read_only=True), PodVolume("data", "/out", sub_path="out")),
        "node_selector": {"pool": "gpu"},
        "tolerations": (Toleration("gpu"), Toleration(effect=TaintEffect.NO_SCHEDULE)),
        "annotations": {"example.com/team": "vision"},
        "pod": {"spec": {"dnsPolicy": "Default"}},
    }
    assert problems_of(**everything) == {}
    assert problems_of(shared_memory_mib=8_192) == {}


def test_shared_memory_is_part_of_the_memory() -> None:
    text = "shared memory counts towards `memory`: 8,192 MiB of it leave nothing of 8,192 MiB, so give more `memory`"
    assert problems_of(memory_mib=8_192, shared_memory_mib=8_192) == {"kubernetes.shared_memory": text}


def test_a_variable_has_one_value() -> None:
    found = problems_of(environment={"A": "b"}, secrets={"A": SecretKey("a", "b"), "B": SecretKey("a", "b")})

    assert found == {"kubernetes.secrets.A": "`A` is in `environment` too: leave it out there"}


@pytest.mark.parametrize("key", NODE_KEYS)
def test_what_has_a_key_of_its_own_is_said_by_it(key: str) -> None:
    assert problems_of(node_selector={key: "a", "pool": "b"}) == {
        f"kubernetes.node_selector.{key}": f"`{key}` is taken: say `kubernetes.{NODE_KEYS[key]}`"
    }


def test_a_path_has_one_volume() -> None:
    volumes = (PodVolume("a", "/data"), PodVolume("b", "/data"), PodVolume("c", "/dev/shm"))  # noqa: S108

    found = problems_of(volumes=volumes, shared_memory_mib=1)

    assert list(found) == [f"kubernetes.volumes.{number}.path" for number in range(3)]
    assert found["kubernetes.volumes.0.path"] == "`/data` is the path of something else too: a path has one volume"
    assert list(problems_of(volumes=volumes)) == [f"kubernetes.volumes.{number}.path" for number in range(2)]


@pytest.mark.parametrize(
    ("toleration", "said"),
    [
        (Toleration(value="a10", effect=TaintEffect.NO_SCHEDULE), "`value` is that of a taint with a key: give `key`"),
        (Toleration(), "it would keep the pod on a node that nothing is heard of, for ever: give `effect: NoSchedule`"),
        (Toleration(effect=TaintEffect.NO_EXECUTE), "it would keep the pod on a node"),
        (Toleration("node.kubernetes.io/unreachable"), "it would keep the pod on a node"),
        (Toleration("node.kubernetes.io/unreachable", effect=TaintEffect.NO_SCHEDULE), ""),
        (Toleration("gpu", "a10", TaintEffect.NO_EXECUTE), ""),
    ],
)
def test_a_pod_leaves_a_node_that_is_lost(toleration: Toleration, said: str) -> None:
    found = problems_of(tolerations=(toleration,))

    assert bool(found) is bool(said)
    assert all(key.startswith("kubernetes.tolerations.0") and said in text for key, text in found.items())


def test_the_storage_of_acs_is_said_by_its_key() -> None:
    assert problems_of(annotations={EXTRA_STORAGE: "20Gi"}) == {
        f"kubernetes.annotations.{EXTRA_STORAGE}": f"`{EXTRA_STORAGE}` is taken: say `kubernetes.disk`"
    }


def test_a_target_without_pods_has_none() -> None:
    assert problems_of(Target.ECS, pod={"spec": {"hostPID": True}}) == {}
    assert find_pod_problems(make_definition(target=Target.ACK, kubernetes=None)) == ()
