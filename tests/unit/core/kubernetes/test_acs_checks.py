"""The checks of an ACS cluster: silent on a whole one, and each fault found with what to do."""

import json
from datetime import date
from typing import Any

import pytest

from relaunch.core.checks import Check, Verdict
from relaunch.core.kubernetes.acs_checks import AcsNode, check_nodes, check_profile
from relaunch.core.kubernetes.acs_drivers import AcsDrivers, ModelDrivers

OK, PROBLEM, UNKNOWN = Verdict.OK, Verdict.PROBLEM, Verdict.UNKNOWN
DRIVERS = AcsDrivers(
    date(2026, 9, 24), {"T4": ModelDrivers(("535.161.08",)), "P16EN": ModelDrivers(("1.5.0",), is_nvidia=False)}
)
CLASS, MODEL = "alibabacloud.com/compute-class", "alibabacloud.com/gpu-model-series"
EDIT = "kubectl -n kube-system edit configmap acs-profile"
INSTALL = "install acs-virtual-node (in an ACK cluster ack-virtual-node) in the console, under Operations > Add-ons"


def selector(driver: str, name: str | None = "a", model: str = "T4", **members: Any) -> dict[str, Any]:
    labels = {CLASS: "gpu", MODEL: model} if model else {CLASS: "gpu"}
    effect = {"labels": {"alibabacloud.com/gpu-driver-version": driver}}
    return {"name": name, "objectSelector": {"matchLabels": labels}, "effect": effect} | members


def profile(*selectors: dict[str, Any]) -> list[tuple[str, Verdict]]:
    return [(each.name, each.verdict) for each in check_profile(json.dumps(selectors), DRIVERS)]


def node(name: str = "virtual-1", *, is_ready: bool = True, **labels: str) -> AcsNode:
    named = {"model": MODEL, "kind": "alibabacloud.com/node-type", "type": "type"}
    return AcsNode(name, {named[key]: value for key, value in labels.items()}, is_ready)


VIRTUAL = node(type="virtual-kubelet")
RESERVED = node("reserved-1", type="virtual-kubelet", kind="reserved", model="P16EN")


def test_drivers_that_can_be_had_are_no_problem():
    listed = [selector("535.161.08"), selector("1.5.0", "any", model="")]
    assert list(check_profile(json.dumps(listed), DRIVERS)) == [
        Check("acs-profile a", OK, "driver 535.161.08"),
        Check("acs-profile any", OK, "driver 1.5.0"),
    ]
    assert profile({"name": "other", "effect": {"annotations": {"a": "b"}}}) == [("acs-profile", OK)]
    for empty in ("", "[]"):
        (check,) = check_profile(empty, DRIVERS)
        assert check == Check("acs-profile", OK, "it sets no driver: ACS's default for the model counts")


@pytest.mark.parametrize(
    ("selectors", "check"),
    [
        (None, Check("acs-profile", PROBLEM, "there is no ConfigMap kube-system/acs-profile", INSTALL)),
        ("{}", Check("acs-profile", PROBLEM, "ACS ignores its selectors: it is no array of objects", EDIT)),
        (
            json.dumps([selector("newest", None)]),
            Check("acs-profile without a name", PROBLEM, "'newest' is not a driver version", EDIT),
        ),
    ],
)
def test_what_acs_ignores_or_lacks_is_a_problem(selectors, check):
    assert list(check_profile(selectors, DRIVERS)) == [check]


def test_a_driver_that_the_list_does_not_have_is_not_known():
    (check,) = check_profile(json.dumps([selector("1.5.0")]), DRIVERS)

    assert (check.verdict, check.text) == (UNKNOWN, "driver 1.5.0 is not in ACS's list for T4 (535.161.08; 2026-09-24)")
    assert "relaunch acs-profile" in check.to_do
    assert profile(selector("1.4.1", model="")) == [("acs-profile a", UNKNOWN)]


def test_two_drivers_for_the_same_pods_are_a_problem():
    twins = (selector("535.161.08", "a"), selector("1.5.0", "b", namespaceSelector={}))
    in_team = selector("535.161.08", "team", namespaceSelector={"matchLabels": {"team": "vision"}})

    checks = list(check_profile(json.dumps([*twins, in_team]), DRIVERS))

    assert [each.verdict for each in checks] == [PROBLEM, PROBLEM, OK]
    text = "driver 535.161.08, and 1 more for the same pods: which one counts is not documented"
    assert checks[0] == Check("acs-profile a", PROBLEM, text, EDIT)


def test_a_cluster_with_virtual_nodes_is_whole():
    assert list(check_nodes([VIRTUAL], DRIVERS)) == [
        Check("virtual nodes", OK, "1 with the label type=virtual-kubelet"),
        Check("gpu-hpn nodes", OK, "none: a job of class gpu-hpn would find no node"),
    ]
    *_, reserved = check_nodes([VIRTUAL, RESERVED], DRIVERS)
    assert reserved == Check("gpu-hpn nodes", OK, "1 of P16EN")


@pytest.mark.parametrize("nodes", [[], [RESERVED]])
def test_without_virtual_nodes_pods_of_class_gpu_have_no_place(nodes):
    first, *_ = check_nodes(nodes, DRIVERS)

    text = "no node has the label type=virtual-kubelet: pods of class gpu find none"
    assert first == Check("virtual nodes", PROBLEM, text, INSTALL)


def test_nodes_that_are_not_ready_are_named():
    lost = node("virtual-2", type="virtual-kubelet", is_ready=False)
    third = node("virtual-3", type="virtual-kubelet", is_ready=False)
    lost_reserved = node("reserved-2", kind="reserved", model="P16EN", is_ready=False)

    virtual, reserved = check_nodes([VIRTUAL, lost, third, RESERVED, lost_reserved], DRIVERS)

    text = "3 with the label type=virtual-kubelet; not ready: virtual-2, virtual-3"
    assert virtual == Check("virtual nodes", PROBLEM, text, "kubectl describe node virtual-2")
    assert (reserved.text, reserved.to_do) == ("2 of P16EN; not ready: reserved-2", "kubectl describe node reserved-2")
    assert reserved.verdict is PROBLEM


def test_beside_other_nodes_pods_need_a_label():
    _, label, _ = check_nodes([VIRTUAL, node("ecs-1")], DRIVERS)

    assert label == Check(
        "alibabacloud.com/acs",
        UNKNOWN,
        "the cluster has other nodes, too: pods run on ACS only with the label alibabacloud.com/acs=true",
        'in each definition for acs: kubernetes: {labels: {alibabacloud.com/acs: "true"}}',
    )


def test_models_of_reserved_nodes_that_the_list_does_not_have_are_named():
    others = [
        node("b", kind="reserved", model="H20"),
        node("c", kind="reserved"),
        node("d", kind="reserved", model="H20"),
    ]

    _, models, unlisted = check_nodes([VIRTUAL, *others], DRIVERS)

    assert models == Check("gpu-hpn nodes", OK, "1 of a model that is not told, 2 of H20")
    text = "ACS's list of drivers (2026-09-24) has no model H20: its drivers cannot be checked"
    assert (unlisted.name, unlisted.verdict, unlisted.text) == ("model H20", UNKNOWN, text)
    assert "relaunch acs-profile" in unlisted.to_do
