"""What taints of a node announce: that it is going to be taken away, with the pods on it.

What is only meant to be taken away is no warning, nor is what may be called off:

- Karpenter taints a node before it launches those that are to replace it, waits for them for up to an hour, and takes
  the taint off again where they do not come up. Only then it deletes the node, whose finalizer keeps it, with a
  `deletionTimestamp`, until its pods are gone; that is never taken back. For spot interruptions, and since 1.0 for
  nodes that expire, it deletes at once and taints afterwards ("Disruption", karpenter.sh; disruption/queue.go, before
  0.33 disruption/controller.go, and node/termination in pkg/controllers, and interruption of its provider for AWS).
- The Cluster Autoscaler takes `ToBeDeletedByClusterAutoscaler` off where a pod of the node may not be evicted, where
  its cloud refuses to end the node, and where it was started again. It evicts pods five seconds after it has set it:
  that warns them (core/scaledown/actuation, core/static_autoscaler.go). `DeletionCandidateOfClusterAutoscaler` says
  less still.
- A node that takes no new pods (`kubectl cordon`), and a rebalance recommendation, mean no end.

Other sources: AWS Node Termination Handler (pkg/node/node.go, with `taintNode`), which removes the taint of scheduled
maintenance where EC2 cancels that, and the others never; GKE ("Manage GKE node disruption", and its maintenance
handler, which deletes the pods, restarts the node, and only then removes the taint).
"""

from collections.abc import Collection, Mapping, Sequence

from relaunch.core.definitions.kubernetes_workload import Toleration
from relaunch.core.kubernetes.node_fit import NodeTaint, is_tolerated
from relaunch.core.records import dataclass

_HANDLER = "the AWS Node Termination Handler"
_WHO: Mapping[str, str] = {
    "karpenter.sh/disrupted": "Karpenter",
    "karpenter.sh/disruption": "Karpenter",
    "aws-node-termination-handler/spot-itn": _HANDLER,
    "aws-node-termination-handler/asg-lifecycle-termination": _HANDLER,
    "aws-node-termination-handler/scheduled-maintenance": _HANDLER,
    "cloud.google.com/impending-node-termination": "GKE",
}
"""By the key of a taint, who announces by it that a node is taken away."""
_ONCE_DELETED = frozenset({"karpenter.sh/disrupted", "karpenter.sh/disruption"})
"""Those which announce it only of a node that is being deleted."""


@dataclass(frozen=True, slots=True)
class NodeSigns:
    """What a node shows of its end: taints, and whether it is being deleted, as its `deletionTimestamp` says."""

    taints: Sequence[NodeTaint] = ()
    is_deleted: bool = False


def find_node_warning(node: NodeSigns, tolerations: Collection[Toleration]) -> str:
    """Return who announces that a node is taken away from a pod with these tolerations; empty if nobody does.

    A pod that tolerates such a taint is meant to stay on the node to its end, and would be placed there again.
    """
    keys = (each.key for each in node.taints if each.key in _WHO and not is_tolerated(each, tolerations))
    key = next((each for each in keys if node.is_deleted or each not in _ONCE_DELETED), "")
    return f"warning of {_WHO[key]} that its node is taken away (taint {key})" if key else ""
