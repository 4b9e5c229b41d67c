"""What an ACK cluster needs for shared GPUs."""

import pytest

from relaunch.core.checks import Verdict
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
from relaunch.core.kubernetes.node_fit import GpuNode

OK, PROBLEM, UNKNOWN = Verdict.OK, Verdict.PROBLEM, Verdict.UNKNOWN


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


@pytest.mark.parametrize(("minor", "verdict"), [(19, PROBLEM), (20, OK), (36, OK)])
def test_the_cluster_has_a_version_with_shares_of_compute(minor, verdict):
    assert check_cluster_version(minor, f"v1.{minor}.1-aliyun.1").verdict is verdict


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
    check = check_scheduler(minor, version)

    assert check.verdict is verdict
    assert bool(check.to_do) == (verdict is not OK)


@pytest.mark.parametrize(
    ("version", "verdict"),
    [(None, PROBLEM), ("1.1.9", PROBLEM), ("1.2.0", PROBLEM), ("1.2.1", OK), ("1.12.3", OK), ("", UNKNOWN)],
)
def test_the_chart_is_newer_than_the_last_without_shares_of_compute(version, verdict):
    assert check_chart(version).verdict is verdict


@pytest.mark.parametrize(
    ("versions", "verdict"),
    [([], UNKNOWN), (["latest"], UNKNOWN), (["v1.0.5"], OK), (["1.5.10", "1.0.4"], PROBLEM)],
)
def test_cgpu_gives_shares_of_compute(versions, verdict):
    assert check_cgpu(versions).verdict is verdict


@pytest.mark.parametrize(("region", "verdict"), [("cn-beijing", OK), ("eu-central-1", PROBLEM), ("", UNKNOWN)])
def test_the_region_is_one_of_alibaba_cloud_with_shares_of_compute(region, verdict):
    assert check_region(region).verdict is verdict


def test_a_cluster_without_nodes_that_share_their_gpus_is_told_which_pool_to_make():
    (check,) = check_nodes([GpuNode("n1", {}, {"nvidia.com/gpu": 4})])

    assert (check.name, check.verdict) == ("nodes", PROBLEM)
    assert "ack.node.gpu.schedule=core_mem" in check.to_do


@pytest.mark.parametrize(
    ("labels", "allocatable", "refuses", "verdict", "text"),
    [
        (
            {SHARING: "core_mem", PLACEMENT: "binpack"},
            {GPU_COUNT: 4, GPU_MEMORY: 60, GPU_COMPUTE: 400},
            "",
            OK,
            "ack.node.gpu.schedule=core_mem, ack.node.gpu.placement=binpack, 4 aliyun.com/gpu-count, "
            "60 aliyun.com/gpu-mem, 400 aliyun.com/gpu-core.percentage",
        ),
        (
            {SHARING: "core_mem"},
            {"nvidia.com/gpu": 4},
            "",
            PROBLEM,
            "it has the label ack.node.gpu.schedule=core_mem, and no ",
        ),
        (
            {SHARING: "default"},
            {GPU_MEMORY: 60},
            "",
            PROBLEM,
            "ack.node.gpu.schedule=default, and it has aliyun.com/gpu-mem",
        ),
        ({}, {GPU_MEMORY: 60}, "it is not ready", PROBLEM, "60 aliyun.com/gpu-mem; it is not ready"),
    ],
)
def test_a_node_reports_what_its_label_says(labels, allocatable, refuses, verdict, text):
    (check,) = check_nodes([GpuNode("n1", labels, allocatable, (), refuses)])

    assert (check.name, check.verdict) == ("node n1", verdict)
    assert check.text.startswith(text)
    assert bool(check.to_do) == (verdict is PROBLEM)
