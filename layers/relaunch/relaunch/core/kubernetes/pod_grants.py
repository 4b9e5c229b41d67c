"""What a stack lets the pods of its jobs run, and where: parameters of the stack, as there are for task definitions.

The namespace is one of them, KubernetesNamespace: no definition chooses another.
"""

from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class PodGrants:
    """What pods may have.

    `images` are names with their registry, without tag or digest, or beginnings of such names followed by `*`; None
    stands for any. `service_accounts` are names, or beginnings of names followed by `*`. `nodes` are the labels with
    which they find their nodes, where the target does not know them.
    """

    images: tuple[str, ...] | None = None
    service_accounts: tuple[str, ...] = ()
    nodes: NodeLabels = NodeLabels()
