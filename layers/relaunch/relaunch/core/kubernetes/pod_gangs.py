"""Jobs of several nodes in a cluster: what their pods have to be told apart by, to find each other, and to be a group.

Each node is a pod of one Job with completion mode Indexed, whose index is its rank. They meet at the name of the first
one, which DNS knows by a headless Service.

Sources: "Job with Pod-to-Pod Communication" and "DNS for Services and Pods", Kubernetes documentation; "Use Gang
scheduling", Container Service for Kubernetes; NVIDIA Multi-Instance GPU User Guide (no communication between GPU
instances), and NCCL, which refuses two ranks on one GPU ("Duplicate GPU detected").
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.pod_gpus import WHOLE_GPUS
from relaunch.core.kubernetes.problem import GPU, Problem, of_workload

KNOWS_GANGS = 24
"""The minor version of the first servers whose Indexed Jobs are stable; 1.21 to 1.23 have them in part, if at all, and
older ones drop the field and start pods without a rank."""

GROUP_NAME = "pod-group.scheduling.sigs.k8s.io/name"
GROUP_SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
"""The labels of pods by which the scheduler of ACK makes a group of them."""

_GROUP = frozenset({GROUP_NAME, GROUP_SIZE})
_TAKEN = "is taken: Relaunch sets it for a job with `nodes`"
_PART_OF_GPU = re.compile(r"nvidia\.com/(?:mig-.+|.+\.shared)")
_NAMES = {
    "hostname": "a cluster gives each pod its own, by which the others find it",
    "subdomain": "it is the Service of the job, by which its pods find each other",
    "setHostnameAsFQDN": "the name with the Service would be longer than a host's may be",
}
_DNS = frozenset({"ClusterFirst", "ClusterFirstWithHostNet"})


def group_labels(target: Target, name: str, nodes: int) -> Mapping[str, str]:
    """Return the labels by which the scheduler of a target places all pods of a job together; none for one pod.

    `name` is that of the Job, so that each placement is a group of its own.
    """
    if nodes == 1 or not target.capabilities.has_pod_groups:
        return {}
    return {GROUP_NAME: name, GROUP_SIZE: str(nodes)}


def find_gang_problems(workload: KubernetesWorkload, resources: Collection[str]) -> tuple[Problem, ...]:
    """Return why the pods of a job of several nodes could not train together; `resources` are those of its GPUs."""
    taken = (of_workload("labels", f"`{key}` {_TAKEN}") for key in sorted(workload.labels.keys() & _GROUP))
    return (*_share_problems(workload, resources), *taken)


def _share_problems(workload: KubernetesWorkload, resources: Collection[str]) -> Iterator[Problem]:
    if not set(resources) <= {WHOLE_GPUS, workload.gpu_resource}:
        text = (
            "a job with `nodes` trains on whole GPUs: shares of several GPUs are slower than one whole GPU, and NCCL "
            "refuses two ranks on the same one; leave the share out, or leave `nodes` out"
        )
        yield Problem(GPU, text)
    if _PART_OF_GPU.fullmatch(workload.gpu_resource):
        text = (
            f"`{workload.gpu_resource}` is a part of a GPU, which NCCL cannot join with others: a job with `nodes` "
            "trains on whole GPUs"
        )
        yield of_workload("gpu_resource", text)


def find_gang_fragment_problems(workload: KubernetesWorkload) -> Iterator[Problem]:
    """Yield what the fragment of a job of several nodes may not say, if it is one that any job may have."""
    pod: Any = workload.pod
    for key in sorted(pod.get("metadata", {}).get("labels", {}).keys() & _GROUP):
        yield of_workload("pod", f"`pod.metadata.labels.{key}` {_TAKEN}", "metadata", "labels", key)
    spec = pod.get("spec", {})
    for key, why in _NAMES.items():
        if key in spec:
            text = f"`pod.spec.{key}` may not be set for a job with `nodes`: {why}"
            yield of_workload("pod", text, "spec", key)
    if spec.get("dnsPolicy", "ClusterFirst") not in _DNS:
        text = (
            "`pod.spec.dnsPolicy` must be ClusterFirst for a job with `nodes`: its pods meet at a name of the cluster"
        )
        yield of_workload("pod", text, "spec", "dnsPolicy")


def find_group_notices(target: Target, workload: KubernetesWorkload, nodes: int) -> tuple[str, ...]:
    """Return what the owner of a job of several nodes should know of how its pods are placed."""
    if nodes == 1 or target.capabilities.has_pod_groups or workload.queue:
        return ()
    return (
        f"{target} places the {nodes} pods of a job one by one: those that have a node hold it until all do, or until "
        "the job is withdrawn and tried again; a `kubernetes.queue` admits all of them or none",
    )
