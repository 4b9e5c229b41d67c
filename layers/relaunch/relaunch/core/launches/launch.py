"""What a target is asked to launch, its answers, and what it reports of tasks and nodes.

These are the words of the port `TaskTarget`; what they stand for in a target, and its texts, only its adapter knows.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.machines.machine import NOTHING, Resources
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class WholeGpus:
    """A number of whole GPUs for the container alone."""

    count: int


@dataclass(frozen=True, slots=True)
class GpuPartition:
    """The fraction of a GPU of a fractional instance type (g6f, gr6f), above 0 and below 1."""

    size: float


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A share of a GPU: memory in MiB, and a limit on compute in percent, which is not reserved."""

    memory_mib: int
    max_compute_percent: int


@dataclass(frozen=True, slots=True)
class NeuronDevices:
    """Neuron devices of the node by their zero-based indices, which the revision lists."""

    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllNeuronDevices:
    """All Neuron devices of the node, which the target assigns."""


Accelerators = WholeGpus | GpuPartition | GpuShare | NeuronDevices | AllNeuronDevices


def choose_gpus(gpu: GpuRequirement | None, partition_size: float) -> WholeGpus | GpuPartition | GpuShare | None:
    """Return what to ask for to have the definition's GPUs; None to keep the requirement of the revision.

    `partition_size` is that of the chosen instance type: 1 for whole GPUs.
    """
    if gpu is None:
        return None
    if not gpu.is_share:
        return WholeGpus(gpu.count)
    if partition_size < 1:
        return GpuPartition(partition_size)
    return GpuShare(gpu.memory_mib or 0, gpu.compute_percent or 0)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One placement: what to run, and where; derived from the placement only, so that a repeated request is identical.

    A target launches one task for a placement, however often it is asked to: the revision with the `command` (unless
    empty) and `environment` of its main `container`. `accelerators` None keeps those of the revision, which has
    `own_constraint_count` placement constraints. One without task definitions runs the `workload`, with the GPUs `gpu`.

    Where is `offering`: by `capacity_provider`, or, if `instance_id` is set, on that machine of our own and no other.
    A launch by a capacity provider is kept from the `avoided_instances`.

    With `followers` a placement has several tasks, all of them or none: rank 0 as said before, and one on each of these
    instances. All have the same revision, command and environment, but for the variables `rank_environment` of each.
    `rank` is which of them a request for one task of several is for (`ranks`). A target of pods places one task of
    `nodes` pods, all or none as far as its scheduler can, and gives each its rank and the address of the first.
    """

    attempt: AttemptKey
    placement_number: int
    revision_arn: str
    container: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    offering: OfferingKey
    accelerators: Accelerators | None = None
    capacity_provider: str = ""
    instance_id: str = ""
    avoided_instances: tuple[str, ...] = ()
    network_mode: str = "bridge"
    own_constraint_count: int = 0
    workload: KubernetesWorkload | None = None
    gpu: GpuRequirement | None = None
    followers: tuple[str, ...] = ()
    rank_environment: tuple[Mapping[str, str], ...] = ()
    rank: int = 0
    nodes: int = 1

    @property
    def ranks(self) -> "tuple[LaunchRequest, ...]":
        """Return the request of each task, which is this one for a placement with one."""
        if not self.followers:
            return (self,)
        return tuple(
            replace(
                self,
                instance_id=instance_id,
                environment={**self.environment, **self.rank_environment[rank]},
                rank=rank,
                followers=(),
                rank_environment=(),
            )
            for rank, instance_id in enumerate((self.instance_id, *self.followers))
        )


class Shortage(StrEnum):
    """What a placement failed for, as far as a decision depends on it."""

    GPU = "gpu"  # no node has the GPUs, or the share of one
    PORTS = "ports"  # a host port is taken on every node
    ROOM = "room"  # no node has the CPU, the memory or the network interfaces left
    AGENT = "agent"  # the agent of the node is not connected now
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TaskPlaced:
    """The target has the task, and the `followers` of a job of several nodes; it tells since when, or does not."""

    task_id: str
    followers: tuple[str, ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlacementFailed:
    """No node has room: there is no task, and there will be none for this placement.

    `reasons` are those of the target (`RESOURCE:GPU`…), `shortages` what they mean, `detail` is for the timeline.
    `placed` are the tasks of other ranks that it has, and which are to be stopped.
    """

    reasons: tuple[str, ...]
    detail: str = ""
    shortages: frozenset[Shortage] = frozenset({Shortage.OTHER})
    placed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchDeferred:
    """The target throttled the request, or a quota of tasks is reached: the same request is sent again later.

    `waiting` is the number of other waiting launches, if that is known. `is_refused`: until somebody grants something,
    but an earlier send of it may have started a task. `placed` are the tasks of the ranks before, which it has.
    """

    reason: str
    waiting: int | None = None
    is_refused: bool = False
    placed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    """The target rejected the request.

    `is_about_revision`, `is_about_provider`: for what it names, and another capacity provider may be taken.
    `may_heal`: another request may be taken once somebody has granted or mended something, such as a permission.
    `was_repeated`: the client had sent the same request before, without an answer, and that may have taken effect.
    `placed` are the tasks of other ranks that it has, and which are to be stopped.
    """

    reason: str
    is_about_revision: bool = False
    is_about_provider: bool = False
    may_heal: bool = False
    was_repeated: bool = False
    placed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchConflict:
    """These tasks were launched for the same placement, but with other parameters."""

    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchUncertain:
    """Time-out or server error: the request may have taken effect, and the same request is sent again.

    `placed` are the tasks of the ranks before, which the target has.
    """

    reason: str
    placed: tuple[str, ...] = ()


LaunchOutcome = TaskPlaced | PlacementFailed | LaunchDeferred | LaunchRefused | LaunchConflict | LaunchUncertain


class TaskPhase(StrEnum):
    """Where a task is in its life."""

    PENDING = "pending"  # it has no node yet
    STARTING = "starting"  # it has a node and does not run yet
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"

    @property
    def is_ending(self) -> bool:
        """Return whether the task is stopping or has stopped."""
        return self in (TaskPhase.STOPPING, TaskPhase.STOPPED)


STOPPED_BY_WARNING = "Relaunch: spot interruption warning"
"""How the reason begins with which Relaunch stops a task on an instance that EC2 takes away."""


class ReportedCause(StrEnum):
    """What a target reports as the cause of a stop; core.lifecycle.stop_reason decides what it means for the job."""

    ENDED = "ended"  # its containers ended, or no cause is reported
    STOP_CALLED = "stop-called"  # somebody called for the stop: Relaunch or another
    STOP_SCHEDULED = "stop-scheduled"  # a scheduler of the target stopped it
    INTERRUPTED = "interrupted"  # spot capacity was taken away
    NODE_LOST = "node-lost"  # its node ended, or is out of reach
    NO_CAPACITY = "no-capacity"  # no node has room for it
    NOT_STARTED = "not-started"  # it was never started
    START_ERROR = "start-error"  # an error that only the start of a container has
    STARTS_NOWHERE = "starts-nowhere"  # no other node can start it either
    START_REFUSED = "start-refused"  # no node can start it before somebody grants something
    REJECTED = "rejected"  # its node did not take it, or did not take it back after a restart
    NODE_FAULT = "node-fault"  # an error of the node: another one may start it
    GPU_FAULT = "gpu-fault"  # a GPU of the node failed under it
    UNREACHABLE = "unreachable"  # what the start needs is out of reach or overloaded: it may be over soon
    DEPENDENCY_FAILED = "dependency-failed"  # a container that it waits for did not succeed
    IMAGE = "image"  # the image cannot be pulled
    OUT_OF_MEMORY = "out-of-memory"  # the kernel killed a process for its memory
    PEER_ENDED = "peer-ended"  # the target ended it with another rank of its job, which had ended
    PEER_LOST = "peer-lost"  # another rank of its job is gone, and its node said nothing of how


@dataclass(frozen=True, slots=True)
class StopReport:
    """What a target reports of the stop of a task or of one of its containers; `text` is for people."""

    text: str = ""
    causes: frozenset[ReportedCause] = frozenset()
    error: str = ""
    """The name of the error in the text (`CannotStartContainerError`…), empty if it has none."""


@dataclass(frozen=True, slots=True)
class ContainerObservation:
    """A container of a task; `exit_code` is None if it has not ended, or if that is not known.

    `has_ended`: the target says that it has; False too for a target that does not tell it of single containers.
    `image` is what runs, by its digest; empty if the target does not tell it, or not so that it could be pulled again.
    """

    exit_code: int | None = None
    report: StopReport = StopReport()
    has_ended: bool = False
    image: str = ""


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """The state of a task, as an event or an answer of the target tells it.

    `task_id` is the name of the task in the target, and `node` that of its node. `owner` is None for a task that is not
    of Relaunch, `service` the one of the target that runs it, empty for none. `status` is the target's own word for the
    phase, for people. Of two observations the one with the higher `version` is newer. `pulled` is when the pull of its
    images began and ended, None if the target does not tell both. `report` tells why the task stopped, is stopping, or
    while it has no node is refused its start (START_REFUSED, STARTS_NOWHERE); `stop_code` is the target's code for it,
    for people. `containers` are by name; `containers_ended_at` is when the first essential one had ended, which may be
    minutes before `stopped_at`, None if the target does not tell it. `waiting_for` is why it does not run yet, as the
    target says it. `warned_at` is when the target announced that it takes the capacity of the task away; None if it did
    not, or such warnings come otherwise. `warning` says who announced it and how, as far as that is known.
    `may_have_run`: it has stopped, and the target tells neither when it started nor that it did not. `cluster`: that of
    TaskTarget.identify. `is_suspended`: a queue of the target holds it back, before or after its start.

    Of a job of several nodes `rank_count` tasks are seen as one (core.lifecycle.gangs), of which `live_ranks` have not
    stopped. `held_nodes`: some of its pods have them, others find none. `newest_pod_at`: when the newest was made.
    `waited_in_vain`: the one that decides ended before all others had started. `is_unheard`: its node's agent is away.
    """

    task_id: str
    owner: AttemptKey | None
    phase: TaskPhase
    version: int
    status: str = ""
    stop_code: str = ""
    report: StopReport = StopReport()
    containers: Mapping[str, ContainerObservation] = field(default_factory=dict)
    node: str | None = None
    service: str = ""
    zone: str | None = None
    created_at: datetime | None = None
    pulled: tuple[datetime, datetime] | None = None
    started_at: datetime | None = None
    containers_ended_at: datetime | None = None
    stopped_at: datetime | None = None
    waiting_for: str = ""
    warned_at: datetime | None = None
    warning: str = ""
    may_have_run: bool = False
    cluster: str = ""
    is_suspended: bool = False
    held_nodes: tuple[str, ...] = ()
    newest_pod_at: datetime | None = None
    rank_count: int = 1
    live_ranks: tuple[int, ...] = ()
    waited_in_vain: bool = False
    is_unheard: bool = False


@dataclass(frozen=True, slots=True)
class HostObservation:
    """What is known of the instance of a task when EC2 is asked.

    `has_ended`: it ends or has ended, or of several some, the `ended` ones; `ended_at` is since when, None if EC2 does
    not say, and `warnings` when EC2 announced it. Without `is_answered` it did not answer, and had said this before.
    """

    has_ended: bool = False
    ended_at: datetime | None = None
    warnings: frozenset[datetime] = frozenset()
    is_answered: bool = True
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that takes tasks: its name in the target, EC2 instance ID (empty if none), instance type and zone."""

    name: str
    instance_id: str
    instance_type: str = ""
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """The state of a node.

    `is_active`: it takes new tasks, once its agent is connected. `is_connected`: its agent is, which those of ECS are
    not all the time. `is_draining`: it has registered, and takes no new tasks any more. `task_count` is the number of
    its running and starting tasks. `registered` is what it offers to tasks in all. `capacity_provider` is empty for a
    node of none. `boot` is what the node itself reports of its boot (core.lifecycle.start_stages), empty for nothing.
    """

    node: Node
    is_active: bool
    task_count: int = 0
    registered_at: datetime | None = None
    capacity_provider: str = ""
    registered: Resources = NOTHING
    is_connected: bool = True
    is_draining: bool = False
    boot: str = ""


def refutes(seen: NodeObservation, failure: CapacityFailure) -> bool:
    """Return whether a node shows that there is capacity again: it registered after the failure.

    One that runs no task shows that too, if the failure was that others ran on all of them. A node without the GPUs
    that the launch needed, as of an image without their driver, shows nothing: its tasks would wait and be withdrawn
    again.
    """
    is_same = seen.capacity_provider == failure.capacity_provider != ""
    is_same = is_same and seen.node.instance_type == failure.offering.instance_type
    is_usable = seen.is_active and seen.registered.gpus >= failure.gpu_count
    return is_same and is_usable and _is_new_or_free(seen, failure)


def may_refute(seen: NodeObservation, failure: CapacityFailure) -> bool:
    """Return whether a node may refute a failure, as far as its event says.

    AWS's schema of the event has no capacity provider, and its samples have no `registeredAt` and few attributes.
    """
    is_same = seen.node.instance_type in ("", failure.offering.instance_type)
    return is_same and (seen.registered_at is None or _is_new_or_free(seen, failure))


def _is_new_or_free(seen: NodeObservation, failure: CapacityFailure) -> bool:
    if failure.is_queue and seen.task_count == 0:
        return True
    return seen.registered_at is not None and seen.registered_at > failure.at
