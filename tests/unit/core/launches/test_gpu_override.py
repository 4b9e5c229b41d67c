import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_launch_request
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.launches.gpu_override import (
    GpuPartition,
    MpsShare,
    WholeGpus,
    build_requirement,
    check_override,
    choose_override,
)
from relaunch.core.launches.launch import build_overrides, check_limits


@pytest.mark.parametrize(
    ("override", "requirement"),
    [
        pytest.param(WholeGpus(4), {"type": "GPU", "value": "4"}, id="whole GPUs"),
        pytest.param(GpuPartition(0.25), {"type": "GPU", "value": "0.25"}, id="a quarter"),
        pytest.param(GpuPartition(0.125), {"type": "GPU", "value": "0.125"}, id="an eighth"),
        pytest.param(
            MpsShare(2_048, 30),
            {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 2_048, "maxComputePercent": 30}}},
            id="a share",
        ),
    ],
)
def test_a_requirement_is_what_the_override_of_the_container_carries(override, requirement):
    request = make_launch_request(gpu=override, environment={}, command=())

    assert build_requirement(override) == requirement
    assert build_overrides(request) == {
        "containerOverrides": [{"name": "main", "environment": [], "resourceRequirements": [requirement]}]
    }


@given(st.integers(1, 300_000), st.integers(1, 100), st.sampled_from((1.0, 0.5, 0.25, 0.125)), st.booleans())
def test_whatever_is_asked_for_has_a_value_or_a_sharing_strategy_and_never_both(
    memory_mib, percent, partition_size, is_share
):
    gpu = GpuRequirement(memory_mib=memory_mib, compute_percent=percent if is_share else None)
    override = choose_override(gpu, partition_size)

    assert override is not None
    assert len({"value", "sharingStrategy"} & build_requirement(override).keys()) == 1
    assert check_override(override) == ()


@pytest.mark.parametrize(
    ("override", "violation"),
    [
        pytest.param(WholeGpus(0), "0 is no number of GPUs", id="no GPU"),
        pytest.param(GpuPartition(0.0), "0 is no part of a GPU", id="no part"),
        pytest.param(GpuPartition(1.0), "1 is no part of a GPU", id="all of it"),
        pytest.param(MpsShare(0, 30), "at least 1 MiB of memory, not 0", id="no memory"),
        pytest.param(MpsShare(2_048, 0), "1 to 100 percent of its compute, not 0", id="no compute"),
        pytest.param(MpsShare(2_048, 101), "1 to 100 percent of its compute, not 101", id="more than all"),
    ],
)
def test_what_ecs_would_refuse_is_named_before_the_call(override, violation):
    (found,) = check_limits(make_launch_request(gpu=override))

    assert violation in found


def test_everything_that_is_wrong_is_named():
    assert len(check_override(MpsShare(0, 0))) == 2


def test_without_gpu_in_the_definition_the_revision_is_left_as_it_is():
    assert choose_override(None, 0.25) is None


@pytest.mark.parametrize("percent", [1, 100])
def test_the_least_and_the_most_of_a_card_are_a_share(percent):
    assert check_override(MpsShare(1, percent)) == ()


@pytest.mark.parametrize(
    ("gpu", "share"),
    [
        pytest.param(GpuRequirement(compute_percent=30), MpsShare(0, 30), id="no memory"),
        pytest.param(GpuRequirement(memory_mib=2_048, compute_percent=0), MpsShare(2_048, 0), id="no compute"),
    ],
)
def test_a_share_without_memory_or_compute_is_refused_rather_than_guessed(gpu, share):
    override = choose_override(gpu, 1.0)

    assert override == share
    assert check_override(override)
