from typing import Any

import pytest

from relaunch.core.selection.gpu_share import GpuDevice, ShareRequirement, explain_missing_share

SHARE = ShareRequirement(2_048, 30)


def device(number: int = 1, mode: str = "NVIDIA_MPS", remaining_mib: int = 1_024, **fields: Any) -> GpuDevice:
    values = {"total_mib": 15_360, "container_count": 3, **fields}
    return GpuDevice(f"GPU-{number}", f"i-{number}", mode, remaining_mib=remaining_mib, **values)


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param([device(mode="IDLE", remaining_mib=15_360, container_count=0)], id="an idle card"),
        pytest.param([device(remaining_mib=2_048)], id="exactly as much left"),
        pytest.param([device(), device(2, remaining_mib=4_096)], id="the second card"),
        pytest.param([device(mode="A_NEW_MODE", remaining_mib=4_096)], id="a mode nobody knew"),
    ],
)
def test_a_share_fits_where_one_card_has_enough_left(devices: list[GpuDevice]) -> None:
    assert explain_missing_share(SHARE, devices) is None


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        pytest.param(
            [device()], "GPU-1 of i-1: 1,024 of 15,360 MiB left, shared by 3 containers; ", id="too little left"
        ),
        pytest.param(
            [device(container_count=1, remaining_mib=0)],
            "GPU-1 of i-1: 0 of 15,360 MiB left, shared by 1 container; ",
            id="nothing left",
        ),
        pytest.param(
            [device(mode="DEDICATED", remaining_mib=15_360, container_count=1)],
            "GPU-1 of i-1: 15,360 of 15,360 MiB left, one container's own",
            id="a card that is not shared",
        ),
        pytest.param(
            [device(mode="IDLE", remaining_mib=1_500, total_mib=1_500, container_count=0)],
            "GPU-1 of i-1: 1,500 of 1,500 MiB left, idle",
            id="a small card",
        ),
        pytest.param([], "no machine there says that its GPUs can be shared", id="no card at all"),
        pytest.param([device(1), device(2)], "GPU-1 of i-1", id="two halves are no whole"),
        pytest.param(
            [device(2, remaining_mib=0), device(1, mode="DEDICATED"), device(3, remaining_mib=1)],
            "GPU-3 of i-3: 1 of 15,360 MiB left, shared by 3 containers; GPU-1 of i-1",
            id="a card that is not shared has no room",
        ),
    ],
)
def test_a_share_that_does_not_fit_is_told_what_each_card_has_left(devices: list[GpuDevice], reason: str) -> None:
    found = explain_missing_share(SHARE, devices)

    assert found is not None
    assert f"{found}; ".startswith(f"2,048 MiB of one GPU are asked for; {reason}")


def test_other_containers_of_the_task_need_room_on_the_same_card() -> None:
    assert explain_missing_share(ShareRequirement(1_000, 30, other_containers_mib=24), [device()]) is None
    assert explain_missing_share(ShareRequirement(1_000, 30, other_containers_mib=25), [device()]) is not None


def test_the_gpus_with_most_memory_left_are_named_first_and_the_rest_counted() -> None:
    cards = [device(number, remaining_mib=100 * number) for number in range(1, 8)]
    dedicated = device(9, mode="DEDICATED", remaining_mib=15_360, container_count=1)

    found = explain_missing_share(SHARE, [*cards, dedicated])

    assert found is not None
    assert [part.split()[0] for part in found.split("; ")[1:-1]] == ["GPU-7", "GPU-6", "GPU-5", "GPU-4"]
    assert found.endswith("and 4 more with no more room")


@pytest.mark.parametrize(("count", "ending"), [(4, "containers"), (5, "; and 1 more with no more room")])
def test_four_cards_are_shown(count: int, ending: str) -> None:
    found = explain_missing_share(SHARE, [device(number) for number in range(count)])

    assert found is not None
    assert found.endswith(ending)
    assert found.count("GPU-") == 4
