"""The targets, and what each can do: whoever depends on that asks for it, and never for a name."""

from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a target can do.

    `takes_task_definition`: a task runs an ECS task definition; without one it runs what the job definition says.
    `runs_pods`: a task is a Job of a Kubernetes cluster with one pod, which the key `kubernetes` describes.
    `runs_on_ec2`: its nodes are EC2 instances, of which EC2 tells, and a task can be kept to one of them.
    `offers_instance_types`: its capacity is instance types in zones, and their prices decide which one is selected.
    `has_spot`: a job can choose capacity that may be taken away. `sends_events`: changes of its tasks arrive as events;
    otherwise it is asked every minute. `describes_by_listing`: what describes one task lists all of them.
    `keeps_pending_tasks`: a task that finds no node waits in the cluster for as long as it is left there.
    `reads_oss`: a task can have its checkpoints in Alibaba Cloud OSS. `has_compute_classes`: a job chooses the compute
    class of its GPUs. `takes_gpu_driver`: a job chooses the version of its GPU driver. `has_node_labels`: the stack
    says which labels its nodes have for the model of their GPUs and for how they are bought. `has_node_taints`: its
    nodes announce by taints that they are taken away. `is_on_alibaba_cloud`: functions sign in to it as a RAM role of
    Alibaba Cloud, otherwise with their own roles of AWS, or with a kubeconfig. `notice_window`: the end of a task
    within this time after a warning is attributed to it. `has_pod_groups`: its scheduler places the pods of a job of
    several nodes all together, or none of them.
    """

    takes_task_definition: bool
    runs_pods: bool
    runs_on_ec2: bool
    offers_instance_types: bool
    has_spot: bool
    sends_events: bool
    describes_by_listing: bool
    keeps_pending_tasks: bool
    reads_oss: bool
    has_compute_classes: bool
    takes_gpu_driver: bool
    has_node_labels: bool
    has_node_taints: bool
    is_on_alibaba_cloud: bool
    notice_window: timedelta
    has_pod_groups: bool


_ECS = Capabilities(
    takes_task_definition=True,
    runs_pods=False,
    runs_on_ec2=True,
    offers_instance_types=True,
    has_spot=True,
    sends_events=True,
    describes_by_listing=False,
    keeps_pending_tasks=False,
    reads_oss=False,
    has_compute_classes=False,
    takes_gpu_driver=False,
    has_node_labels=False,
    has_node_taints=False,
    is_on_alibaba_cloud=False,
    # Two minutes ahead.
    notice_window=timedelta(minutes=3),
    # Its ranks are tasks, which are launched when all machines are ready.
    has_pod_groups=False,
)
_KUBERNETES = Capabilities(
    takes_task_definition=False,
    runs_pods=True,
    # Nodes of EKS are EC2 instances, but of their warnings the cluster tells.
    runs_on_ec2=False,
    offers_instance_types=False,
    # By a label of nodes, which the stack has to name.
    has_spot=True,
    sends_events=False,
    describes_by_listing=True,
    keeps_pending_tasks=True,
    reads_oss=True,
    has_compute_classes=False,
    takes_gpu_driver=False,
    has_node_labels=True,
    has_node_taints=True,
    is_on_alibaba_cloud=False,
    # A spot node of AWS ends after two minutes; the cluster autoscaler gives pods up to ten (its `max-graceful-
    # termination-sec`), and ACS announces it five ahead ("Overview of BestEffort computing"). A pod then has its grace
    # period.
    notice_window=timedelta(minutes=10),
    # Its own scheduler places one pod after the other; a queue such as Kueue admits all of a Job.
    has_pod_groups=False,
)
# Nodes of a pool of spot instances are taken away too, but a job cannot choose them by its purchase option.
# Its scheduler makes groups by labels ("Use Gang scheduling", ACK managed Pro clusters).
_ACK = replace(_KUBERNETES, has_spot=False, has_node_labels=False, is_on_alibaba_cloud=True, has_pod_groups=True)
# Spot is its quality of service `best-effort`; its nodes are virtual. It groups pods by objects of another kind, which
# the functions may not make.
_ACS = replace(
    _ACK,
    has_spot=True,
    has_compute_classes=True,
    takes_gpu_driver=True,
    has_node_taints=False,
    has_pod_groups=False,
)


class Target(StrEnum):
    """Where the tasks of a job run."""

    ECS = "ecs"  # Amazon ECS
    KUBERNETES = "kubernetes"  # any cluster whose nodes have NVIDIA's device plug-in
    ACK = "ack"  # Alibaba Cloud Container Service for Kubernetes
    ACS = "acs"  # Alibaba Cloud Container Compute Service

    @property
    def capabilities(self) -> Capabilities:
        """Return what the target can do, which never changes."""
        match self:
            case Target.ECS:
                return _ECS
            case Target.KUBERNETES:
                return _KUBERNETES
            case Target.ACK:
                return _ACK
            case Target.ACS:
                return _ACS
            case _:
                assert_never(self)


WITH_PODS = tuple(each for each in Target if each.capabilities.runs_pods)
"""The targets that are clusters of Kubernetes."""
