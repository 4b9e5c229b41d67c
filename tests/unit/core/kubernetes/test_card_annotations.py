"""Which cards a pod has a share of, in the forms of ACK's schedulers, and whether another pod fits beside it."""

import pytest

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_COUNT, GPU_MEMORY, SHARING, ask_ack_gpus
from relaunch.core.kubernetes.card_annotations import ALLOCATION, CARD_INDEX, CORE_ALLOCATION, read_cards
from relaunch.core.kubernetes.node_fit import CardUse, GpuNode, PodUse, why_not

RESOURCES = {GPU_MEMORY: 8, GPU_COMPUTE: 60}


@pytest.mark.parametrize(
    ("annotations", "cards"),
    [
        ({ALLOCATION: '{"0":{"1":8}}'}, {1: CardUse(8, 60)}),
        (
            {ALLOCATION: '{"0":{"1":1},"1":{"1":7}}', CORE_ALLOCATION: '{"0":{"1":50},"1":{"1":10}}'},
            {1: CardUse(8, 60)},
        ),
        ({ALLOCATION: '{"0":{"0":4,"2":4}}'}, {0: CardUse(4, 60), 2: CardUse(4, 60)}),
        (
            {ALLOCATION: '{"0":{"1":5},"1":{"3":3}}', CORE_ALLOCATION: '{"0":{"1":60}}'},
            {1: CardUse(5, 60), 3: CardUse(3)},
        ),
        # The newer form counts where both are there, the other where that is of no form that is known.
        ({ALLOCATION: '{"0":{"1":8}}', CARD_INDEX: "3"}, {1: CardUse(8, 60)}),
        ({ALLOCATION: '{"0":[1]}', CARD_INDEX: "3"}, {3: CardUse(8, 60)}),
        ({ALLOCATION: '{"0":{"a":8}}'}, {}),
        ({ALLOCATION: "[" * 100_000}, {}),
        ({CARD_INDEX: "0,1"}, {0: CardUse(4, 60), 1: CardUse(4, 60)}),
        ({CARD_INDEX: "unknown"}, {}),
        ({}, {}),
    ],
)
def test_the_cards_of_a_pod_are_read_in_every_form(annotations: dict[str, str], cards: dict[int, CardUse]) -> None:
    assert read_cards(annotations, RESOURCES) == cards


def test_a_pod_that_fits_on_no_single_card_is_seen_by_the_annotations_of_ack_pro() -> None:
    pods = [PodUse(RESOURCES, read_cards({ALLOCATION: f'{{"0":{{"{card}":8}}}}'}, RESOURCES)) for card in range(4)]
    allocatable = {GPU_MEMORY: 60, GPU_COUNT: 4, GPU_COMPUTE: 400}
    node = GpuNode("n", {SHARING: "core_mem"}, allocatable, pods)
    asked = ask_ack_gpus(GpuRequirement(memory_mib=10 * 1024, compute_percent=50), KubernetesWorkload("i"))

    assert why_not(node, asked) == "no card has 10 GiB and 50 % of compute left: the emptiest has 7 GiB"
