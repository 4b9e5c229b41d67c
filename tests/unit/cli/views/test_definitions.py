"""Accelerators and triggers in a few text."""

from datetime import timedelta

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    Interconnect,
    NeuronPurpose,
    NeuronRequirement,
)
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
)
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch_cli.views.definitions import describe_accelerator, describe_gpus, describe_runnable, describe_trigger
from relaunch_cli.views.json_output.definitions import trigger_json

WAIT = ImageWait("trainer", "{sha}", timedelta(minutes=5))


@pytest.mark.parametrize(
    ("accelerator", "text"),
    [
        (AcceleratorRequirement(gpu=GpuRequirement(2, 24576, ("A10G", "L4"))), "2x GPU A10G/L4 24 GiB"),
        (
            AcceleratorRequirement(gpu=GpuRequirement(8, compute_capability=(8, 0), interconnect=Interconnect.EFA)),
            "8x GPU compute capability 8.0 efa",
        ),
        (AcceleratorRequirement(neuron=NeuronRequirement(devices=2)), "2 Neuron devices"),
        (AcceleratorRequirement(neuron=NeuronRequirement(cores=4)), "4 Neuron cores"),
        (
            AcceleratorRequirement(
                neuron=NeuronRequirement(1, models=("Inferentia2",), purpose=NeuronPurpose.INFERENCE)
            ),
            "1 Neuron devices Inferentia2 for inference",
        ),
        (AcceleratorRequirement(gpu=GpuRequirement(), instance_types=("g5.xlarge",)), "1x GPU; g5.xlarge"),
    ],
)
def test_accelerators_are_described_in_short(accelerator, text):
    assert describe_accelerator(accelerator) == text


@pytest.mark.parametrize(("target", "text"), [(Target.ECS, "trainer"), (Target.ACK, "ack: registry.example.com/t:v1")])
def test_what_a_definition_runs_is_that_of_its_target(target, text):
    workload = KubernetesWorkload("registry.example.com/t:v1", gpu_model="example-model", gpu_driver="535.161.08")
    definition = make_definition(target=target, kubernetes=workload)

    assert describe_runnable(definition) == text
    assert describe_gpus(definition).endswith(", gpu_model example-model, gpu_driver 535.161.08")


@pytest.mark.parametrize(
    ("trigger", "text", "document"),
    [
        (
            GithubTrigger("a/b", "workflow_run", workflows=("build",), run_events=("merge_group", "issue_comment")),
            "workflow_run a/b [build] [merge_group issue_comment]",
            {
                "github": {
                    "repository": "a/b",
                    "event": "workflow_run",
                    "workflows": ["build"],
                    "run_events": ["merge_group", "issue_comment"],
                }
            },
        ),
        (
            GithubTrigger("a/b", "push", branches=("main", "v*"), paths=("x/**",), wait_for_image=WAIT),
            "push a/b [main v*] [x/**], then image trainer",
            {
                "github": {
                    "repository": "a/b",
                    "event": "push",
                    "branches": ["main", "v*"],
                    "paths": ["x/**"],
                    "wait_for_image": {"repository": "trainer", "tag": "{sha}", "timeout_seconds": 300},
                }
            },
        ),
        (ImageTrigger("t", "{sha}"), "image t:{sha}", {"image": {"repository": "t", "tag": "{sha}"}}),
        (S3Trigger("b", "p/", ".x"), "s3://b/p/*.x", {"s3": {"bucket": "b", "prefix": "p/", "suffix": ".x"}}),
        (
            ScheduleTrigger("rate(1 hour)", catches_up=True),
            "rate(1 hour) UTC, catching up",
            {"schedule": {"expression": "rate(1 hour)", "time_zone": "UTC", "missed": "catch_up"}},
        ),
        (
            EventBridgeTrigger('{"source":["com.acme","relaunch.b"]}', (("rows", "detail.rows"),)),
            "events of com.acme, relaunch.b",
            {"eventbridge": {"pattern": {"source": ["com.acme", "relaunch.b"]}, "inputs": {"rows": "detail.rows"}}},
        ),
        (
            SnsTrigger("arn:aws:sns:eu-central-1:111122223333:features", (("rows", "message.rows"),)),
            "messages on arn:aws:sns:eu-central-1:111122223333:features",
            {"sns": {"topic": "arn:aws:sns:eu-central-1:111122223333:features", "inputs": {"rows": "message.rows"}}},
        ),
    ],
)
def test_triggers_are_described_in_short_and_as_json(trigger, text, document):
    assert describe_trigger(trigger) == text
    assert trigger_json(trigger) == document
