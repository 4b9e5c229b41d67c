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
    class of its GPUs. `takes_gpu_driver`: a job chooses the version of its GPU driver. `notice_window`: the end of a
    task within this time after a warning is attributed to it.
    `runs_several_nodes`: a job may have several tasks at once, each on a machine for itself.
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
    notice_window: timedelta
    runs_several_nodes: bool


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
    # Two minutes ahead.
    notice_window=timedelta(minutes=3),
    runs_several_nodes=True,
)
_ACK = Capabilities(
    takes_task_definition=False,
    runs_pods=True,
    runs_on_ec2=False,
    offers_instance_types=False,
    # Nodes of a pool of spot instances are taken away too, but a job cannot choose them by its purchase option.
    has_spot=False,
    sends_events=False,
    describes_by_listing=True,
    keeps_pending_tasks=True,
    reads_oss=True,
    has_compute_classes=False,
    takes_gpu_driver=False,
    # ACS announces it five minutes ahead ("Overview of BestEffort computing"), and a pod then has its grace period.
    notice_window=timedelta(minutes=10),
    runs_several_nodes=False,
)
# Spot is its quality of service `best-effort`.
_ACS = replace(_ACK, has_spot=True, has_compute_classes=True, takes_gpu_driver=True)


class Target(StrEnum):
    """Where the tasks of a job run."""

    ECS = "ecs"  # Amazon ECS
    ACK = "ack"  # Alibaba Cloud Container Service for Kubernetes
    ACS = "acs"  # Alibaba Cloud Container Compute Service

    @property
    def capabilities(self) -> Capabilities:
        """Return what the target can do, which never changes."""
        match self:
            case Target.ECS:
                return _ECS
            case Target.ACK:
                return _ACK
            case Target.ACS:
                return _ACS
            case _:
                assert_never(self)
