"""What an ACK cluster needs for shared GPUs: versions, region and nodes.

Source: "Configure shared GPU scheduling with computing power allocation", Container Service for Kubernetes, November
14, 2024, and its English page of March 26, 2026.
"""

import re
from collections.abc import Mapping, Sequence

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.kubernetes.ack import COMPUTE_REGIONS, GPU_COMPUTE, GPU_COUNT, GPU_MEMORY, PLACEMENT, SHARING
from relaunch.core.kubernetes.node_fit import GpuNode, find_relabelled

CLUSTER_MINOR = 20
"""The oldest minor version of Kubernetes 1 with shares of compute."""
SCHEDULERS: Mapping[int, str] = {
    20: "1.20.4-ack-8.0",
    22: "1.22.15-ack-2.0",
    24: "1.24.3-ack-2.0",
    26: "v1.26.3-aliyun-4.1-a520c096",
    28: "1.28.1-aliyun-5.6-998282b9",
}
"""By minor version of the cluster, the oldest scheduler with shares of compute."""
CHART = "ack-ai-installer"
OLD_CHART = "1.2.0"
"""The newest chart without shares of compute."""
CGPU = "1.0.5"
"""The oldest cGPU with shares of compute."""

_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(?:-(?:ack|aliyun)-(\d+(?:\.\d+)*))?")
_PAGE = "Operations > Add-ons"
_Numbers = tuple[tuple[int, ...], tuple[int, ...]]


def read_version(text: str) -> _Numbers | None:
    """Return the numbers of a version: those of Kubernetes, and of Alibaba Cloud's release of it; None without any.

    What follows, like the hash of a commit, orders nothing.
    """
    found = _VERSION.match(text)
    if found is None:
        return None
    first, release = (tuple(map(int, part.split("."))) if part else () for part in found.groups())
    return first, release


def check_cluster_version(minor: int, version: str) -> Check:
    """Check the version of the cluster."""
    name = "cluster version"
    if minor >= CLUSTER_MINOR:
        return is_ok(name, version)
    return problem(
        name,
        f"{version}: shares of a GPU's compute need 1.{CLUSTER_MINOR}",
        "upgrade the cluster in the console of ACK",
    )


def check_scheduler(minor: int, version: str) -> Check:
    """Check the version of the scheduler, which only the console of ACK Pro shows; empty if it is not known."""
    name = "scheduler"
    known = [each for each in SCHEDULERS if each <= minor]
    needed = SCHEDULERS[max(known)] if known else SCHEDULERS[min(SCHEDULERS)]
    if not version:
        return unknown(name, f"the cluster does not say its version; {needed} or later is needed", _ask("--scheduler"))
    has = read_version(version)
    least = read_version(needed)
    if has is None or least is None:
        return unknown(name, f"{version!r} is no version like {needed}", _ask("--scheduler"))
    if has >= least:
        return is_ok(name, version)
    hint = f"upgrade kube-scheduler: {_PAGE}; clusters from before March 2022 by a ticket"
    return problem(name, f"{version} gives no shares of compute: {needed} or later does", hint)


def _ask(option: str) -> str:
    return f"the console shows it under {_PAGE}; give it with {option} VERSION"


def check_chart(version: str | None) -> Check:
    """Check the version of the chart of the GPU-sharing component; None if it is not installed."""
    name = CHART
    install = "install the newest: console of ACK, Applications > Cloud-native AI Suite"
    if version is None:
        return problem(name, "it is not installed, so nodes have no shares of a GPU", install)
    has = read_version(version)
    if has is None:
        return unknown(name, f"{version!r} is no version", install)
    if has > (read_version(OLD_CHART) or ((), ())):
        return is_ok(name, version)
    return problem(
        name,
        f"{version} shares memory alone: shares of compute need one after {OLD_CHART}",
        f"delete it, and {install}",
    )


def check_cgpu(versions: Sequence[str]) -> Check:
    """Check the versions of cGPU that images of the cluster name."""
    name = "cGPU"
    ask = "on a node: `cat /proc/cgpu_km/version`"
    read = {version: numbers for version in versions if (numbers := read_version(version)) is not None}
    if not read:
        return unknown(name, f"the cluster does not say its version; {CGPU} or later is needed", ask)
    least = read_version(CGPU) or ((), ())
    old = [version for version, numbers in read.items() if numbers < least]
    if not old:
        return is_ok(name, ", ".join(sorted(read)))
    hint = f"upgrade {CHART}, and add the nodes again"
    return problem(name, f"{', '.join(sorted(old))} gives no shares of compute: {CGPU} does", hint)


def check_region(region: str) -> Check:
    """Check the region of Alibaba Cloud; empty if it is not known."""
    name = "region"
    if not region:
        return unknown(name, "nothing says in which region the cluster is", "give it with --region, like cn-beijing")
    if region in COMPUTE_REGIONS:
        return is_ok(name, f"{region} (Alibaba Cloud)")
    known = ", ".join(COMPUTE_REGIONS)
    return problem(name, f"{region} of Alibaba Cloud has no shares of compute", f"use a cluster in one of {known}")


def check_nodes(nodes: Sequence[GpuNode]) -> tuple[Check, ...]:
    """Check the nodes with shared GPUs: their labels, and whether they report what their labels say."""
    shared = [node for node in nodes if SHARING in node.labels or node.allocatable.get(GPU_MEMORY)]
    if not shared:
        hint = f"make a node pool with the label {SHARING}=core_mem (memory and compute) or cgpu (memory alone)"
        return (problem("nodes", "none shares its GPUs", f"{hint}; nodes that exist have to be added again"),)
    return tuple(_check_node(node) for node in shared)


def _check_node(node: GpuNode) -> Check:
    name = f"node {node.name}"
    if relabelled := find_relabelled(node):
        return problem(
            name, relabelled, f"kubectl drain {node.name}, remove it in the console, add it to the pool again"
        )
    if node.labels.get(SHARING) == "default" and node.allocatable.get(GPU_MEMORY):
        return problem(name, f"{SHARING}=default, and it has {GPU_MEMORY}", "remove the node and add it again")
    has = [
        f"{node.allocatable[each]} {each}"
        for each in (GPU_COUNT, GPU_MEMORY, GPU_COMPUTE)
        if node.allocatable.get(each)
    ]
    labels = [f"{each}={node.labels[each]}" for each in (SHARING, PLACEMENT) if each in node.labels]
    text = ", ".join((*labels, *has, *(f"taint {each}" for each in node.taints)))
    if node.refuses:
        return problem(name, f"{text}; {node.refuses}", f"kubectl describe node {node.name}")
    return is_ok(name, text)
