from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchasePolicy,
)
from relaunch.core.launches.capabilities import Capabilities, missing_capability

ALL = Capabilities(
    has_spot=True,
    shares_gpus=True,
    has_neuron_devices=True,
    warns_of_interruptions=True,
    max_stop_timeout_seconds=120,
    takes_machines=True,
)
SHARE = make_definition(
    accelerator=AcceleratorRequirement(gpu=GpuRequirement(memory_mib=2_048, compute_percent=25)),
)
NEURON = make_definition(accelerator=AcceleratorRequirement(neuron=NeuronRequirement(devices=1)))
SPOT = make_definition(purchase=PurchasePolicy.SPOT)
EITHER = make_definition(purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND)
REVISION = make_revision(containers=(make_container(gpu_count=0),))


@pytest.mark.parametrize("definition", [SHARE, NEURON, SPOT, EITHER])
def test_a_target_that_can_do_everything_runs_every_job(definition) -> None:
    assert missing_capability(definition, REVISION, ALL) == ""


@pytest.mark.parametrize(
    ("definition", "lacking", "words"),
    [
        pytest.param(SHARE, {"shares_gpus": False}, "leave out `compute_percent`", id="a share of a GPU"),
        pytest.param(NEURON, {"has_neuron_devices": False}, "ask for `gpu`", id="Neuron devices"),
        pytest.param(SPOT, {"has_spot": False}, "set `purchase` to `on-demand`", id="spot only"),
    ],
)
def test_what_a_target_lacks_is_said_with_what_to_do(definition, lacking, words) -> None:
    assert words in missing_capability(definition, REVISION, replace(ALL, **lacking))


@pytest.mark.parametrize("definition", [make_definition(purchase=PurchasePolicy.ON_DEMAND), EITHER])
def test_a_job_that_needs_none_of_it_runs_on_the_plainest_target(definition) -> None:
    plain = Capabilities(
        has_spot=False,
        shares_gpus=False,
        has_neuron_devices=False,
        warns_of_interruptions=False,
        max_stop_timeout_seconds=30,
        takes_machines=False,
    )

    assert missing_capability(definition, REVISION, plain) == ""
