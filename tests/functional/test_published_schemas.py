"""What is sent to clusters, against the published schemas of Kubernetes 1.26 to 1.37."""

from typing import Any

import pytest
import yaml

from fakes.alibaba_documents import ACK_DEFINITION, ACS_DEFINITION, job_of
from fakes.kubernetes_schemas import MINORS, fields_of, schema_problems
from fakes.repository import REPOSITORY
from relaunch_local.kubernetes.job_rules import spec_fields
from relaunch_local.kubernetes.patches import merge_patch
from relaunch_local.kubernetes.pod_fields import KINDS, known_fields

# Every key of `kubernetes` that writes something, and a pod with what has no key.
FULL_DEFINITION = """
jobs:
  full:
    target: ack
    kubernetes:
      image: registry.example.com/team/trainer:1
      working_directory: /root
      vcpus: 16
      memory: 64GiB
      service_account: train
      service_account_token: true
      labels: {app: full}
      shared_memory: 16GiB
      disk: 100GiB
      queue: gpus
      pod_security: restricted
      run_as_user: 1000
      secrets: {WANDB_API_KEY: {secret: wandb, key: api-key}}
      volumes: [{claim: imagenet, path: /data, read_only: true}, {claim: runs, path: /runs, sub_path: resnet}]
      node_selector: {pool: training}
      tolerations: [{key: gpu, value: a10, effect: NoSchedule}, {key: spot}]
      image_pull_secrets: [registry]
      priority_class: high
      scheduler_name: volcano
      annotations: {example.com/cost-centre: "17"}
      pod:
        spec:
          volumes: [{name: code, emptyDir: {}}]
          initContainers: [{name: code, image: git-sync:4, volumeMounts: [{name: code, mountPath: /code}]}]
          containers: [{name: main, volumeMounts: [{name: code, mountPath: /code}], resources: {limits: {rdma/hca: 1}}}]
    accelerator: {gpu: {count: 2, memory: 8GiB}}
"""
SHARE_ON_HPN = """
jobs:
  share:
    target: acs
    kubernetes: {image: trainer, vcpus: 1, memory: 1GiB, compute_class: gpu-hpn, gpu_model: P16EN, card_memory: 96GiB}
    accelerator: {gpu: {memory: 8GiB, compute_percent: 30}}
"""


PARTITION = """
jobs:
  partition:
    target: kubernetes
    kubernetes: {image: trainer, gpu_model: NVIDIA-A100-SXM4-40GB, gpu_resource: nvidia.com/mig-1g.5gb}
    accelerator: {gpu: {count: 1}}
"""

SEVERAL_NODES = """
jobs:
  several:
    target: ack
    nodes: 4
    kubernetes: {image: trainer, vcpus: 64, memory: 512GiB}
    accelerator: {gpu: {count: 8}}
"""


def objects_of(file: str) -> list[dict[str, Any]]:
    """Return the objects that a file of infrastructure/kubernetes has."""
    text = (REPOSITORY / "infrastructure" / "kubernetes" / file).read_text(encoding="utf-8")
    return [each for each in yaml.safe_load_all(text) if each]


SENT = {
    "ACK's document": job_of(ACK_DEFINITION),
    "ACS's document": job_of(ACS_DEFINITION),
    "every key": job_of(FULL_DEFINITION),
    "share on gpu-hpn": job_of(SHARE_ON_HPN),
    "partition in any cluster": job_of(PARTITION),
    "several nodes": job_of(SEVERAL_NODES),
    **{
        f"{file}: {each['kind']}": each
        for file in ("role.yaml", "nodes.yaml", "reader.yaml")
        for each in objects_of(file)
    },
}


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_all_versions_know_each_field_that_is_sent(sent):
    assert {minor: found for minor in MINORS if (found := schema_problems(sent, minor))} == {}


@pytest.mark.parametrize(
    ("patch", "since"),
    [
        ({"spec": {"podReplacementPolicy": "Failed"}}, 28),
        ({"spec": {"managedBy": "example.com/queue"}}, 30),
        ({"spec": {"template": {"spec": {"restartPolicy": 1}}}}, 99),
        ({"spec": {"backofLimit": 1}}, 99),
        ({"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}}, 99),
        # Until 1.28 each rule must have conditions of pods, were there none in it.
        ({"spec": {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}}, 29),
    ],
)
def test_a_field_is_refused_by_the_versions_that_do_not_have_it_so(patch, since):
    job = merge_patch(job_of(ACK_DEFINITION), patch)

    assert [minor for minor in MINORS if not schema_problems(job, minor)] == [each for each in MINORS if each >= since]


@pytest.mark.parametrize("minor", MINORS)
def test_the_server_on_loopback_knows_the_fields_that_its_version_has(minor):
    unpublished = {kind: set(known_fields(kind, minor)) - fields_of(f"core.v1.{kind}", minor) for kind in KINDS}

    assert spec_fields(minor) == fields_of("batch.v1.JobSpec", minor)
    assert {kind: names for kind, names in unpublished.items() if names} == {}
