from typing import Any

import pytest

from fakes.builders import make_container, make_instance_type
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import GpuRequirement, Isolation
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.revisions.revision import ContainerRequirement
from relaunch.core.selection.gpu_share import (
    ShareRequirement,
    check_requirement,
    derive_share,
    find_share_rejection,
    share_notices,
    supports_mps,
)
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import Selection
from unit.core.selection.offered import A10G, T4, needing, needing_gpu, offered, revision_of
from unit.core.selection.offered import selected as selected_for

FOUR_T4 = make_instance_type(
    "g4dn.12xlarge", accelerator_model="T4", gpu_memory_mib=16_384, gpu_count=4, logical_gpu_count=4
)
M60 = make_instance_type("g3s.xlarge", accelerator_model="M60", gpu_memory_mib=8_192, compute_capability=(5, 2))
V100 = make_instance_type("p3.2xlarge", accelerator_model="V100", gpu_memory_mib=16_384)
QUARTER = make_instance_type(
    "g6f.2xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.25, gpu_memory_mib=5_722
)
HALF = make_instance_type(
    "gr6f.4xlarge", accelerator_model="L4", gpu_count=0, gpu_partition_size=0.5, gpu_memory_mib=11_444
)
MAIN = make_container(memory_mib=4_096, vcpus=1.0)
SHARING = make_container(name="metrics", memory_mib=512, vcpus=0.5, gpu_count=0, gpu_share_mib=1_024)
WHOLE = make_container(name="metrics", memory_mib=512, vcpus=0.5, gpu_count=1)
PART = make_container(name="metrics", memory_mib=512, vcpus=0.5, gpu_count=0, gpu_partition=0.25)
NO_GPU = make_container(name="metrics", memory_mib=512, vcpus=0.5, gpu_count=0)


def share(**fields: Any) -> GpuRequirement:
    return GpuRequirement(**{"memory_mib": 2_048, "compute_percent": 25, **fields})


def selected(
    gpu: GpuRequirement | None, *machines: InstanceType, containers: tuple[ContainerRequirement, ...] = (MAIN,)
) -> Selection:
    revision = revision_of(*containers, memory_mib=0, vcpus=0.0)
    return selected_for(needing(gpu=gpu), *map(offered, machines), revision=revision)


OUTSIDE = "is no share of a GPU's compute: it goes from 1 to 100 percent"


@pytest.mark.parametrize(
    ("gpu", "problem"),
    [
        pytest.param(share(compute_percent=0), f"0 {OUTSIDE}", id="0 percent"),
        pytest.param(share(compute_percent=101), f"101 {OUTSIDE}", id="101 percent"),
        pytest.param(share(compute_percent=-5), f"-5 {OUTSIDE}", id="less than nothing"),
        pytest.param(
            share(memory_mib=None),
            "a share of a GPU needs its memory too: give `memory`, like 2GiB",
            id="percent without memory",
        ),
        pytest.param(share(memory_mib=0), "a share of a GPU has at least 1 MiB of memory, not 0", id="no memory"),
        pytest.param(
            share(count=2), "a share is of one GPU: leave `count` out, or ask for 2 whole ones", id="several cards"
        ),
        pytest.param(
            GpuRequirement(memory_mib=2_048, isolation=Isolation.REQUIRED),
            "isolation is for a share of a GPU: give `compute_percent` and `memory` too",
            id="isolated card",
        ),
    ],
)
def test_what_no_share_can_be_is_said_and_never_selected(gpu, problem):
    assert check_requirement(gpu) == (problem,)
    assert problem in selected(gpu, A10G).rejected[0].rejection.reason


def test_everything_that_is_wrong_with_a_share_is_told_at_once():
    assert len(check_requirement(share(compute_percent=0, memory_mib=0, count=2))) == 3


@pytest.mark.parametrize(
    "gpu",
    [
        pytest.param(GpuRequirement(count=8, memory_mib=24_576), id="whole cards"),
        pytest.param(share(memory_mib=1, compute_percent=1), id="the least"),
        pytest.param(share(compute_percent=100), id="all of the compute"),
        pytest.param(share(isolation=Isolation.REQUIRED), id="isolated"),
    ],
)
def test_what_can_be_had_has_no_problem(gpu):
    assert check_requirement(gpu) == ()


@pytest.mark.parametrize(
    ("gpu", "machine"),
    [
        pytest.param(share(), A10G, id="by MPS"),
        pytest.param(share(memory_mib=14_745), T4, id="nine tenths of the card"),
        pytest.param(share(), FOUR_T4, id="one of four cards"),
        pytest.param(share(), V100, id="Volta"),
        pytest.param(share(), QUARTER, id="a part of a GPU, if it is the cheaper one"),
        pytest.param(share(isolation=Isolation.REQUIRED), QUARTER, id="a part of a GPU for isolation"),
        pytest.param(share(isolation=Isolation.REQUIRED), HALF, id="a larger part than asked for"),
        pytest.param(share(memory_mib=5_722, isolation=Isolation.REQUIRED), QUARTER, id="all of the part's memory"),
    ],
)
def test_a_machine_that_can_give_the_share_is_kept(gpu, machine):
    assert [offering.instance_type for offering in selected(gpu, machine).kept] == [machine]


def lacking(name, machine, reason, **fields):
    return pytest.param(share(**fields), machine, reason, id=name)


@pytest.mark.parametrize(
    ("gpu", "machine", "reason"),
    [
        lacking("before Volta", M60, "its GPU (M60) is older than Volta: MPS keeps no limits on it"),
        lacking(
            "the nominal memory",
            T4,
            "about 14,745 MiB of its GPU's 16,384 can be shared; 16,384 are asked for",
            memory_mib=16_384,
        ),
        lacking(
            "the share must fit one card",
            FOUR_T4,
            "about 14,745 MiB of its GPU's 16,384 can be shared; 20,000 are asked for",
            memory_mib=20_000,
        ),
        lacking(
            "MPS does not isolate",
            A10G,
            "it shares whole GPUs through MPS; isolation is required, which a part of a GPU has (g6f, gr6f)",
            isolation=Isolation.REQUIRED,
        ),
        lacking(
            "more than the part's memory",
            QUARTER,
            "its part of a GPU has 5,722 MiB; 5,723 MiB are asked for",
            memory_mib=5_723,
        ),
        lacking(
            "more than the part's compute",
            QUARTER,
            "it has 0.25 of a GPU; 26 % of its compute are asked for",
            compute_percent=26,
        ),
    ],
)
def test_a_machine_that_cannot_give_the_share_is_rejected_for_good(gpu, machine, reason):
    (rejected,) = selected(gpu, machine).rejected

    assert (rejected.filter_name, rejected.rejection.is_permanent) == ("share", True)
    assert rejected.rejection.reason == reason


SHARE_BESIDE_WHOLE = "a share of a GPU, the job for whole ones: ECS takes one kind"


@pytest.mark.parametrize(
    ("gpu", "other", "reason"),
    [
        pytest.param(
            share(), WHOLE, "whole GPUs, the job for a share: ECS takes one kind in a task", id="whole beside a share"
        ),
        pytest.param(
            share(),
            PART,
            "a part of a GPU, the job for a share: ECS takes one kind in a task",
            id="a part beside a share",
        ),
        pytest.param(GpuRequirement(), SHARING, SHARE_BESIDE_WHOLE, id="a share beside a whole one"),
        pytest.param(GpuRequirement(), PART, SHARE_BESIDE_WHOLE, id="a part beside a whole one"),
    ],
)
def test_all_containers_of_a_task_must_ask_for_gpus_the_same_way(gpu, other, reason):
    (rejected,) = selected(gpu, A10G, containers=(MAIN, other)).rejected

    assert rejected.rejection.reason == f"container `metrics` asks for {reason}"


def test_the_shares_of_all_containers_come_from_one_card():
    beside = (MAIN, SHARING)

    assert selected(share(memory_mib=13_721), T4, containers=beside).kept
    assert not selected(share(memory_mib=13_722), T4, containers=beside).kept
    assert selected(share(), QUARTER, containers=beside).rejected[0].rejection.reason == (
        "other containers of the task share the GPU through MPS, which a part of a GPU does not support"
    )


@pytest.mark.parametrize(
    ("required", "machine", "shortfall"),
    [
        pytest.param(ShareRequirement(2_048, 50), QUARTER, 0.5, id="half the compute"),
        pytest.param(ShareRequirement(11_444, 25), QUARTER, 0.5, id="half the memory"),
        pytest.param(
            ShareRequirement(20_000, 25, other_containers_mib=9_490), T4, 0.5, id="half the card, with what is beside"
        ),
        pytest.param(ShareRequirement(2_048, 25), M60, 0.0, id="no card to speak of"),
    ],
)
def test_a_rejection_has_the_shortfall_of_the_instance_type(required, machine, shortfall):
    rejection = find_share_rejection(required, machine)

    assert rejection is not None
    assert rejection.shortfall == pytest.approx(shortfall)


@pytest.mark.parametrize(
    ("machine", "has"),
    [pytest.param(HALF, "0.5 of one", id="a half"), pytest.param(T4, "whole ones", id="a whole one")],
)
def test_a_part_that_the_revision_names_is_had_on_no_other_type(machine, has):
    reason = f"the task definition asks for 0.25 of a GPU; it has {has}"

    assert find_share_rejection(ShareRequirement(0, partition=0.25), machine) == Rejection(reason)


def test_a_container_without_a_gpu_is_no_obstacle():
    assert selected(share(), A10G, containers=(MAIN, NO_GPU)).kept


@pytest.mark.parametrize(
    ("container", "machine", "is_kept"),
    [
        pytest.param(SHARING, T4, True, id="a share on a card that can be shared"),
        pytest.param(SHARING, M60, False, id="a share on an old card"),
        pytest.param(SHARING, QUARTER, False, id="a share on a part of a card"),
        pytest.param(PART, QUARTER, True, id="the part that the type has"),
        pytest.param(PART, HALF, False, id="another part"),
        pytest.param(PART, T4, False, id="a part on a whole card"),
    ],
)
def test_without_gpu_in_the_definition_the_revisions_own_share_holds(container, machine, is_kept):
    assert bool(selected(None, machine, containers=(container,)).kept) is is_kept


@pytest.mark.parametrize(
    ("capability", "is_shared"),
    [
        pytest.param((3, 7), False, id="Kepler"),
        pytest.param((6, 1), False, id="Pascal"),
        pytest.param((7, 0), True, id="Volta"),
        pytest.param((12, 0), True, id="Blackwell"),
        pytest.param(None, True, id="newer than the catalogue"),
    ],
)
def test_cards_are_shared_from_volta_on(capability, is_shared):
    assert supports_mps(make_instance_type("g9.xlarge", compute_capability=capability)) is is_shared


def test_what_is_needed_of_a_card_is_read_from_definition_and_containers():
    assert derive_share(None, (SHARING, NO_GPU)) == ShareRequirement(0, other_containers_mib=1_024)
    assert derive_share(None, (PART, NO_GPU)) == ShareRequirement(0, partition=0.25)
    assert derive_share(None, ()) is None
    assert derive_share(share(), (SHARING,)) == ShareRequirement(2_048, 25, other_containers_mib=1_024)
    assert derive_share(GpuRequirement(), (WHOLE,)) is None
    conflict = f"container `metrics` asks for {SHARE_BESIDE_WHOLE}"
    assert derive_share(GpuRequirement(), (SHARING,)) == ShareRequirement(0, conflict=conflict)


@pytest.mark.parametrize(
    ("gpu", "required"),
    [
        pytest.param(share(memory_mib=None), (0, 25), id="no memory"),
        pytest.param(share(compute_percent=0), (2_048, 0), id="no compute"),
    ],
)
def test_what_a_share_is_not_said_to_have_is_not_guessed(gpu, required):
    (problem,) = check_requirement(gpu)

    assert derive_share(gpu, ()) == ShareRequirement(*required, conflict=problem)


def test_what_has_no_gpu_shares_none():
    assert not supports_mps(make_instance_type("inf2.xlarge", gpu_count=0))


def test_of_the_catalogue_g2_g3_p2_and_parts_of_gpus_are_not_shared():
    gpus = [machine for machine in load_catalogue().values() if machine.logical_gpu_count and machine.is_supported]

    families = {machine.name.split(".")[0] for machine in gpus if not supports_mps(machine)}
    assert families == {"g2", "g3", "g3s", "g6f", "gr6f", "p2"}


def noticed(**gpu: Any) -> str:
    return "\n".join(share_notices(needing_gpu(**gpu)))


def test_who_shares_a_gpu_is_told_what_that_means():
    assert noticed(memory_mib=2_048, compute_percent=30).splitlines() == [
        "a share of a GPU is for one CUDA process: take a whole GPU for several (data loaders on the CPU do not count)",
        "those who share a GPU fail together: a fatal error of one stops all; keep checkpoints, or ask for isolation",
        "compute_percent is a limit, not a reservation: 30 % at most, less beside busy neighbours",
    ]


def test_who_gets_a_part_of_a_gpu_is_told_what_that_means():
    assert noticed(memory_mib=2_048, compute_percent=30, isolation=Isolation.REQUIRED) == (
        "a part of a GPU has its own compute: 30 % is the least it has, not a limit"
    )


def test_whole_gpus_and_other_accelerators_need_no_notice():
    assert noticed(count=4) == ""
    assert share_notices(needing(instance_types=("inf2.xlarge",))) == ()
