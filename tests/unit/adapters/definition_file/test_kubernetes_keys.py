"""What a definition has for its pod beside GPUs: read, written, and refused with its line and column."""

# ruff: noqa: E501 - one case a line, with the whole message

import re

import pytest

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.kubernetes_workload import (
    KubernetesWorkload,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)

CATALOGUE = load_catalogue()
EVERY_KEY = """
jobs:
  train:
    target: ack
    accelerator: {gpu: {}}
    kubernetes:
      image: registry.example.com/trainer:1
      memory: 32GiB
      shared_memory: 8GiB
      disk: 100GiB
      secrets:
        WANDB_API_KEY: {secret: wandb, key: api-key}
      volumes:
        - {claim: imagenet, path: /data, read_only: true}
        - {claim: runs, path: /runs, sub_path: vision/resnet}
      node_selector: {pool: gpu, example.com/zone: a}
      tolerations:
        - {key: gpu, value: a10, effect: NoSchedule}
        - {key: team}
      image_pull_secrets: [registry]
      priority_class: high
      scheduler_name: volcano
      annotations: {example.com/owner: "Ada & co"}
      pod:
        metadata: {labels: {role: trainer}}
        spec:
          runtimeClassName: nvidia
          containers:
            - name: main
              resources: {limits: {rdma/hca: 1}}
"""
WORKLOAD = KubernetesWorkload(
    "registry.example.com/trainer:1",
    memory_mib=32_768,
    shared_memory_mib=8_192,
    disk_mib=102_400,
    secrets={"WANDB_API_KEY": SecretKey("wandb", "api-key")},
    volumes=(PodVolume("imagenet", "/data", read_only=True), PodVolume("runs", "/runs", sub_path="vision/resnet")),
    node_selector={"pool": "gpu", "example.com/zone": "a"},
    tolerations=(Toleration("gpu", "a10", TaintEffect.NO_SCHEDULE), Toleration("team")),
    image_pull_secrets=("registry",),
    priority_class="high",
    scheduler_name="volcano",
    annotations={"example.com/owner": "Ada & co"},
    pod={
        "metadata": {"labels": {"role": "trainer"}},
        "spec": {
            "runtimeClassName": "nvidia",
            "containers": [{"name": "main", "resources": {"limits": {"rdma/hca": 1}}}],
        },
    },
)


def test_every_key_is_read_and_written_again() -> None:
    (definition,) = parse_definitions(EVERY_KEY, "f.yaml", CATALOGUE)

    assert definition.kubernetes == WORKLOAD
    assert parse_definitions(write_definitions([definition]), "f.yaml", CATALOGUE) == [definition]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("shared_memory: 8Gi", "shared_memory: `8Gi` is not in a binary unit: write memory in GiB or MiB, not Gi"),
        ("disk: 100", "disk: 100 has no unit: write 100GiB or 100MiB"),
        ("secrets: {A: hf_x}", "secrets.A: must be a mapping of keys to values, not `hf_x`"),
        ("secrets: {A: {secret: a}}", "secrets.A.key: `key` is missing"),
        ("secrets: {A: {secret: a, key: k, value: b}}", "secrets.A.value: unknown key `value`; known are `secret`, `key`"),
        ("secrets: {A: {secret: a, key: b c}}", "secrets.A.key: `b c` is not a key of a Secret (letters, digits, -, _ and .)"),
        ("secrets: {RELAUNCH_A: {secret: a, key: b}}", "secrets.RELAUNCH_A: `RELAUNCH_A` is taken: names that start with RELAUNCH_ or ECS_ are set for you"),
        ("volumes: {data: /data}", "volumes: must be a list"),
        ("volumes: [{claim: data, path: data}]", "volumes[0].path: `data` is not an absolute path below the root, without `:`"),
        ("volumes: [{claim: data, path: /}]", "volumes[0].path: `/` is not an absolute path below the root, without `:`"),
        ("volumes: [{claim: Data, path: /d}]", "volumes[0].claim: `Data` is not an object's name (lower-case letters, digits, - and .)"),
        ("volumes: [{claim: d, path: /d, sub_path: a/../..}]", "volumes[0].sub_path: `a/../..` is not a relative path without `..`"),
        ("volumes: [{claim: d, path: /d, readOnly: true}]", "volumes[0].readOnly: unknown key `readOnly`; did you mean `read_only`?"),
        ("volumes: [{claim: d, path: /d}, {claim: e, path: /d}]", "volumes[0].path: `/d` is the path of something else too: a path has one volume"),
        ("tolerations: [{key: gpu, effect: Never}]", "tolerations[0].effect: `Never` is none of NoSchedule, PreferNoSchedule, NoExecute"),
        ("tolerations: [{key: gpu, operator: Exists}]", "tolerations[0].operator: unknown key `operator`; known are `key`, `value`, `effect`"),
        ("tolerations: [{value: a10, effect: NoSchedule}]", "tolerations[0].value: `value` is that of a taint with a key: give `key` too"),
        ("tolerations: all", "tolerations: must be a list: [all]"),
        ("node_selector: {pool: 1}", 'node_selector.pool: must be text: write it in quotes, "1"'),
        ("node_selector: {aliyun.accelerator/nvidia_name: A10}", "node_selector.aliyun.accelerator/nvidia_name: `aliyun.accelerator/nvidia_name` is taken: say `kubernetes.gpu_model`"),
        ("image_pull_secrets: registry", "image_pull_secrets: must be a list: [registry]"),
        ("priority_class: High", "priority_class: `High` is not an object's name (lower-case letters, digits, - and .)"),
        ("annotations: {relaunch/owner: x}", "annotations.relaunch/owner: `relaunch/owner` is taken: Kubernetes or Relaunch sets it"),
        ("annotations: {k8s.aliyun.com/eci-ram-role-name: x}", "annotations.k8s.aliyun.com/eci-ram-role-name: `k8s.aliyun.com/eci-ram-role-name` gives a pod an identity: that of a job is its `service_account`"),
        (f"annotations: {{a: {'x' * 65_536}}}", "annotations: have more than 65,536 characters together"),
        ("pod: {hostNetwork: true}", "pod.hostNetwork: unknown key `hostNetwork`; known are `metadata`, `spec`"),
        ("pod: {metadata: {name: x}}", "pod.metadata.name: unknown key `name`; known are `labels`, `annotations`"),
        ("pod: {spec: {hostNetwork: true}}", "pod.spec.hostNetwork: `pod.spec.hostNetwork` may not be set: a pod gets nothing of its node but what it asks for: leave it out"),
        ("pod: {spec: {dnsPolicy: }}", "pod.spec.dnsPolicy: has no value: give it one or leave the key out"),
        ("pod: {spec: {containers: [{name: main, image: x}]}}", "pod.spec.containers[0].image: `pod.spec.containers[0].image` may not be set: say `kubernetes.image`"),
        ("pod: {spec: {dnsConfig: {a: 1e999}}}", "pod.spec: has a number that JSON cannot write"),
        (f"pod: {{spec: {{subdomain: {'x' * 16_384}}}}}", "pod.spec: has more than 16,384 characters"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_where_it_is(keys: str, problem: str) -> None:
    text = (
        f"jobs:\n  a:\n    target: ack\n    accelerator: {{gpu: {{}}}}\n    kubernetes:\n      image: i\n      {keys}\n"
    )

    with pytest.raises(DefinitionFileError) as refused:
        parse_definitions(text, "f.yaml", CATALOGUE)

    first = str(refused.value.problems[0])
    assert re.fullmatch(r"f\.yaml:7:\d+: jobs\.a\.kubernetes\." + re.escape(problem), first), first
