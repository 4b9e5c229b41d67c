"""What an ACK cluster needs for shared GPUs."""

from collections.abc import Callable
from typing import Any

import pytest

from relaunch.core.checks import Check, Verdict, is_ok, problem, unknown
from relaunch.core.kubernetes.ack import GPU_COMPUTE, GPU_COUNT, GPU_MEMORY, PLACEMENT, SHARING
from relaunch.core.kubernetes.ack_checks import (
    check_cgpu,
    check_chart,
    check_cluster_version,
    check_nodes,
    check_region,
    check_scheduler,
    read_version,
)
from relaunch.core.kubernetes.node_fit import GpuNode, NodeTaint

OK, PROBLEM, UNKNOWN = Verdict.OK, Verdict.PROBLEM, Verdict.UNKNOWN
ADD_ONS = "the console shows it under Operations > Add-ons; give it with --scheduler VERSION"
INSTALL = "install the newest: console of ACK, Applications > Cloud-native AI Suite"
REGIONS = (
    "cn-beijing, cn-shanghai, cn-hangzhou, cn-zhangjiakou, cn-shenzhen, cn-chengdu, cn-heyuan, cn-hongkong, "
    "ap-southeast-5, ap-southeast-1, ap-southeast-7, us-east-1, us-west-1, ap-northeast-1, cn-shanghai-finance-1"
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("v1.26.3-aliyun-4.1-a520c096", ((1, 26, 3), (4, 1))),
        ("1.24.3-ack-2.0", ((1, 24, 3), (2, 0))),
        ("1.2.0", ((1, 2, 0), ())),
        ("1.0.5-beta", ((1, 0, 5), ())),
        ("latest", None),
        ("", None),
    ],
)
def test_versions_are_ordered_by_their_numbers(text, numbers):
    assert read_version(text) == numbers


@pytest.mark.parametrize(
    ("check", "found", "expected"),
    [
        (
            check_cluster_version,
            (19, "v1.19.1-aliyun.1"),
            problem(
                "cluster version",
                "v1.19.1-aliyun.1: shares of a GPU's compute need 1.20",
                "upgrade the cluster in the console of ACK",
            ),
        ),
        (check_cluster_version, (20, "v1.20.4-aliyun.1"), is_ok("cluster version", "v1.20.4-aliyun.1")),
        (check_scheduler, (24, "1.24.3-ack-2.0"), is_ok("scheduler", "1.24.3-ack-2.0")),
        (
            check_scheduler,
            (22, "1.22.15-ack-1.9"),
            problem(
                "scheduler",
                "1.22.15-ack-1.9 gives no shares of compute: 1.22.15-ack-2.0 or later does",
                "upgrade kube-scheduler: Operations > Add-ons; clusters from before March 2022 by a ticket",
            ),
        ),
        (
            check_scheduler,
            (22, "newest"),
            unknown("scheduler", "'newest' is no version like 1.22.15-ack-2.0", ADD_ONS),
        ),
        (
            check_scheduler,
            (22, ""),
            unknown("scheduler", "the cluster does not say its version; 1.22.15-ack-2.0 or later is needed", ADD_ONS),
        ),
        (
            check_chart,
            (None,),
            problem("ack-ai-installer", "it is not installed, so nodes have no shares of a GPU", INSTALL),
        ),
        (
            check_chart,
            ("1.2.0",),
            problem(
                "ack-ai-installer",
                "1.2.0 shares memory alone: shares of compute need one after 1.2.0",
                f"delete it, and {INSTALL}",
            ),
        ),
        (check_chart, ("1.2.1",), is_ok("ack-ai-installer", "1.2.1")),
        (check_chart, ("",), unknown("ack-ai-installer", "'' is no version", INSTALL)),
        (
            check_cgpu,
            (["latest"],),
            unknown(
                "cGPU",
                "the cluster does not say its version; 1.0.5 or later is needed",
                "on a node: `cat /proc/cgpu_km/version`",
            ),
        ),
        (check_cgpu, (["v1.5.10", "v1.0.5"],), is_ok("cGPU", "v1.0.5, v1.5.10")),
        (
            check_cgpu,
            (["1.5.10", "1.0.4", "1.0.3"],),
            problem(
                "cGPU",
                "1.0.3, 1.0.4 gives no shares of compute: 1.0.5 does",
                "upgrade ack-ai-installer, and add the nodes again",
            ),
        ),
        (check_region, ("cn-beijing",), is_ok("region", "cn-beijing (Alibaba Cloud)")),
        (
            check_region,
            ("eu-central-1",),
            problem(
                "region",
                "eu-central-1 of Alibaba Cloud has no shares of compute",
                f"use a cluster in one of {REGIONS}",
            ),
        ),
        (
            check_region,
            ("",),
            unknown(
                "region",
                "nothing says in which region the cluster is",
                "give it with --region, like cn-beijing",
            ),
        ),
    ],
)
def test_each_check_says_what_it_found_and_what_to_do(
    check: Callable[..., Check], found: tuple[Any, ...], expected: Check
) -> None:
    assert check(*found) == expected


@pytest.mark.parametrize(
    ("minor", "version", "verdict"),
    [
        (28, "1.28.1-aliyun-5.6-998282b9", OK),
        (28, "v1.28.3-aliyun-6.1.0-0f0f0f0f", OK),
        (28, "1.28.1-aliyun-5.5-998282b9", PROBLEM),
        (26, "v1.26.3-aliyun-4.0-a520c096", PROBLEM),
        (24, "1.24.3-ack-2.0", OK),
        (22, "1.22.15-ack-1.9", PROBLEM),
        (20, "1.20.4-ack-8.0", OK),
        (20, "1.20.4-ack-7.2", PROBLEM),
        (19, "1.20.4-ack-7.2", PROBLEM),
        # Between the versions of the table the one before counts, after them the last.
        (25, "1.24.3-ack-1.0", PROBLEM),
        (32, "1.32.0-aliyun-1.0", OK),
        (28, "newest", UNKNOWN),
        (28, "", UNKNOWN),
    ],
)
def test_the_scheduler_is_held_against_the_table(minor, version, verdict):
    assert check_scheduler(minor, version).verdict is verdict


@pytest.mark.parametrize(("version", "verdict"), [("1.1.9", PROBLEM), ("1.12.3", OK)])
def test_the_chart_is_newer_than_the_last_without_shares_of_compute(version, verdict):
    assert check_chart(version).verdict is verdict


def test_a_cluster_without_nodes_that_share_their_gpus_is_told_which_pool_to_make():
    pool = "make a node pool with the label ack.node.gpu.schedule=core_mem (memory and compute) or cgpu (memory alone)"

    assert check_nodes([GpuNode("n1", {}, {"nvidia.com/gpu": 4})]) == (
        problem("nodes", "none shares its GPUs", f"{pool}; nodes that exist have to be added again"),
    )


@pytest.mark.parametrize(
    ("labels", "allocatable", "refuses", "check"),
    [
        (
            {SHARING: "core_mem", PLACEMENT: "binpack"},
            {GPU_COUNT: 4, GPU_MEMORY: 60, GPU_COMPUTE: 400},
            "",
            is_ok(
                "node n1",
                "ack.node.gpu.schedule=core_mem, ack.node.gpu.placement=binpack, 4 aliyun.com/gpu-count, "
                "60 aliyun.com/gpu-mem, 400 aliyun.com/gpu-core.percentage",
            ),
        ),
        (
            {SHARING: "core_mem"},
            {"nvidia.com/gpu": 4},
            "",
            problem(
                "node n1",
                "it has the label ack.node.gpu.schedule=core_mem, and no aliyun.com/gpu-mem: its label was set on a "
                "node that was in the cluster already: remove the node and add it to a labelled pool",
                "kubectl drain n1, remove it in the console, add it to the pool again",
            ),
        ),
        (
            {SHARING: "default"},
            {GPU_MEMORY: 60},
            "",
            problem(
                "node n1",
                "ack.node.gpu.schedule=default, and it has aliyun.com/gpu-mem",
                "remove the node and add it again",
            ),
        ),
        (
            {},
            {GPU_MEMORY: 60},
            "it is not ready",
            problem("node n1", "60 aliyun.com/gpu-mem; it is not ready", "kubectl describe node n1"),
        ),
    ],
)
def test_a_node_reports_what_its_label_says(labels, allocatable, refuses, check):
    assert check_nodes([GpuNode("n1", labels, allocatable, (), refuses)]) == (check,)


def test_a_node_reports_its_taints_which_definitions_may_tolerate():
    node = GpuNode("n1", {}, {GPU_COUNT: 4, GPU_MEMORY: 60}, taints=(NodeTaint("gpu", "a10", "NoSchedule"),))

    assert check_nodes([node]) == (
        is_ok("node n1", "4 aliyun.com/gpu-count, 60 aliyun.com/gpu-mem, taint gpu=a10:NoSchedule"),
    )
