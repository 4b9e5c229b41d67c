"""What a definition for ACK or ACS may ask for, whatever its GPUs are."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    NeuronRequirement,
    PurchaseOption,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload, TaintEffect, Toleration
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes import ack
from relaunch.core.kubernetes.node_fit import GpuNode, NodeTaint
from relaunch.core.kubernetes.rules import (
    QUEUE_LABEL,
    ask_gpus,
    find_kubernetes_notices,
    find_problems,
    predict_job_fit,
    purchase_options,
)

WORKLOAD = KubernetesWorkload("trainer", vcpus=4, memory_mib=16 * 1024, gpu_model="T4")
SHARE = GpuRequirement(memory_mib=2 * 1024, compute_percent=30)


def define(target: Target = Target.ACK, gpu: GpuRequirement | None = SHARE, **fields: Any) -> JobDefinition:
    workload = fields.pop("kubernetes", WORKLOAD)
    return make_definition(target=target, kubernetes=workload, accelerator=AcceleratorRequirement(gpu=gpu), **fields)


def problems_of(definition: JobDefinition) -> dict[str, str]:
    return {".".join(each.key): str(each) for each in find_problems(definition)}


@pytest.mark.parametrize("target", [Target.ACK, Target.ACS])
def test_a_definition_may_run_on_both_targets_with_whole_gpus(target):
    assert problems_of(define(target, GpuRequirement())) == {}


def test_the_rules_are_not_about_a_target_without_pods():
    assert problems_of(define(Target.ECS, None)) == {}
    with pytest.raises(ValueError, match=r"^a task on ECS is no pod$"):
        ask_gpus(Target.ECS, GpuRequirement(), WORKLOAD, PurchaseOption.ON_DEMAND)


@pytest.mark.parametrize(
    ("queue", "label", "is_refused"), [("gpus", "gpus", False), ("gpus", "b", True), ("", "b", False)]
)
def test_the_label_of_a_queue_is_that_of_its_key(queue, label, is_refused):
    workload = replace(WORKLOAD, queue=queue, labels={"kueue.x-k8s.io/queue-name": label})
    text = "`kueue.x-k8s.io/queue-name` is `queue`: leave it out"

    assert problems_of(define(kubernetes=workload)) == ({"kubernetes.labels": text} if is_refused else {})


def test_a_definition_needs_what_runs():
    assert problems_of(define(kubernetes=None)) == {
        "kubernetes": "`kubernetes` is missing: ack needs its image at least"
    }


@pytest.mark.parametrize(("account", "is_refused"), [("", True), ("trainer", False)])
def test_a_token_is_that_of_a_service_account_that_is_named(account, is_refused):
    workload = replace(WORKLOAD, service_account=account, service_account_token=True)

    text = "`service_account_token` is the token of a service account: name it in `service_account`"
    expected = {"kubernetes.service_account_token": text} if is_refused else {}
    assert problems_of(define(kubernetes=workload)) == expected


def test_neuron_devices_are_on_ecs_only():
    neuron = AcceleratorRequirement(neuron=NeuronRequirement(devices=1))

    found = problems_of(replace(define(Target.ACS), accelerator=neuron))

    assert found == {"accelerator": "acs has NVIDIA GPUs only: give `gpu`"}


@pytest.mark.parametrize(
    ("gpu", "text"),
    [
        (GpuRequirement(compute_percent=30), "a share of a GPU needs its memory too: give `memory`, like 2GiB"),
        (replace(SHARE, count=2), "a share is of one GPU: leave `count` out, or ask for 2 whole ones"),
    ],
)
def test_a_share_of_compute_is_of_one_gpu_and_has_memory(gpu, text):
    assert problems_of(define(gpu=gpu)) == {"accelerator.gpu": text}


@pytest.mark.parametrize(
    ("key", "wish"),
    [("models", ("A10G",)), ("compute_capability", (8, 0)), ("interconnect", Interconnect.NVLINK)],
)
def test_what_chooses_among_the_gpus_of_ec2_needs_a_model_instead(key, wish):
    definition = define(gpu=replace(SHARE, **{key: wish}))
    nameless = replace(definition, kubernetes=replace(WORKLOAD, gpu_model=""))

    text = f"`{key}` chooses among the GPUs of EC2: on ack give `kubernetes.gpu_model`"
    assert problems_of(nameless) == {f"accelerator.gpu.{key}": text}
    assert problems_of(definition) == {}


@pytest.mark.parametrize(
    "key", ["aliyun.com/gpu-count", "alibabacloud.com/compute-class", "alibabacloud.com/gpu-driver-version"]
)
def test_labels_that_the_rules_set_are_taken(key):
    workload = replace(WORKLOAD, labels={"app": "cuda-sample", key: "1", "alibabacloud.com/acs": "true"})

    assert problems_of(define(kubernetes=workload)) == {"kubernetes.labels": f"`{key}` is taken: Relaunch sets it"}


@pytest.mark.parametrize(("label", "is_refused"), [("others", True), ("gpus", False)])
def test_the_label_of_a_queue_contradicts_no_queue(label, is_refused):
    workload = replace(WORKLOAD, queue="gpus", labels={QUEUE_LABEL: label})

    text = f"`{QUEUE_LABEL}` is `queue`: leave it out"
    assert problems_of(define(kubernetes=workload)) == ({"kubernetes.labels": text} if is_refused else {})


@pytest.mark.parametrize(
    ("container", "is_valid"),
    [(None, True), ("cuda-sample", True), ("Main", False), ("a_b", False), ("a" * 64, False)],
)
def test_a_container_has_the_name_of_one_of_a_pod(container, is_valid):
    assert ("container" in problems_of(define(container=container))) is not is_valid


RESERVED = replace(WORKLOAD, compute_class=ComputeClass.GPU_HPN)


@pytest.mark.parametrize(
    ("target", "workload", "policy", "options", "refused"),
    [
        (Target.ACK, WORKLOAD, PurchasePolicy.SPOT, set(), "ACK"),
        (Target.ACK, WORKLOAD, PurchasePolicy.SPOT_THEN_ON_DEMAND, {PurchaseOption.ON_DEMAND}, ""),
        (Target.ACS, WORKLOAD, PurchasePolicy.SPOT, {PurchaseOption.SPOT}, ""),
        (
            Target.ACS,
            WORKLOAD,
            PurchasePolicy.SPOT_THEN_ON_DEMAND,
            {PurchaseOption.SPOT, PurchaseOption.ON_DEMAND},
            "",
        ),
        (Target.ACS, RESERVED, PurchasePolicy.SPOT, set(), "compute class gpu-hpn of ACS"),
        (Target.ACS, RESERVED, PurchasePolicy.ON_DEMAND, {PurchaseOption.ON_DEMAND}, ""),
    ],
)
def test_spot_is_best_effort_of_acs_alone(target, workload, policy, options, refused):
    definition = define(target, GpuRequirement(), kubernetes=workload, purchase=policy)

    assert purchase_options(definition) == options
    text = f"{refused} has no spot capacity: set `purchase` to on-demand"
    assert problems_of(definition) == ({"purchase": text} if refused else {})


@pytest.mark.parametrize("target", [Target.ACK, Target.ACS])
@pytest.mark.parametrize("policy", [PurchasePolicy.RESERVED, PurchasePolicy.RESERVED_THEN_ON_DEMAND])
def test_reservations_of_ec2_are_for_ecs_alone(target, policy):
    definition = define(target, GpuRequirement(), purchase=policy)

    assert problems_of(definition)["purchase"] == "reservations are those of EC2: set `purchase` to on-demand"


def test_without_a_workload_only_the_target_limits_how_it_is_bought():
    definition = define(Target.ACS, kubernetes=None)

    assert purchase_options(definition) == definition.purchase.options


def test_each_target_asks_in_its_own_words():
    on_ack = ask_gpus(Target.ACK, GpuRequirement(), WORKLOAD, PurchaseOption.ON_DEMAND)
    on_acs = ask_gpus(Target.ACS, GpuRequirement(), WORKLOAD, PurchaseOption.SPOT)

    assert (on_ack.labels, on_ack.node_selector) == ({}, {"aliyun.accelerator/nvidia_name": "T4"})
    assert on_acs.labels["alibabacloud.com/compute-qos"] == "best-effort"


def test_the_owner_is_told_what_has_no_effect_and_what_is_rounded():
    definition = define(gpu=GpuRequirement(memory_mib=1500), disk_gib=200, max_price_usd_per_hour=4.0)
    chosen = replace(definition.accelerator, instance_types=("g5.*",))

    notices = find_kubernetes_notices(replace(definition, accelerator=chosen))

    assert "rounded up to 2 GiB" in notices[0]
    assert notices[-3:] == (
        "`accelerator.instance_types` has no effect on ack: it is about EC2",
        "`disk` has no effect on ack: it is about EC2; here it is `kubernetes.disk`",
        "`max_price_per_hour` has no effect on ack: it is about EC2",
    )


def test_nothing_is_told_of_what_cannot_run():
    assert find_kubernetes_notices(define(kubernetes=None)) == ()
    assert find_kubernetes_notices(define(gpu=None)) == ()


def test_checkpoints_are_in_s3_or_in_oss():
    assert find_problems(define(checkpoint_uri="oss://acme/train/")) == ()
    assert find_problems(define(checkpoint_uri="s3://acme/train/")) == ()
    assert find_problems(define(checkpoint_uri=None)) == ()


def test_nodes_tell_whether_the_pod_of_a_job_fits():
    labels = {ack.SHARING: "core_mem", ack.GPU_NAME: "T4"}
    shared = GpuNode("shared", labels, {ack.GPU_MEMORY: 60, ack.GPU_COMPUTE: 400})
    reserved = GpuNode("reserved", {"alibabacloud.com/gpu-model-series": "T4"}, {"nvidia.com/gpu": 8})
    on_hpn = define(Target.ACS, GpuRequirement(), kubernetes=replace(WORKLOAD, compute_class=ComputeClass.GPU_HPN))

    assert [(each.node, each.fits) for each in predict_job_fit(define(), [reserved, shared])] == [
        ("shared", True),
        ("reserved", False),
    ]
    assert [each.fits for each in predict_job_fit(on_hpn, [reserved])] == [True]


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param(define(Target.ACS, GpuRequirement()), id="class gpu of ACS"),
        pytest.param(define(Target.ECS), id="ECS"),
        pytest.param(define(kubernetes=None), id="nothing to run"),
        pytest.param(define(gpu=None), id="no GPU"),
        pytest.param(define(gpu=GpuRequirement(memory_mib=2048, compute_percent=33)), id="a problem"),
    ],
)
def test_of_some_jobs_no_node_can_tell(definition):
    assert predict_job_fit(definition, [GpuNode("n1", {}, {"nvidia.com/gpu": 8})]) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "it has the taint gpu=a10:NoSchedule, which `kubernetes.tolerations` may name"),
        ({"tolerations": (Toleration("gpu"),)}, ""),
        ({"tolerations": (Toleration(effect=TaintEffect.NO_SCHEDULE),)}, ""),
        ({"tolerations": (Toleration("gpu", "t4"), Toleration("team"))}, "it has the taint gpu=a10:NoSchedule, which"),
        ({"tolerations": (Toleration("gpu", effect=TaintEffect.NO_EXECUTE),)}, "it has the taint gpu=a10:NoSchedule"),
        (
            {"tolerations": (Toleration("gpu"),), "node_selector": {"pool": "b"}},
            "the label pool=b is asked for, it has",
        ),
        ({"tolerations": (Toleration("gpu"),), "node_selector": {"pool": "a"}}, ""),
    ],
)
def test_a_pod_fits_on_nodes_that_it_selects_and_whose_taints_it_tolerates(fields, reason):
    labels = {"aliyun.accelerator/nvidia_name": "T4", "pool": "a"}
    node = GpuNode("n1", labels, {"nvidia.com/gpu": 8}, taints=(NodeTaint("gpu", "a10", "NoSchedule"),))

    (fit,) = predict_job_fit(define(gpu=GpuRequirement(), kubernetes=replace(WORKLOAD, **fields)), [node])

    assert fit.reason.startswith(reason)
    assert fit.fits is not bool(reason)
