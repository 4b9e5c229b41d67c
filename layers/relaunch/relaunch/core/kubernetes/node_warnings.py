"""What taints of a node announce: that it is going to be taken away, with the pods on it.

Sources: Karpenter (pkg/apis/v1/taints.go, v1beta1 before), AWS Node Termination Handler (pkg/node/node.go, with
`taintNode`), GKE ("Manage GKE node disruption", and its maintenance handler), the Cluster Autoscaler
(utils/taints/taints.go). What only may be taken away is no warning (`DeletionCandidateOfClusterAutoscaler`), nor is a
node that takes no new pods (`kubectl cordon`), nor a rebalance recommendation.
"""

from collections.abc import Collection, Iterable, Mapping

from relaunch.core.definitions.kubernetes_workload import Toleration
from relaunch.core.kubernetes.node_fit import NodeTaint, is_tolerated

_HANDLER = "the AWS Node Termination Handler"
_WHO: Mapping[str, str] = {
    "karpenter.sh/disrupted": "Karpenter",
    "karpenter.sh/disruption": "Karpenter",
    "aws-node-termination-handler/spot-itn": _HANDLER,
    "aws-node-termination-handler/asg-lifecycle-termination": _HANDLER,
    "aws-node-termination-handler/scheduled-maintenance": _HANDLER,
    "cloud.google.com/impending-node-termination": "GKE",
    "ToBeDeletedByClusterAutoscaler": "the Cluster Autoscaler",
}
"""By the key of a taint, who announces by it that a node is taken away."""


def find_node_warning(taints: Iterable[NodeTaint], tolerations: Collection[Toleration]) -> str:
    """Return who announces that a node is taken away from a pod with these tolerations; empty if nobody does.

    A pod that tolerates such a taint is meant to stay on the node to its end, and would be placed there again.
    """
    found = (each.key for each in taints if each.key in _WHO and not is_tolerated(each, tolerations))
    key = next(found, "")
    return f"warning of {_WHO[key]} that its node is taken away (taint {key})" if key else ""
