import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_launch_request
from relaunch.adapters.aws.ecs.container_overrides import build_overrides, build_requirement, check_accelerators
from relaunch.adapters.aws.ecs.run_task_limits import check_limits
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.launches.launch import (
    AllNeuronDevices,
    GpuPartition,
    GpuShare,
    NeuronDevices,
    WholeGpus,
    choose_gpus,
)


def test_overrides_carry_command_environment_and_gpus() -> None:
    request = make_launch_request(
        environment={"B": "2", "A": "1"}, command=("python", "train.py"), accelerators=WholeGpus(4)
    )

    assert build_overrides(request) == {
        "containerOverrides": [
            {
                "name": "main",
                "command": ["python", "train.py"],
                "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resourceRequirements": [{"type": "GPU", "value": "4"}],
            }
        ]
    }


@pytest.mark.parametrize("accelerators", [None, NeuronDevices((2,))])
def test_what_is_not_overridden_is_left_to_the_revision(accelerators) -> None:
    request = make_launch_request(environment={}, command=(), accelerators=accelerators)

    assert build_overrides(request) == {"containerOverrides": [{"name": "main", "environment": []}]}
    assert check_limits(request) == ()


def test_order_of_the_environment_does_not_change_the_request() -> None:
    one = build_overrides(make_launch_request(environment={"A": "1", "B": "2"}))
    other = build_overrides(make_launch_request(environment={"B": "2", "A": "1"}))

    assert json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize(
    ("override", "requirement"),
    [
        pytest.param(WholeGpus(4), {"type": "GPU", "value": "4"}, id="whole GPUs"),
        pytest.param(GpuPartition(0.25), {"type": "GPU", "value": "0.25"}, id="a quarter"),
        pytest.param(GpuPartition(0.125), {"type": "GPU", "value": "0.125"}, id="an eighth"),
        pytest.param(
            GpuShare(2_048, 30),
            {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 2_048, "maxComputePercent": 30}}},
            id="a share",
        ),
        pytest.param(AllNeuronDevices(), {"type": "NeuronDevice", "value": "ALL"}, id="all Neuron devices"),
    ],
)
def test_a_requirement_is_what_the_override_of_the_container_carries(override, requirement):
    request = make_launch_request(accelerators=override, environment={}, command=())

    assert build_requirement(override) == requirement
    assert build_overrides(request) == {
        "containerOverrides": [{"name": "main", "environment": [], "resourceRequirements": [requirement]}]
    }


@given(st.integers(1, 300_000), st.integers(1, 100), st.sampled_from((1.0, 0.5, 0.25, 0.125)), st.booleans())
def test_whatever_is_asked_for_has_a_value_or_a_sharing_strategy_and_never_both(
    memory_mib, percent, partition_size, is_share
):
    gpu = GpuRequirement(memory_mib=memory_mib, compute_percent=percent if is_share else None)
    override = choose_gpus(gpu, partition_size)

    assert override is not None
    assert len({"value", "sharingStrategy"} & build_requirement(override).keys()) == 1
    assert check_accelerators(override) == ()


@pytest.mark.parametrize(
    ("override", "violation"),
    [
        pytest.param(WholeGpus(0), "0 is no number of GPUs", id="no GPU"),
        pytest.param(GpuPartition(0.0), "0 is no part of a GPU", id="no part"),
        pytest.param(GpuPartition(1.0), "1 is no part of a GPU", id="all of it"),
        pytest.param(GpuShare(0, 30), "at least 1 MiB of memory, not 0", id="no memory"),
        pytest.param(GpuShare(2_048, 0), "1 to 100 percent of its compute, not 0", id="no compute"),
        pytest.param(GpuShare(2_048, 101), "1 to 100 percent of its compute, not 101", id="more than all"),
    ],
)
def test_what_ecs_would_refuse_is_named_before_the_call(override, violation):
    (found,) = check_limits(make_launch_request(accelerators=override))

    assert violation in found


def test_everything_that_is_wrong_is_named():
    assert len(check_accelerators(GpuShare(0, 0))) == 2


@pytest.mark.parametrize("percent", [1, 100])
def test_the_least_and_the_most_of_a_card_are_a_share(percent):
    assert check_accelerators(GpuShare(1, percent)) == ()


@pytest.mark.parametrize(
    ("gpu", "share"),
    [
        pytest.param(GpuRequirement(compute_percent=30), GpuShare(0, 30), id="no memory"),
        pytest.param(GpuRequirement(memory_mib=2_048, compute_percent=0), GpuShare(2_048, 0), id="no compute"),
    ],
)
def test_a_share_without_memory_or_compute_is_refused_rather_than_guessed(gpu, share):
    override = choose_gpus(gpu, 1.0)

    assert override == share
    assert check_accelerators(override)
