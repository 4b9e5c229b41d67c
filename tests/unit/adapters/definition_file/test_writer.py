"""Definitions written as a file are read as the same definitions."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_definition
from fakes.definitions import EXAMPLE
from fakes.repository import REPOSITORY
from relaunch.adapters.definition_file.parser import parse_definitions
from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
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
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    InputRule,
    JobDefinition,
    RetryRules,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
)
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuPlacement,
    GpuSharing,
    KubernetesWorkload,
    PodSecurity,
)
from relaunch.core.definitions.notice_routes import NoticeKind, NoticeRoute
from relaunch.core.definitions.targets import Target
from relaunch.core.market.policies import PolicyName

CATALOGUE = load_catalogue()
LEAST = JobDefinition("a", "trainer", AcceleratorRequirement(gpu=GpuRequirement()))
EVERY_KEY = JobDefinition(
    name="all",
    task_definition="trainer",
    accelerator=AcceleratorRequirement(
        gpu=GpuRequirement(4, 24_000, ("A10G", "L4"), compute_capability=(8, 6), interconnect=Interconnect.NVLINK),
        instance_types=("g5.12xlarge",),
    ),
    container="main",
    triggers=(
        GithubTrigger(
            "acme/vision", "push", ("main", "!x"), ("v*",), ("train/**",),
            wait_for_image=ImageWait("trainer", "{short_sha}", timedelta(minutes=5)),
        ),
        GithubTrigger("acme/vision", "workflow_run", ("main",), workflows=("CI",), run_events=("pull_request",)),
        GithubTrigger("acme/vision", "repository_dispatch", types=("train",)),
        GithubTrigger("acme/vision", "package", packages=("trainer",)),
        ImageTrigger("trainer", "v*"),
        S3Trigger("acme", "in/", ".csv"),
        ScheduleTrigger("cron(0 6 ? * MON-FRI *)", "Europe/Berlin", catches_up=True),
        ScheduleTrigger("rate(2 days)"),
        EventBridgeTrigger('{"detail":{"rows":[{"prefix":"x"}]},"source":["com.acme"]}', (("needed", "detail.rows"),)),
        SnsTrigger("arn:aws:sns:eu-central-1:111122223333:features", (("needed", "attributes.rows"), ("name", "text"))),
        SnsTrigger("arn:aws:sns:eu-central-1:111122223333:features-b"),
    ),
    inputs={"rate": InputRule("[0-9.]+", "0.1"), "name": InputRule(".*", ""), "needed": InputRule("x")},
    command=("sh", "-c", "set -e\nexec train\n"),
    environment={"A": "yes", "on": "on"},
    disk_gib=200,
    purchase=PurchasePolicy.RESERVED_THEN_SPOT,
    checkpoint_uri="s3://acme-checkpoints/all/",
    estimated_duration=timedelta(hours=1, seconds=1),
    total_steps=9_000,
    deadline=timedelta(days=2),
    policy=PolicyName.GREEDY,
    padding=0.25,
    max_runtime=timedelta(minutes=90),
    max_running_jobs=1,
    max_waiting_jobs=2,
    callers=("arn:aws:iam::111122223333:role/ci/vision-*", "invoke"),
    links={"W&B": "https://wandb.ai/acme/runs/{job_id}"},
    notices=(NoticeRoute("team-ml", (NoticeKind.FINISHED, NoticeKind.FAILED)), NoticeRoute("pager")),
    concurrency=Concurrency("{branch} {inputs.name}", cancel_in_progress=True),
    max_failures=0,
    retry=RetryRules(0, (75,), (2, 3), (79,)),
    max_price_usd_per_hour=0.75,
)  # fmt: skip
ON_KUBERNETES = JobDefinition(
    "k8s",
    "",
    AcceleratorRequirement(gpu=GpuRequirement(1, 2048, compute_percent=30)),
    command=("python", "-m", "train"),
    target=Target.ACK,
    concurrency=Concurrency("gpu"),
    kubernetes=KubernetesWorkload(
        "registry.example.com/trainer:1", "/opt", 0.5, 512, "trainer", {"app": "vision"}, "cn-beijing", "Tesla-T4",
        GpuSharing.CORE_MEM, GpuPlacement.SPREAD,
    ),
)  # fmt: skip
ON_ACS = replace(
    ON_KUBERNETES,
    accelerator=AcceleratorRequirement(gpu=GpuRequirement()),
    target=Target.ACS,
    kubernetes=KubernetesWorkload(
        "registry.example.com/trainer:1", vcpus=4.0, memory_mib=8192, gpu_model="T4", compute_class=ComputeClass.GPU,
        gpu_driver="535.161.08", card_memory_mib=16_384, strict=True, service_account="trainer",
        service_account_token=True, pod_security=PodSecurity.RESTRICTED, run_as_user=1000, queue="gpus",
    ),
)  # fmt: skip
DEFINITIONS = {
    "least": LEAST,
    "names of receivers": replace(LEAST, notices=(NoticeRoute("team-ml"), NoticeRoute("pager"))),
    "every key": EVERY_KEY,
    "measured on a model": replace(EVERY_KEY, estimated_on=MeasuredOn("A10G")),
    "measured on several": replace(EVERY_KEY, estimated_on=MeasuredOn("Trainium2", 4)),
    "patience": replace(EVERY_KEY, deadline=None, patience=timedelta(minutes=30)),
    "partition of a GPU": replace(
        LEAST,
        accelerator=AcceleratorRequirement(
            gpu=GpuRequirement(1, 2048, compute_percent=25, isolation=Isolation.REQUIRED)
        ),
    ),
    "neuron": replace(
        LEAST,
        accelerator=AcceleratorRequirement(
            neuron=NeuronRequirement(cores=2, models=("Inferentia2",), purpose=NeuronPurpose.INFERENCE)
        ),
    ),
    "instance types": replace(LEAST, accelerator=AcceleratorRequirement(instance_types=("g5.xlarge",))),
    "kubernetes": ON_KUBERNETES,
    "acs": ON_ACS,
}
AWKWARD = [
    "yes",
    "on",
    "no",
    "~",
    "null",
    "1:30",
    "0x10",
    "1e3",
    "2026-01-01",
    "=",
    "<<",
    "",
    " a ",
    "a: b",
    "# x",
    "-",
]
TEXTS = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))


def read(text: str) -> list[JobDefinition]:
    return parse_definitions(text, "relaunch.yaml", CATALOGUE)


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_what_is_written_is_read_as_the_same(definition):
    assert read(write_definitions([definition])) == [definition]


@pytest.mark.parametrize("file", [*sorted((REPOSITORY / "examples").glob("*.yaml"))], ids=lambda file: file.name)
def test_the_examples_are_the_same_again(file: Path):
    definitions = read(file.read_text())

    assert read(write_definitions(definitions)) == definitions


def test_the_text_is_short_and_in_the_words_of_a_file():
    (definition,) = read(EXAMPLE)

    assert write_definitions([definition]).splitlines()[:9] == [
        "jobs:",
        "  resnet:",
        "    task_definition: trainer",
        "    container: main",
        "    on:",
        "    - github:",
        "        repository: acme/vision",
        "        event: push",
        "        branches:",
    ]
    assert "max_running_jobs" not in write_definitions([definition])


def test_a_command_of_several_lines_is_a_block():
    assert "    - |\n      set -e\n      exec train\n" in write_definitions([EVERY_KEY])


def test_what_is_equal_is_not_written_as_a_reference():
    definition = make_definition(environment={}, command=("a", "a"), triggers=(ImageTrigger("x"), ImageTrigger("x")))

    assert "&" not in write_definitions([definition, replace(definition, name="other")])


@given(st.lists(TEXTS, min_size=1, max_size=3), st.dictionaries(st.sampled_from(["A", "y", "_"]), TEXTS, max_size=2))
def test_any_text_comes_back(command, environment):
    definition = replace(LEAST, command=tuple(command), environment=environment)

    text = write_definitions([definition])

    assert text.isascii()
    assert read(text) == [definition]
