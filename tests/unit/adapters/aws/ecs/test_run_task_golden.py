"""The requests of RunTask for placements by capacity providers, as they were first sent.

A repeated request must be identical to the first, also if another version of Relaunch sent that: ECS would answer
another one with ConflictException.
"""

import json
from pathlib import Path

import pytest

from fakes.builders import make_attempt, make_definition, make_job, make_placement, make_revision
from relaunch.adapters.aws.ecs.run_task import build_run_task
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, NeuronRequirement
from relaunch.core.jobs.job import FailedStart, Job
from relaunch.core.launches.launch_plan import plan_launch
from relaunch.core.offerings.offering import OfferingKey

RECORDED = json.loads(Path(__file__).with_name("run_task_golden.json").read_text("utf-8"))
DERIVED = "arn:aws:ecs:us-east-1:111122223333:task-definition/relaunch-trainer:3"


def launching(number: int = 1, *, placement: int = 1, **fields: object) -> Job:
    return make_job(attempt=make_attempt(number, placement=make_placement(placement, **fields)))


def having(job: Job, accelerator: AcceleratorRequirement, **fields: object) -> Job:
    definition = make_definition(accelerator=accelerator, **fields)
    return make_job(attempt=job.attempt, definition=definition)


SHARE = AcceleratorRequirement(gpu=GpuRequirement(memory_mib=2_048, compute_percent=25))
NEURON = AcceleratorRequirement(neuron=NeuronRequirement(devices=1))
G5 = OfferingKey("g5.xlarge", "us-east-1a", make_placement().offering.purchase)
JOBS = {
    "first placement": launching(),
    "placement of a zone": launching(offering=G5),
    "third placement of the second attempt": launching(2, placement=3, resume_uri="s3://acme/attempt-1/step-9/"),
    "four GPUs": having(launching(), AcceleratorRequirement(gpu=GpuRequirement(count=4))),
    "share of a GPU": having(launching(), SHARE),
    "part of a GPU": having(launching(gpu_partition_size=0.25), SHARE),
    "GPUs of the revision": having(launching(), AcceleratorRequirement(instance_types=("g5.xlarge",))),
    "Neuron device": having(launching(revision_arn=DERIVED, neuron_devices=(2,)), NEURON),
    "all Neuron devices": having(launching(takes_all_neuron=True, is_managed=True), NEURON),
    "without instances it did not start on": make_job(
        attempt=make_attempt(), failed_starts=(FailedStart("i-0bbb", ""), FailedStart("i-0aaa", ""))
    ),
    "network mode awsvpc": make_job(attempt=make_attempt(), revision=make_revision(network_mode="awsvpc")),
    "no command and no checkpoints": make_job(
        attempt=make_attempt(), definition=make_definition(command=(), checkpoint_uri=None)
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_placement_by_a_capacity_provider_is_sent_as_it_always_was(name: str) -> None:
    sent = build_run_task(plan_launch(JOBS[name]), "relaunch", ("subnet-1", "subnet-2"), ("sg-1",))

    assert json.dumps(sent, indent=2) == json.dumps(RECORDED[name], indent=2)


def test_every_recorded_request_is_sent() -> None:
    assert RECORDED.keys() == JOBS.keys()
