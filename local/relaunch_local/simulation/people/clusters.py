"""Clusters of Alibaba Cloud that people have checked with `relaunch doctor`, whole ones and ones with faults.

What each needs is in "Configure shared GPU scheduling with computing power allocation" and "Run pods on ACS using
virtual nodes", Container Service for Kubernetes, and "Configure an acs-profile", Container Compute Service.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

from relaunch.core.checks import Check as Found
from relaunch.core.checks import problem
from relaunch.core.definitions.kubernetes_workload import ComputeClass
from relaunch.core.kubernetes import ack_checks, acs_checks
from relaunch.core.kubernetes.acs_drivers import AcsDrivers, ModelDrivers
from relaunch.core.kubernetes.acs_profile import NoDefaultDriverError, PodSelection, remove_driver, set_driver
from relaunch.core.kubernetes.node_fit import GpuNode
from relaunch_local.simulation.checks.record import Check

_DRIVERS = AcsDrivers(date(2026, 9, 24), {"T4": ModelDrivers(("535.161.08",)), "L20": ModelDrivers(("550.90.07",))})
_CLASS = "alibabacloud.com/compute-class"
_MODEL = "alibabacloud.com/gpu-model-series"
_DRIVER = "alibabacloud.com/gpu-driver-version"
_VIRTUAL = {"type": "virtual-kubelet"}
_RESERVED = {"alibabacloud.com/node-type": "reserved", _MODEL: "L20"}
_SHARING = "ack.node.gpu.schedule"
_MEMORY = "aliyun.com/gpu-mem"
_COMPUTE = "aliyun.com/gpu-core.percentage"
# By minor version of the cluster: the oldest scheduler with shares of compute, and one before it.
_SCHEDULERS = {
    20: ("1.20.4-ack-8.0", "1.20.4-ack-7.0"),
    21: ("1.20.4-ack-8.0", "v1.20.4-ack-7.9"),
    22: ("1.22.15-ack-2.0", "1.22.15-ack-1.0"),
    24: ("1.24.3-ack-2.0", "v1.22.15-ack-2.0"),
    26: ("v1.26.3-aliyun-4.1-a520c096", "v1.26.3-aliyun-4.0-ffffffff"),
    28: ("1.28.1-aliyun-5.6-998282b9", "1.28.1-aliyun-5.5-998282b9"),
    30: ("1.30.1-aliyun-6.0", "1.28.1-aliyun-5.5-998282b9"),
}


def ask_for_clusters(check: Check, dice: random.Random) -> None:
    """Check what is found of some clusters: each fault of theirs and nothing else, and what to do about it."""
    for expected, find in (_draw_ack(dice), _draw_nodes_of_ack(dice), _draw_acs(dice), _draw_profile(dice)):
        try:
            found = list(find())
        except Exception as error:  # noqa: BLE001 - whatever it is, who asks learns nothing of the cluster
            found = [problem("the command", repr(error), "nothing")]
        wrong = {each.name: each.verdict.value for each in found if each.verdict.value != "ok"}
        message = f"{wrong}, not {dict(expected)}"
        check("whoever has a cluster checked learns what it lacks", wrong == expected, message)
        mute = [each for each in found if not (each.text and (each.verdict.value == "ok" or each.to_do))]
        check("whoever has a cluster checked learns what to do", not mute, str(mute))
    _ask_for_default(check, dice)


Drawn = tuple[Mapping[str, str], Callable[[], Iterable[Found]]]
"""The verdicts that are not `ok`, by the names of checks, and what makes the checks."""


def _draw_ack(dice: random.Random) -> Drawn:
    minor = dice.choice(sorted(_SCHEDULERS))
    newest, old = _SCHEDULERS[minor]
    scheduler, chart, region = (dice.random() < 0.4 for _ in range(3))
    cgpu = dice.choice(("", "old", "none"))
    versions = {"": ["1.0.5", "1.5.2"], "old": ["1.5.2", "1.0.3"], "none": ["latest"]}[cgpu]
    wrong = {"scheduler": scheduler, "ack-ai-installer": chart, "region": region, "cGPU": cgpu == "old"}
    expected = {name: "problem" for name, is_wrong in wrong.items() if is_wrong}
    expected |= {"cGPU": "unknown"} if cgpu == "none" else {}

    def find() -> Iterable[Found]:
        yield ack_checks.check_cluster_version(minor, f"v1.{minor}.3")
        yield ack_checks.check_scheduler(minor, old if scheduler else newest)
        yield ack_checks.check_chart(dice.choice((None, "1.2.0", "1.1.9")) if chart else "1.12.5")
        yield ack_checks.check_cgpu(versions)
        yield ack_checks.check_region("cn-wulanchabu" if region else "cn-beijing")

    return expected, find


def _draw_nodes_of_ack(dice: random.Random) -> Drawn:
    """Draw nodes with shared GPUs; one that was given its label later has none of what that says."""
    whole = GpuNode("node-1", {_SHARING: "core_mem"}, {_MEMORY: 15, _COMPUTE: 100})
    memory = GpuNode("node-2", {_SHARING: "cgpu"}, {_MEMORY: 15})
    labelled = GpuNode("node-3", {_SHARING: "core_mem"}, {_MEMORY: 15})
    cut_off = GpuNode("node-4", {_SHARING: "cgpu"}, {_MEMORY: 15}, refuses="it is not ready")
    other = GpuNode("node-5", {}, {"nvidia.com/gpu": 1})
    nodes = dice.sample((whole, memory, labelled, cut_off, other), dice.randint(1, 5))
    expected = {f"node {each.name}": "problem" for each in nodes if each in (labelled, cut_off)}
    expected |= {"nodes": "problem"} if nodes == [other] else {}
    return expected, lambda: ack_checks.check_nodes(nodes)


def _draw_acs(dice: random.Random) -> Drawn:
    has_virtual, has_reserved, has_other = (dice.random() < 0.6 for _ in range(3))
    lost = dice.choice(("", "virtual", "reserved"))
    nodes = [acs_checks.AcsNode("virtual", _VIRTUAL, lost != "virtual")] if has_virtual else []
    nodes += [acs_checks.AcsNode("reserved", {**_VIRTUAL, **_RESERVED}, lost != "reserved")] if has_reserved else []
    nodes += [acs_checks.AcsNode("worker", {"role": "worker"}, is_ready=True)] if has_other else []
    expected = {} if has_virtual and lost != "virtual" else {"virtual nodes": "problem"}
    expected |= {"gpu-hpn nodes": "problem"} if has_reserved and lost == "reserved" else {}
    expected |= {"alibabacloud.com/acs": "unknown"} if has_other else {}
    return expected, lambda: acs_checks.check_nodes(nodes, _DRIVERS)


def _draw_profile(dice: random.Random) -> Drawn:
    kind = dice.choice(("whole", "none", "no JSON", "no version", "twins", "another driver"))
    wrong = {
        "whole": {},
        "none": {"acs-profile": "problem"},
        "no JSON": {"acs-profile": "problem"},
        "no version": {"acs-profile b": "problem"},
        "twins": {"acs-profile a": "problem", "acs-profile b": "problem"},
        "another driver": {"acs-profile b": "unknown"},
    }
    second = {"no version": "newest", "another driver": "470.82.01"}.get(kind, "550.90.07")
    selectors = [_selector("a", "T4", "535.161.08"), _selector("b", "T4" if kind == "twins" else "L20", second)]
    text = None if kind == "none" else json.dumps(selectors)[: -1 if kind == "no JSON" else None]
    return wrong[kind], lambda: acs_checks.check_profile(text, _DRIVERS)


def _selector(name: str, model: str, driver: str) -> dict[str, Any]:
    labels = {_CLASS: "gpu", _MODEL: model}
    return {"name": name, "objectSelector": {"matchLabels": labels}, "effect": {"labels": {_DRIVER: driver}}}


def _ask_for_default(check: Check, dice: random.Random) -> None:
    """Check that a default driver that is set is that of its pods alone, and that all is as before once it is not."""
    before = [_selector("a", "T4", "535.161.08")] * dice.randint(0, 1)
    model = dice.choice(("L20", "T4"))
    pods = PodSelection(ComputeClass.GPU, model)
    labels = {_CLASS: "gpu", _MODEL: model}
    message = f"{model} beside {len(before)} more"
    try:
        text = set_driver(json.dumps(before), pods, "550.90.07")
        after = json.loads(text)
        left = json.loads(remove_driver(text, pods) or "[]")
        is_told = _is_refused(json.dumps(left), pods)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing is set
        after = left = []
        is_told = False
        message = repr(error)
    own = [each["effect"]["labels"][_DRIVER] for each in after if each["objectSelector"]["matchLabels"] == labels]
    others = [each for each in before if each["objectSelector"]["matchLabels"] != labels]
    is_kept = all(each in after for each in others)
    check("a default driver of ACS is that of its pods", own == ["550.90.07"] and is_kept, message)
    check("a default driver of ACS that is removed leaves the others", left == others and is_told, message)


def _is_refused(text: str, pods: PodSelection) -> bool:
    """Return whether who removes what is not there learns so, in words about selectors."""
    try:
        remove_driver(text, pods)
    except NoDefaultDriverError as error:
        return str(error).startswith("no selector")
    return False
