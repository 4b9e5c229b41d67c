"""What taints of a node announce."""

import pytest

from relaunch.core.definitions.kubernetes_workload import TaintEffect, Toleration
from relaunch.core.kubernetes.node_fit import NodeTaint
from relaunch.core.kubernetes.node_warnings import find_node_warning

HANDLER = "the AWS Node Termination Handler"


@pytest.mark.parametrize(
    ("key", "value", "who"),
    [
        ("karpenter.sh/disrupted", "", "Karpenter"),
        ("karpenter.sh/disruption", "disrupting", "Karpenter"),
        ("aws-node-termination-handler/spot-itn", "1762950000", HANDLER),
        ("aws-node-termination-handler/asg-lifecycle-termination", "", HANDLER),
        ("aws-node-termination-handler/scheduled-maintenance", "", HANDLER),
        ("cloud.google.com/impending-node-termination", "", "GKE"),
        ("ToBeDeletedByClusterAutoscaler", "1762950000", "the Cluster Autoscaler"),
    ],
)
def test_a_node_that_is_taken_away_is_announced_by_a_taint(key, value, who):
    taints = [NodeTaint("nvidia.com/gpu", "true", "NoSchedule"), NodeTaint(key, value, "NoSchedule")]

    assert find_node_warning(taints, ()) == f"warning of {who} that its node is taken away (taint {key})"


@pytest.mark.parametrize(
    "key",
    [
        "DeletionCandidateOfClusterAutoscaler",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/unreachable",
        "aws-node-termination-handler/rebalance-recommendation",
    ],
)
def test_what_may_go_or_takes_no_new_pods_is_no_warning(key):
    assert find_node_warning([NodeTaint(key, "", "NoSchedule")], ()) == ""


@pytest.mark.parametrize(
    ("toleration", "is_warned"),
    [
        (Toleration("karpenter.sh/disrupted"), False),
        (Toleration(effect=TaintEffect.NO_SCHEDULE), False),
        (Toleration(effect=TaintEffect.NO_EXECUTE), True),
        (Toleration("nvidia.com/gpu"), True),
    ],
)
def test_a_pod_that_tolerates_the_taint_stays_to_its_end(toleration, is_warned):
    found = find_node_warning([NodeTaint("karpenter.sh/disrupted", "", "NoSchedule")], [toleration])

    assert bool(found) is is_warned
