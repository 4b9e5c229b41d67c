from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import (
    NOW,
    make_container,
    make_definition,
    make_instance_type,
    make_offering,
    make_revision,
)
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    NeuronRequirement,
    PurchaseOption,
)
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.notices import find_notices
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import select

TYPES_ALONE = AcceleratorRequirement(instance_types=("g5.xlarge", "inf2.xlarge"))
NO_GPU = make_revision(containers=(make_container(gpu_count=0),))
INFERENTIA = make_instance_type(
    "inf2.xlarge",
    accelerator_manufacturer="AWS",
    accelerator_model="Inferentia2",
    gpu_count=0,
    logical_gpu_count=0,
    neuron_devices=1,
    neuron_cores_per_device=2,
)


def notices_of(definition: JobDefinition, revision: Revision | None, *offerings: Offering) -> tuple[str, ...]:
    selection = select(definition, revision, offerings or (make_offering(),), {}, NOW, SelectionLimits())
    return find_notices(definition, revision, selection)


def test_an_ordinary_job_needs_no_notice() -> None:
    assert notices_of(make_definition(), make_revision()) == ()


@pytest.mark.parametrize(
    ("offering", "words"),
    [
        pytest.param(make_offering("g5.xlarge"), "g5.xlarge has a GPU", id="a GPU"),
        pytest.param(make_offering(INFERENTIA), "inf2.xlarge has a Neuron device", id="Neuron"),
    ],
)
def test_a_machine_whose_accelerator_nobody_asks_for_is_warned_of(offering: Offering, words: str) -> None:
    (notice,) = notices_of(make_definition(accelerator=TYPES_ALONE), NO_GPU, offering)

    assert notice == (
        f"{words} that no container asks for, so that none can use it: "
        "add `gpu` or `neuron` to `accelerator`, or choose a machine without"
    )


@pytest.mark.parametrize(
    ("definition", "revision", "offering"),
    [
        pytest.param(make_definition(accelerator=TYPES_ALONE), make_revision(), make_offering(), id="by the revision"),
        pytest.param(make_definition(), NO_GPU, make_offering(), id="by the definition"),
        pytest.param(
            make_definition(accelerator=AcceleratorRequirement(neuron=NeuronRequirement(devices=1))),
            NO_GPU,
            make_offering(INFERENTIA),
            id="Neuron by the definition",
        ),
        pytest.param(
            make_definition(accelerator=TYPES_ALONE),
            make_revision(containers=(make_container(gpu_count=0, neuron_devices=("/dev/neuron0",)),)),
            make_offering(INFERENTIA),
            id="Neuron by the revision",
        ),
        pytest.param(
            make_definition(accelerator=TYPES_ALONE),
            make_revision(containers=(make_container(gpu_count=0, gpu_share_mib=2_048),)),
            make_offering(),
            id="a share by the revision",
        ),
        pytest.param(make_definition(accelerator=TYPES_ALONE), None, make_offering(), id="no revision known"),
    ],
)
def test_an_accelerator_that_somebody_asks_for_is_not(
    definition: JobDefinition, revision: Revision | None, offering: Offering
) -> None:
    assert notices_of(definition, revision, offering) == ()


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        pytest.param({"checkpoint_uri": None}, 1, id="work that is likely lost"),
        pytest.param({}, 0, id="with checkpoints"),
        pytest.param({"checkpoint_uri": None, "estimated_duration": timedelta(hours=6)}, 0, id="short work"),
        pytest.param({"checkpoint_uri": None, "estimated_duration": None}, 0, id="of unknown duration"),
    ],
)
def test_work_that_spot_will_likely_lose_is_warned_of(fields: dict[str, Any], count: int) -> None:
    definition = replace(make_definition(estimated_duration=timedelta(hours=12)), **fields)

    notices = notices_of(definition, make_revision())

    assert len(notices) == count
    assert set(notices) <= {
        "g5.xlarge spot is expected to be interrupted 1.2 times in the time the work takes, "
        "which starts over each time: give a `checkpoint`"
    }


def test_what_the_machine_and_what_the_definition_brings_are_both_noticed() -> None:
    share = AcceleratorRequirement(gpu=GpuRequirement(memory_mib=2_048, compute_percent=50))
    definition = make_definition(accelerator=share, checkpoint_uri=None, estimated_duration=timedelta(hours=12))
    by_definition = find_notices(definition, None, None)

    notices = notices_of(definition, make_revision(containers=(make_container(gpu_count=0),)))

    assert by_definition
    assert notices[:-1] == by_definition
    assert "give a `checkpoint`" in notices[-1]


def test_on_demand_loses_no_work() -> None:
    definition = make_definition(estimated_duration=timedelta(hours=90), checkpoint_uri=None)

    assert notices_of(definition, make_revision(), make_offering(purchase=PurchaseOption.ON_DEMAND)) == ()


def test_a_disk_that_nobody_can_check_is_said_to_be_so() -> None:
    machine = make_instance_type(nvme_gb=250)

    (notice,) = notices_of(make_definition(disk_gib=200), make_revision(), make_offering(machine))

    assert notice == (
        "`disk` only counts in the cost, for CapacityProviders does not say the disk of g5-xlarge-spot: "
        "make sure that its launch template gives its machines 200 GiB (g5.xlarge also has 250 GB of local disks)"
    )
    (without_local_disks,) = notices_of(make_definition(disk_gib=200), make_revision(), make_offering())
    assert without_local_disks.endswith("its machines 200 GiB")
    assert not notices_of(make_definition(disk_gib=200), make_revision(), make_offering(capacity_provider=None))
    assert not notices_of(make_definition(disk_gib=200), make_revision(), make_offering(disk_gib=200))


def test_where_nothing_is_kept_only_the_definition_is_noticed() -> None:
    share = AcceleratorRequirement(gpu=GpuRequirement(memory_mib=999_999, compute_percent=50))

    notices = notices_of(make_definition(accelerator=share, disk_gib=200), make_revision())

    assert notices == find_notices(make_definition(accelerator=share), None, None)
    assert len(notices) == 3
