"""Where a pod with GPUs fits now, and why not elsewhere."""

import pytest

from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_COUNT, GPU_MEMORY, SHARING
from relaunch.core.kubernetes.card_annotations import CARD_INDEX, read_cards
from relaunch.core.kubernetes.node_fit import GpuNode, NodeFit, PodUse, find_relabelled, predict_fit, why_not
from relaunch.core.kubernetes.pod_gpus import WHOLE_GPUS, PodGpus

CORE_MEM = {SHARING: "core_mem"}
FOUR_CARDS = {GPU_COUNT: 4, GPU_MEMORY: 60, GPU_COMPUTE: 400}


def share(memory, compute=None, *, cards=1):
    resources = {GPU_MEMORY: memory} | ({} if compute is None else {GPU_COMPUTE: compute})
    labels = {GPU_COUNT: str(cards)} if cards > 1 else {}
    return PodGpus(resources, labels, {SHARING: "cgpu" if compute is None else "core_mem"})


def node(*pods, labels=None, allocatable=None, refuses="", name="n1"):
    return GpuNode(
        name, CORE_MEM if labels is None else labels, FOUR_CARDS if allocatable is None else allocatable, pods, refuses
    )


def on(resources, *cards):
    return PodUse(resources, read_cards({CARD_INDEX: ",".join(map(str, cards))}, resources))


def use(memory, compute, *cards):
    return on({GPU_MEMORY: memory, GPU_COMPUTE: compute}, *cards)


TWO_HALVES = node(
    *(use(4, 30, 0), use(4, 30, 0), use(8, 60, 1)), allocatable={GPU_COUNT: 2, GPU_MEMORY: 30, GPU_COMPUTE: 200}
)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        pytest.param(node(), share(2, 30), id="empty"),
        pytest.param(node(use(2, 30, 0)), share(15, 100), id="another card"),
        pytest.param(node(*[use(4, 30, 0)] * 2), share(4, 40), id="the same card"),
        pytest.param(node(use(15, 100)), share(15, 100), id="a pod whose card is not known"),
        pytest.param(node(*[on({}, card) for card in range(4)]), share(15, 100), id="pods that ask for nothing"),
        pytest.param(node(labels={}, allocatable={WHOLE_GPUS: 2}), PodGpus({WHOLE_GPUS: 2}), id="whole GPUs"),
        pytest.param(
            node(labels={SHARING: "cgpu"}, allocatable={GPU_COUNT: 2, GPU_MEMORY: 30}),
            share(16, cards=2),
            id="two cards",
        ),
        pytest.param(
            node(labels={SHARING: "share"}, allocatable={GPU_MEMORY: 30}),
            PodGpus({GPU_MEMORY: 30}, {}, {SHARING: "share"}),
            id="how many cards is not known",
        ),
    ],
)
def test_it_fits(given, asked):
    assert why_not(given, asked) == ""


@pytest.mark.parametrize(
    ("given", "asked", "reason"),
    [
        (node(labels={}), share(2, 30), "the label ack.node.gpu.schedule=core_mem is asked for, it has no such label"),
        (node(), share(2), "the label ack.node.gpu.schedule=cgpu is asked for, it has ack.node.gpu.schedule=core_mem"),
        (node(refuses="it is not ready"), share(2, 30), "it is not ready"),
        (node(use(50, 100)), share(12, 30), "10 of 60 aliyun.com/gpu-mem are free, 12 are asked for"),
        (node(use(4, 390)), share(4, 30), "10 of 400 aliyun.com/gpu-core.percentage are free, 30 are asked for"),
        (node(use(90, 0)), share(4, 30), "0 of 60 aliyun.com/gpu-mem are free, 4 are asked for"),
        (node(allocatable={"cpu": 4}, labels={}), PodGpus({WHOLE_GPUS: 1}), "it has no nvidia.com/gpu"),
        (
            node(PodUse({GPU_MEMORY: 2})),
            share(2, 30),
            "it runs pods with shares of memory alone, which never share a node with this kind",
        ),
        (
            node(use(2, 30), labels={SHARING: "cgpu"}),
            share(2),
            "it runs pods with shares of memory and compute, which never share a node with this kind",
        ),
        (
            node(*[use(10, 50, card) for card in range(4)]),
            share(8, 30),
            "no card has 8 GiB and 30 % of compute left: the emptiest has 5 GiB",
        ),
        (TWO_HALVES, share(8, 30), "no card has 8 GiB and 30 % of compute left: the emptiest has 7 GiB"),
        (TWO_HALVES, share(5, 41), "no card has 5 GiB and 41 % of compute left: the emptiest has 7 GiB"),
        (
            node(*[use(2, 90, card) for card in range(4)]),
            share(2, 20),
            "no card has 2 GiB and 20 % of compute left: the emptiest has 13 GiB",
        ),
        (
            node(
                *[on({GPU_MEMORY: 10}, card) for card in range(3)],
                labels={SHARING: "cgpu"},
                allocatable={GPU_COUNT: 4, GPU_MEMORY: 60},
            ),
            share(16, cards=2),
            "fewer than 2 cards have 8 GiB left: the emptiest has 15 GiB",
        ),
    ],
)
def test_it_does_not_fit(given, asked, reason):
    assert why_not(given, asked) == reason


def test_a_card_takes_twenty_pods():
    pods = [use(0, 0, 0)] * 20
    given = node(*pods, allocatable={GPU_COUNT: 1, GPU_MEMORY: 15, GPU_COMPUTE: 100})

    assert why_not(given, share(1, 5)).startswith("no card has 1 GiB and 5 % of compute left")
    assert why_not(node(*pods[1:], allocatable=given.allocatable), share(1, 5)) == ""


def test_a_pod_on_two_cards_has_half_of_its_memory_on_each():
    given = node(on({GPU_MEMORY: 20}, 0, 1), labels={SHARING: "cgpu"}, allocatable={GPU_COUNT: 2, GPU_MEMORY: 30})

    assert why_not(given, share(5)) == ""
    assert why_not(given, share(6)) == "no card has 6 GiB left: the emptiest has 5 GiB"


@pytest.mark.parametrize(
    ("mode", "allocatable", "missing"),
    [
        ("core_mem", {GPU_COUNT: 4, GPU_MEMORY: 60}, GPU_COMPUTE),
        ("core_mem", {WHOLE_GPUS: 4}, GPU_MEMORY),
        ("cgpu", {WHOLE_GPUS: 4}, GPU_MEMORY),
    ],
)
def test_a_node_that_was_only_relabelled_lacks_what_its_label_says(mode, allocatable, missing):
    found = find_relabelled(node(labels={SHARING: mode}, allocatable=allocatable))

    assert found.startswith(f"it has the label ack.node.gpu.schedule={mode}, and no {missing}: ")
    assert "remove the node and add it" in found
    assert (
        why_not(node(labels={SHARING: mode}, allocatable=allocatable), share(2, 30 if mode == "core_mem" else None))
        == found
    )


@pytest.mark.parametrize("mode", ["", "default", "topology"])
def test_other_modes_promise_no_shares(mode):
    assert find_relabelled(node(labels={SHARING: mode}, allocatable={WHOLE_GPUS: 4})) == ""


def test_the_fullest_node_where_it_fits_comes_first():
    nodes = [
        node(name="empty"),
        node(use(30, 100, 0), name="half"),
        node(use(60, 400), name="full"),
        node(name="down", refuses="it is not ready"),
        node(name="other", labels={}, allocatable={"cpu": 4}),
    ]

    fits = predict_fit(nodes, share(2, 30))

    assert [(each.node, each.fits) for each in fits] == [
        ("half", True),
        ("empty", True),
        ("full", False),
        ("other", False),
        ("down", False),
    ]
    assert fits[3].free == {GPU_MEMORY: 0, GPU_COMPUTE: 0}
    assert fits[0] == NodeFit("half", "", {GPU_MEMORY: 30, GPU_COMPUTE: 300})
