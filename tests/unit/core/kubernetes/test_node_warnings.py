"""What taints of a node announce."""

import pytest

from relaunch.core.definitions.kubernetes_workload import TaintEffect, Toleration
from relaunch.core.kubernetes.node_fit import NodeTaint
from relaunch.core.kubernetes.node_warnings import NodeSigns, find_node_warning

GKE = "cloud.google.com/impending-node-termination"
HANDLER = "the AWS Node Termination Handler"


@pytest.mark.parametrize(
    ("key", "value", "who"),
    [
        ("aws-node-termination-handler/spot-itn", "1762950000", HANDLER),
        ("aws-node-termination-handler/asg-lifecycle-termination", "", HANDLER),
        ("aws-node-termination-handler/scheduled-maintenance", "", HANDLER),
        (GKE, "", "GKE"),
    ],
)
def test_a_node_that_is_taken_away_is_announced_by_a_taint(key, value, who):
    taints = [NodeTaint("nvidia.com/gpu", "true", "NoSchedule"), NodeTaint(key, value, "NoSchedule")]

    for is_deleted in (False, True):
        found = find_node_warning(NodeSigns(taints, is_deleted), ())
        assert found == f"warning of {who} that its node is taken away (taint {key})"


@pytest.mark.parametrize(("key", "value"), [("karpenter.sh/disrupted", ""), ("karpenter.sh/disruption", "disrupting")])
def test_karpenter_takes_its_taint_back_until_it_has_deleted_the_node(key, value):
    taints = [NodeTaint(key, value, "NoSchedule")]

    assert find_node_warning(NodeSigns(taints), ()) == ""
    found = find_node_warning(NodeSigns(taints, is_deleted=True), ())
    assert found == f"warning of Karpenter that its node is taken away (taint {key})"


def test_a_taint_that_may_be_taken_back_hides_none_that_is_not():
    keys = ("karpenter.sh/disrupted", "aws-node-termination-handler/spot-itn")

    found = find_node_warning(NodeSigns([NodeTaint(each, "", "NoSchedule") for each in keys]), ())

    assert found == f"warning of {HANDLER} that its node is taken away (taint {keys[1]})"


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize(
    "key",
    [
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/unreachable",
        "aws-node-termination-handler/rebalance-recommendation",
    ],
)
def test_what_may_go_or_takes_no_new_pods_is_no_warning(key, is_deleted):
    assert find_node_warning(NodeSigns([NodeTaint(key, "", "NoSchedule")], is_deleted), ()) == ""


@pytest.mark.parametrize(
    ("toleration", "is_warned"),
    [
        (Toleration(GKE), False),
        (Toleration(effect=TaintEffect.NO_SCHEDULE), False),
        (Toleration(effect=TaintEffect.NO_EXECUTE), True),
        (Toleration("nvidia.com/gpu"), True),
    ],
)
def test_a_pod_that_tolerates_the_taint_stays_to_its_end(toleration, is_warned):
    found = find_node_warning(NodeSigns([NodeTaint(GKE, "", "NoSchedule")]), [toleration])

    assert bool(found) is is_warned
