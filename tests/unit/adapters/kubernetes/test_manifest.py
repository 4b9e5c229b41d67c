"""Jobs as Alibaba Cloud's documents write them, from a job definition; and every Job against the rules of clusters."""

import re
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fakes.alibaba_documents import ACK_DEFINITION, ACS_DEFINITION, job_of
from fakes.builders import make_launch_request, make_offering_key
from fakes.kubernetes_schemas import MINORS, schema_problems
from relaunch.adapters.kubernetes.manifest import build_job, manifest_builder
from relaunch.adapters.kubernetes.pod_parts import cpu_quantity, memory_quantity
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
    PodVolume,
    SecretKey,
    TaintEffect,
    Toleration,
)
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.ack import COMPUTE_REGIONS
from relaunch.core.kubernetes.pod_keys import find_pod_problems
from relaunch.core.kubernetes.rules import find_problems
from relaunch.ports import PermanentError
from relaunch_local.kubernetes.ack_rules import admit_gpu_shares
from relaunch_local.kubernetes.job_rules import admit_job
from relaunch_local.kubernetes.pod_security import find_violations

# The Job of "Configure shared GPU scheduling with computing power allocation" for ACK, with quantities as strings.
ACK_DOCUMENT = """
apiVersion: batch/v1
kind: Job
metadata:
  name: cuda-sample
spec:
  parallelism: 1
  template:
    metadata:
      labels:
        app: cuda-sample
    spec:
      containers:
      - name: cuda-sample
        image: registry.cn-beijing.aliyuncs.com/ai-samples/gpushare-sample:benchmark-tensorflow-2.2.3
        command:
        - bash
        - run.sh
        - --num_batches=500000000
        - --batch_size=8
        resources:
          limits:
            aliyun.com/gpu-mem: "2"
            aliyun.com/gpu-core.percentage: "30"
        workingDir: /root
      restartPolicy: Never
"""

# The pod of "Specify GPU models and driver versions for ACS GPU-accelerated pods", as the template of a Job.
ACS_DOCUMENT = """
metadata:
  labels:
    alibabacloud.com/compute-class: "gpu"
    alibabacloud.com/gpu-model-series: "example-model"
    alibabacloud.com/gpu-driver-version: "535.161.08"
spec:
  containers:
  - image: registry.cn-beijing.aliyuncs.com/acs/tensorflow-mnist-sample:v1.5
    name: tensorflow-mnist
    command:
    - sleep
    - infinity
    resources:
      requests:
        cpu: "1"
        memory: 1Gi
        nvidia.com/gpu: "1"
      limits:
        cpu: "1"
        memory: 1Gi
        nvidia.com/gpu: "1"
"""
# What a Job of Relaunch has beside that of a document, and the name, which is that of a placement.
OWN_FIELDS = {
    "metadata.name",
    "metadata.labels.app.kubernetes.io/managed-by",
    *(f"metadata.labels.relaunch/{key}" for key in ("stack", "task", "job", "attempt", "placement")),
    "metadata.annotations.relaunch/owner",
    "spec.backoffLimit",
    "spec.ttlSecondsAfterFinished",
    "spec.completions",
    "spec.podFailurePolicy.rules",
}
OWN_POD_FIELDS = {
    *(field for field in OWN_FIELDS if field.startswith("metadata.") and field != "metadata.name"),
    "spec.terminationGracePeriodSeconds",
    "spec.automountServiceAccountToken",
    "spec.securityContext.seccompProfile.type",
    "spec.containers.securityContext.allowPrivilegeEscalation",
    "spec.containers.env",
}


def fields_of(value: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of a manifest by their paths; a list of one mapping is that mapping."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        return {path.removeprefix("."): value}
    return {name: leaf for key, each in value.items() for name, leaf in fields_of(each, f"{path}.{key}").items()}


def test_the_job_of_acks_document_is_written_field_by_field():
    ours, document = fields_of(job_of(ACK_DEFINITION)), fields_of(yaml.safe_load(ACK_DOCUMENT))

    own = {
        *OWN_FIELDS,
        *(f"spec.template.{field}" for field in OWN_POD_FIELDS),
        "metadata.labels.app",
        "spec.template.spec.nodeSelector.ack.node.gpu.schedule",
    }
    assert {field: ours.get(field) for field in document if field != "metadata.name"} == {
        field: value for field, value in document.items() if field != "metadata.name"
    }
    assert ours.keys() - document.keys() | {"metadata.name"} == own
    assert ours["spec.template.spec.nodeSelector.ack.node.gpu.schedule"] == "core_mem"


def test_the_pod_of_acss_document_is_written_field_by_field():
    ours, document = fields_of(job_of(ACS_DEFINITION)["spec"]["template"]), fields_of(yaml.safe_load(ACS_DOCUMENT))

    assert {field: ours.get(field) for field in document} == document
    assert ours.keys() - document.keys() == OWN_POD_FIELDS | {"spec.restartPolicy"}


def test_spot_on_acs_is_best_effort():
    labels = job_of(ACS_DEFINITION, PurchaseOption.SPOT)["spec"]["template"]["metadata"]["labels"]

    assert labels["alibabacloud.com/compute-qos"] == "best-effort"


def test_kubernetes_starts_nothing_anew_and_tells_how_a_pod_ended_that_is_gone():
    spec = job_of(ACK_DEFINITION)["spec"]

    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")
    assert [rule["action"] for rule in spec["podFailurePolicy"]["rules"]] == ["FailJob", "FailJob"]
    assert spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"] == "cuda-sample"
    # Kubernetes 1.26 has them as required in the schema of every rule.
    assert all("onPodConditions" in rule for rule in spec["podFailurePolicy"]["rules"])


def test_a_pod_has_the_time_to_save_and_the_environment_of_its_attempt():
    pod = job_of(ACK_DEFINITION)["spec"]["template"]["spec"]

    environment = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert pod["terminationGracePeriodSeconds"] == 90
    assert environment["RELAUNCH_JOB_ID"] == "cuda-sample-1f2e3d4c"
    assert environment["RELAUNCH_ATTEMPT"] == "1"


def test_whatever_is_not_given_is_left_to_the_cluster():
    request = make_launch_request(
        workload=KubernetesWorkload("trainer"), gpu=GpuRequirement(), command=(), environment={}
    )

    pod = build_job(request, Target.ACK, "relaunch")["spec"]["template"]["spec"]

    (container,) = pod["containers"]
    assert container.keys() == {"name", "image", "resources", "securityContext"}
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert not pod.keys() & {"nodeSelector", "serviceAccountName"}


def pod_of(**fields: Any) -> dict[str, Any]:
    request = make_launch_request(workload=KubernetesWorkload("trainer", **fields), gpu=GpuRequirement())
    pod: dict[str, Any] = build_job(request, Target.ACK, "r")["spec"]["template"]["spec"]
    return pod


def test_a_service_account_is_that_of_the_pod():
    assert pod_of(service_account="train")["serviceAccountName"] == "train"


@pytest.mark.parametrize(
    ("fields", "has_token"),
    [
        ({}, False),
        ({"service_account": "train"}, False),
        ({"service_account": "train", "service_account_token": True}, True),
        # The definition is refused; without a name it would be the token of the namespace's default account.
        ({"service_account_token": True}, False),
    ],
)
def test_a_pod_has_the_token_of_a_service_account_only_if_it_is_asked_for(fields, has_token):
    assert pod_of(**fields)["automountServiceAccountToken"] is has_token


def test_a_pod_runs_as_the_user_of_its_image_and_can_gain_no_privileges():
    pod = pod_of()

    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}


def test_a_restricted_pod_is_not_root_and_has_no_capabilities():
    pod = pod_of(pod_security=PodSecurity.RESTRICTED, run_as_user=1000)

    assert pod["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 1000,
    }
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_request_for_another_target_is_not_sent():
    with pytest.raises(PermanentError, match="launching resnet-1f2e3d4c/1: the job has no `kubernetes`"):
        build_job(make_launch_request(), Target.ACK, "relaunch")


def test_a_stored_job_gets_no_identity_by_an_annotation():
    # Whoever may write the table stores what no definition file may say.
    workload = KubernetesWorkload("trainer", annotations={"k8s.aliyun.com/eci-ram-role-name": "admin"})

    with pytest.raises(PermanentError, match="eci-ram-role-name` gives a pod an identity"):
        build_job(make_launch_request(workload=workload, gpu=GpuRequirement()), Target.ACK, "relaunch")


def test_the_same_request_is_the_same_job_whatever_the_order_of_its_environment():
    build = manifest_builder(Target.ACK, "relaunch")
    request = make_launch_request(workload=KubernetesWorkload("trainer"), gpu=GpuRequirement())
    turned = replace(request, environment=dict(reversed(request.environment.items())))

    assert build(request) == build(turned)
    assert build(request) != build(replace(request, placement_number=2))


@pytest.mark.parametrize(("vcpus", "quantity"), [(4, "4"), (0.5, "500m"), (1.25, "1250m"), (0.001, "1m"), (10, "10")])
def test_vcpus_are_written_as_a_quantity(vcpus, quantity):
    assert cpu_quantity(vcpus) == quantity


@pytest.mark.parametrize(("mib", "quantity"), [(16 * 1024, "16Gi"), (1500, "1500Mi"), (1, "1Mi")])
def test_memory_is_written_as_a_quantity(mib, quantity):
    assert memory_quantity(mib) == quantity


# The property: whatever the rules of the core let through is accepted by the rules of the clusters, as the documents
# and the answers of API servers state them, written down once more.

LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
QUANTITY = re.compile(r"[1-9][0-9]*(m|Mi|Gi)?")
COUNTED = ("aliyun.com/", "alibabacloud.com/", "nvidia.com/")

# Mostly what the rules let through, so that few examples are thrown away.
whole_gpus = st.builds(GpuRequirement, count=st.integers(1, 8))
memory_shares = st.builds(GpuRequirement, count=st.integers(1, 8), memory_mib=st.integers(1, 98_304))
compute_shares = st.builds(
    GpuRequirement,
    memory_mib=st.integers(1, 98_304),
    compute_percent=st.integers(1, 20).map(lambda step: 5 * step) | st.integers(1, 100),
)
EFFECTS = st.none() | st.sampled_from(TaintEffect)
path_of = attrgetter("path")
workloads = st.builds(
    KubernetesWorkload,
    image=st.just("registry.example.com/trainer:v1"),
    vcpus=st.integers(1, 64_000).map(lambda thousandths: thousandths / 1000),
    memory_mib=st.integers(1, 2_000_000),
    labels=st.dictionaries(st.sampled_from(["app", "example.com/team"]), st.just("a")),
    region=st.sampled_from(["", "eu-central-1", *COMPUTE_REGIONS]),
    gpu_model=st.sampled_from(["T4", "P16EN"]),
    gpu_sharing=st.none() | st.sampled_from(GpuSharing),
    gpu_placement=st.none() | st.sampled_from(GpuPlacement),
    compute_class=st.sampled_from([None, *ComputeClass]),
    gpu_driver=st.sampled_from(["", "", "535.161.08", "580.95.05-open", "1.5.0"]),
    card_memory_mib=st.just(98_304),
    pod_security=st.sampled_from(PodSecurity),
    run_as_user=st.sampled_from([None, 1, 1000]),
    shared_memory_mib=st.none() | st.integers(1, 99_999),
    disk_mib=st.none() | st.integers(1, 999_999),
    secrets=st.sampled_from([{}, {"HF_TOKEN": SecretKey("hf", "token")}]),
    volumes=st.lists(st.builds(PodVolume, st.sampled_from("ab"), st.sampled_from(["/a", "/b"])), unique_by=path_of),
    tolerations=st.lists(st.builds(Toleration, st.sampled_from(["", "gpu"]), st.sampled_from(["", "a"]), EFFECTS)),
    pod=st.sampled_from([{}, {"spec": {"initContainers": [{"name": "code", "image": "git-sync:4"}]}}]),
)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([Target.ACK, Target.ACS]),
    whole_gpus | memory_shares | compute_shares,
    workloads,
    st.sampled_from(PurchaseOption),
    st.sampled_from(MINORS),
)
def test_every_job_that_is_written_is_one_that_clusters_accept(target, gpu, workload, purchase, minor):
    accelerator = AcceleratorRequirement(gpu=gpu)
    definition = JobDefinition("train", "", accelerator, target=target, kubernetes=workload)
    assume(not find_problems(definition) and not find_pod_problems(definition))
    offering = make_offering_key("GPU", None, purchase)

    job = build_job(make_launch_request(workload=workload, gpu=gpu, offering=offering), target, "relaunch")

    check_job(job)
    assert schema_problems(job, minor) == []
    admitted, warnings = admit_job(job, 36, is_strict=True)
    admit_gpu_shares(admitted)
    assert warnings == []
    admit_job(job, 20, is_strict=False)
    assert find_violations(job["spec"]["template"]["spec"], workload.pod_security.value) == []
    (check_ack if target is Target.ACK else check_acs)(job["spec"]["template"], workload.region)


def check_job(job: dict[str, Any]) -> None:
    """Check what every Kubernetes API server asks of a Job."""
    template = job["spec"]["template"]
    (container,) = template["spec"]["containers"]
    limits, requests = container["resources"]["limits"], container["resources"].get("requests", {})
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", job["metadata"]["name"])
    assert template["spec"]["restartPolicy"] in {"Never", "OnFailure"}
    for value in (*job["metadata"]["labels"].values(), *template["metadata"]["labels"].values()):
        assert LABEL.fullmatch(value)
    assert job["metadata"]["labels"].items() <= template["metadata"]["labels"].items()
    assert all(isinstance(each.get("value", ""), str) for each in container["env"])
    assert all(QUANTITY.fullmatch(quantity) for quantity in limits.values())
    assert all(limits[name] == quantity for name, quantity in requests.items())
    assert all(quantity.isdecimal() for name, quantity in limits.items() if name.startswith(COUNTED))


def check_ack(template: dict[str, Any], region: str) -> None:
    """Check the rules of ACK for shares of a GPU."""
    limits = template["spec"]["containers"][0]["resources"]["limits"]
    selector = template["spec"].get("nodeSelector", {})
    memory, percent = limits.get("aliyun.com/gpu-mem"), limits.get("aliyun.com/gpu-core.percentage")
    count = template["metadata"]["labels"].get("aliyun.com/gpu-count")
    assert (memory is None) is ("nvidia.com/gpu" in limits)
    assert not any(name.startswith("alibabacloud.com/") for name in limits)
    if percent is not None:
        assert int(percent) in range(5, 101, 5)
        assert memory is not None
        assert count is None
        assert selector["ack.node.gpu.schedule"] == "core_mem"
        assert region in ("", *COMPUTE_REGIONS)
    if memory is None:
        assert "ack.node.gpu.schedule" not in selector
        assert count is None
    elif count is not None:
        assert int(memory) % int(count) == 0
        assert int(count) > 1


def check_acs(template: dict[str, Any], region: str) -> None:
    """Check the rules of ACS for compute classes."""
    labels, resources = template["metadata"]["labels"], template["spec"]["containers"][0]["resources"]
    assert {"cpu", "memory"} <= resources["requests"].keys()
    assert resources["requests"] == resources["limits"]
    shares = {name: int(each) for name, each in resources["limits"].items() if name.endswith(".percentage")}
    model = "alibabacloud.com/gpu-model-series"
    if labels["alibabacloud.com/compute-class"] == "gpu":
        assert labels[model]
        assert not shares
    else:
        assert model not in labels
        assert "alibabacloud.com/compute-qos" not in labels
    assert (not shares) is ("nvidia.com/gpu" in resources["limits"])
    assert not any(name.startswith("aliyun.com/") for name in resources["limits"])
    if shares:
        assert shares.keys() == {f"alibabacloud.com/gpu-{part}.percentage" for part in ("core", "memory")}
        assert all(1 <= percent <= 100 for percent in shares.values())
        assert "alibabacloud.com/gpu-driver-version" not in labels
