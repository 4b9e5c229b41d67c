"""Valid definition files."""

from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_instance_type
from fakes.definitions import EXAMPLE
from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions, problem_mark
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    Isolation,
    MeasuredOn,
    NeuronPurpose,
    NeuronRequirement,
    PurchasePolicy,
)
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    InputRule,
    JobDefinition,
    S3Trigger,
    SnsTrigger,
)
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
)
from relaunch.core.definitions.targets import Target

CATALOGUE = {
    "g5.xlarge": make_instance_type(),
    "trn1.2xlarge": make_instance_type(
        "trn1.2xlarge", accelerator_model="Trainium", gpu_count=0, logical_gpu_count=0, neuron_devices=1
    ),
}


def parse_one(body: str) -> JobDefinition:
    """Parse one job `a` of these keys, beside a task definition."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (definition,) = parse_definitions(f"jobs:\n  a:\n    task_definition: trainer\n{lines}\n", "f.yaml", CATALOGUE)
    return definition


GPU = "accelerator: {gpu: {}}"


def test_the_example_of_the_design_becomes_a_definition():
    assert parse_definitions(EXAMPLE, "relaunch.yaml", CATALOGUE) == [
        JobDefinition(
            name="resnet",
            task_definition="trainer",
            container="main",
            triggers=(
                GithubTrigger("acme/vision", "push", branches=("main",), paths=("train/**",)),
                GithubTrigger("acme/vision", "workflow_dispatch"),
                ImageTrigger("trainer", "{sha}"),
                S3Trigger("acme-datasets", "images/", ".manifest"),
            ),
            inputs={"learning_rate": InputRule("[0-9.e-]+", "0.1")},
            accelerator=AcceleratorRequirement(gpu=GpuRequirement(1, 16 * 1024)),
            disk_gib=200,
            purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
            checkpoint_uri="s3://acme-checkpoints/resnet/",
            estimated_duration=timedelta(hours=20),
            estimated_on=MeasuredOn("A10G"),
            deadline=timedelta(hours=36),
            max_runtime=timedelta(hours=48),
            max_running_jobs=5,
            max_failures=2,
            max_price_usd_per_hour=4.0,
        )
    ]


def test_the_least_definition_has_the_defaults_of_the_core():
    accelerator = AcceleratorRequirement(gpu=GpuRequirement())

    assert parse_one(GPU) == JobDefinition("a", "trainer", accelerator)


def test_definitions_keep_the_order_of_the_file():
    text = "jobs:\n" + "".join(f"  {name}: {{task_definition: t, {GPU}}}\n" for name in ("b", "a", "c"))

    assert [definition.name for definition in parse_definitions(text, "f", CATALOGUE)] == ["b", "a", "c"]


KUBERNETES = """
jobs:
  train:
    task_definition: trainer
    target: ack
    kubernetes:
      image: registry.cn-beijing.aliyuncs.com/ai-samples/gpushare-sample:benchmark-tensorflow-2.2.3
      working_directory: /root
      vcpus: 0.5
      memory: 16GiB
      service_account: train
      labels: {app: cuda-sample, example.com/team: vision}
      region: cn-beijing
      gpu_model: Tesla-V100-SXM2-16GB
      gpu_sharing: core_mem
      gpu_placement: binpack
      compute_class: gpu-hpn
      gpu_driver: "535.161.08"
      strict: true
      card_memory: 15GiB
      service_account_token: true
      pod_security: restricted
      run_as_user: 1000
      queue: gpus
    accelerator: {gpu: {memory: 2GiB, compute_percent: 30}}
    checkpoint: s3://acme-checkpoints/train
"""


def test_a_definition_for_kubernetes_is_read_with_all_its_keys():
    (definition,) = parse_definitions(KUBERNETES, "f.yaml", CATALOGUE)

    assert (definition.target, definition.task_definition) == (Target.ACK, "trainer")
    assert definition.checkpoint_uri == "s3://acme-checkpoints/train/"
    assert definition.kubernetes == KubernetesWorkload(
        image="registry.cn-beijing.aliyuncs.com/ai-samples/gpushare-sample:benchmark-tensorflow-2.2.3",
        working_directory="/root",
        vcpus=0.5,
        memory_mib=16 * 1024,
        service_account="train",
        labels={"app": "cuda-sample", "example.com/team": "vision"},
        region="cn-beijing",
        gpu_model="Tesla-V100-SXM2-16GB",
        gpu_sharing=GpuSharing.CORE_MEM,
        gpu_placement=GpuPlacement.BINPACK,
        compute_class=ComputeClass.GPU_HPN,
        gpu_driver="535.161.08",
        card_memory_mib=15 * 1024,
        strict=True,
        service_account_token=True,
        pod_security=PodSecurity.RESTRICTED,
        run_as_user=1000,
        queue="gpus",
    )
    assert definition.kubernetes.pod_security is PodSecurity.RESTRICTED


@pytest.mark.parametrize("target", ["ecs", "ack"])
def test_the_target_alone_switches_a_definition_that_has_both(target):
    text = KUBERNETES.replace("target: ack", f"target: {target}")

    (definition,) = parse_definitions(text, "f.yaml", CATALOGUE)

    assert definition.target == target
    assert definition.kubernetes is not None


def test_a_definition_for_kubernetes_alone_needs_no_task_definition():
    text = "jobs: {a: {target: ack, kubernetes: {image: trainer}, accelerator: {gpu: {}}}}"

    (definition,) = parse_definitions(text, "f.yaml", CATALOGUE)

    assert (definition.task_definition, definition.kubernetes) == ("", KubernetesWorkload("trainer"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("{neuron: {devices: 2}}", {"neuron": NeuronRequirement(devices=2)}, id="devices"),
        pytest.param("{neuron: {cores: 4}}", {"neuron": NeuronRequirement(cores=4)}, id="cores"),
        pytest.param(
            "{neuron: {devices: 1, models: [Trainium], purpose: inference}}",
            {"neuron": NeuronRequirement(1, models=("Trainium",), purpose=NeuronPurpose.INFERENCE)},
            id="models",
        ),
        pytest.param("{instance_types: [g5.xlarge]}", {"instance_types": ("g5.xlarge",)}, id="types"),
        pytest.param(
            "{gpu: {models: [A10G], memory: 22888MiB}, instance_types: [g5.xlarge]}",
            {"gpu": GpuRequirement(memory_mib=22888, models=("A10G",)), "instance_types": ("g5.xlarge",)},
            id="gpu-narrowed-by-types",
        ),
    ],
)
def test_accelerators_are_read(written, expected):
    assert parse_one(f"accelerator: {written}").accelerator == AcceleratorRequirement(**expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("memory: 2GiB, compute_percent: 30", GpuRequirement(memory_mib=2048, compute_percent=30)),
        (
            "count: 1, memory: 2.3GiB, compute_percent: 100, isolation: required",
            GpuRequirement(memory_mib=2356, compute_percent=100, isolation=Isolation.REQUIRED),
        ),
        (
            "compute_capability: 8.6, interconnect: nvlink",
            GpuRequirement(compute_capability=(8, 6), interconnect=Interconnect.NVLINK),
        ),
        (
            "compute_capability: bf16, interconnect: nvlink",
            GpuRequirement(compute_capability=(8, 0), interconnect=Interconnect.NVLINK),
        ),
        ('compute_capability: "12.0"', GpuRequirement(compute_capability=(12, 0))),
    ],
    ids=["share", "isolated share, rounded up to whole MiB", "NVLink", "bf16 and NVLink", "compute capability as text"],
)
def test_what_is_asked_of_gpus_is_read(written, expected):
    assert parse_one(f"accelerator: {{gpu: {{{written}}}}}").accelerator == AcceleratorRequirement(gpu=expected)


@pytest.mark.parametrize(
    ("event", "filters", "expected"),
    [
        (
            "push",
            ["tags: ['v*']", "wait_for_image: {repository: team/trainer}"],
            {"tags": ("v*",), "wait_for_image": ImageWait("team/trainer")},
        ),
        (
            "push",
            ["wait_for_image: {repository: t, tag: 'a-{short_sha}', timeout: 1h30m}"],
            {"wait_for_image": ImageWait("t", "a-{short_sha}", timedelta(minutes=90))},
        ),
        ("repository_dispatch", ["types: [train]"], {"types": ("train",)}),
        ("workflow_dispatch", ["workflows: [train.yml]"], {"workflows": ("train.yml",)}),
        (
            "workflow_run",
            ["workflows: [build]", "branches: ['**', '!old']", "run_events: [pull_request]"],
            {"workflows": ("build",), "branches": ("**", "!old"), "run_events": ("pull_request",)},
        ),
        ("release", [], {}),
        ("package", ["packages: [trainer]"], {"packages": ("trainer",)}),
    ],
    ids=["image", "tag of image", "repository_dispatch", "workflow_dispatch", "workflow_run", "release", "package"],
)
def test_every_github_event_takes_its_own_filters(event, filters, expected):
    written = ", ".join(["repository: acme/x", f"event: {event}", *filters])

    assert parse_one(f"on: [github: {{{written}}}]\n{GPU}").triggers == (GithubTrigger("acme/x", event, **expected),)


def test_a_pattern_is_kept_in_one_form_with_what_of_the_event_becomes_inputs():
    pattern = "{source: [com.acme], detail: {rows: [{numeric: ['>', 5]}], state: [ok, true]}}"
    written = f"eventbridge: {{pattern: {pattern}, inputs: {{rows: detail.rows}}}}"
    text = '{"detail":{"rows":[{"numeric":[">",5]}],"state":["ok",true]},"source":["com.acme"]}'

    definition = parse_one(f"on: [{written}]\ninputs: {{rows: {{pattern: '[0-9]+'}}}}\n{GPU}")

    assert definition.triggers == (EventBridgeTrigger(text, (("rows", "detail.rows"),)),)


def test_a_topic_is_kept_with_what_of_the_message_becomes_inputs():
    topic = "arn:aws:sns:eu-central-1:111122223333:features"
    written = f"sns: {{topic: '{topic}', inputs: {{rows: message.rows}}}}"

    definition = parse_one(f"on: [{written}]\ninputs: {{rows: {{pattern: '[0-9]+'}}}}\n{GPU}")

    assert definition.triggers == (SnsTrigger(topic, (("rows", "message.rows"),)),)


def test_on_is_a_key_and_not_true():
    assert parse_one(f"on: []\n{GPU}").triggers == ()


def test_a_checkpoint_location_gets_its_slash():
    assert parse_one(f"checkpoint: s3://acme/resnet\n{GPU}").checkpoint_uri == "s3://acme/resnet/"


def test_command_and_environment_are_kept_as_they_are():
    definition = parse_one(f'command: [python, -m, train, "--x={{y}}"]\nenvironment: {{EPOCHS: "10"}}\n{GPU}')

    assert definition.command == ("python", "-m", "train", "--x={y}")
    assert definition.environment == {"EPOCHS": "10"}


def test_anchors_may_repeat_a_value():
    text = f"jobs:\n  a: {{task_definition: t, on: &on [image: {{repository: t}}], {GPU}}}\n"
    text += f"  b: {{task_definition: t, on: *on, {GPU}}}\n"

    first, second = parse_definitions(text, "f", CATALOGUE)

    assert first.triggers == second.triggers == (ImageTrigger("t"),)


def test_a_byte_order_mark_is_no_key():
    assert parse_definitions(f"\ufeffjobs: {{a: {{task_definition: t, {GPU}}}}}", "f", CATALOGUE)


def test_a_registered_definition_of_the_same_name_is_replaced_and_overlaps_nothing():
    old = make_definition(name="a", triggers=(S3Trigger("acme", "a/"),), checkpoint_uri=None)
    text = f"jobs: {{a: {{task_definition: t, checkpoint: 's3://acme/a/', {GPU}}}}}"

    assert parse_definitions(text, "f", CATALOGUE, [old])[0].checkpoint_uri == "s3://acme/a/"


def test_a_new_checkpoint_under_a_registered_trigger_is_refused():
    watcher = make_definition(name="watcher", triggers=(S3Trigger("acme", ""),), checkpoint_uri=None)
    text = f"jobs:\n  a:\n    task_definition: t\n    checkpoint: s3://acme/a/\n    {GPU}\n"

    with pytest.raises(DefinitionFileError) as caught:
        parse_definitions(text, "f", CATALOGUE, [watcher])

    assert str(caught.value) == (
        "f:4:17: jobs.a.checkpoint: s3://acme/a/ overlaps the trigger on s3://acme/ of the registered definition "
        "`watcher`: every checkpoint would start another job"
    )


def test_a_new_trigger_over_a_registered_checkpoint_is_refused():
    writer = make_definition(name="writer", triggers=(), checkpoint_uri="s3://acme/w/")
    text = f"jobs:\n  a:\n    task_definition: t\n    on: [s3: {{bucket: acme, prefix: w/sub/}}]\n    {GPU}\n"

    with pytest.raises(DefinitionFileError, match=r"f:4:37: jobs.a.on\[0\].s3.prefix: .* the checkpoints of `writer`"):
        parse_definitions(text, "f", CATALOGUE, [writer])


def test_an_overlap_between_registered_definitions_is_no_fault_of_this_file():
    old = make_definition(name="old", triggers=(S3Trigger("x"),), checkpoint_uri="s3://x/y/")

    assert len(parse_definitions(f"jobs: {{a: {{task_definition: t, {GPU}}}}}", "f", CATALOGUE, [old])) == 1


def test_a_problem_of_a_definition_is_found_again_at_the_key_that_it_names():
    number = next(at for at, line in enumerate(EXAMPLE.splitlines(), 1) if line.startswith("    checkpoint:"))

    assert problem_mark(EXAMPLE, "resnet", "no bucket, which `checkpoint` names") == (number, 5)
    assert problem_mark(EXAMPLE, "resnet", "nothing satisfies `this`") == (3, 3)
    assert problem_mark(EXAMPLE, "other", "") == (1, 1)


def test_several_nodes_are_read():
    assert parse_one("accelerator: {gpu: {count: 8}}\nnodes: 4").nodes == 4
    assert parse_one("accelerator: {gpu: {count: 8}}").nodes == 1


@pytest.mark.parametrize("purchase", ["reserved", "reserved-then-spot", "reserved-then-spot-then-on-demand"])
def test_several_nodes_may_be_in_a_reservation(purchase):
    definition = parse_one(f"accelerator: {{gpu: {{count: 8}}}}\nnodes: 4\npurchase: {purchase}")

    assert (definition.nodes, definition.purchase.value) == (4, purchase)
