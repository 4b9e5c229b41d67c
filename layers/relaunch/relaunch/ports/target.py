"""Tasks and nodes of a target: where trainings run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import AttemptKey
    from relaunch.core.launches.launch import LaunchOutcome, LaunchRequest, NodeObservation, TaskObservation
    from relaunch.core.selection.gpu_share import GpuDevice
    from relaunch.core.selection.neuron_devices import RemainingResources


class TaskTarget(Protocol):
    """A cluster that runs tasks; docs/decisions/0013-the-port-to-a-target.md says what belongs to it.

    Names of tasks and nodes are opaque. Methods raise TransientError if the target is throttled or unreachable, unless
    they say otherwise.
    """

    def identify(self) -> str:
        """Return what identifies the cluster that tasks are looked for in; empty where their names do."""
        ...

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        """Launch a task, unless the placement has one already; every answer, including an error, is an outcome.

        Raises:
            PermanentError: the request exceeds a documented limit and was not sent.
        """

    def stop(self, task_id: str, reason: str) -> None:
        """Let the task end by SIGTERM, then SIGKILL; no error if it is stopping or does not exist."""

    def describe(self, task_ids: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        """Describe tasks; None: the target does not know the task, or not yet.

        Those of a cluster that the target had before are left out.

        Raises:
            TransientError: the target did not answer, or not for all of them.
            PermanentError: it refused, or has none of them.
        """
        ...

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        """Yield all tasks that are to run, whoever launched them, in pages of at most a hundred."""

    def list_nodes(self) -> Iterator[Sequence[NodeObservation]]:
        """Yield the nodes, in pages of at most a hundred."""

    def find_daemon_services(self) -> frozenset[str]:
        """Return the services that run a task on every node, whatever else runs there; see TaskObservation.service."""
        ...

    def find_tasks_of(self, attempt: AttemptKey) -> list[TaskObservation]:
        """Return the tasks of an attempt, those that stopped recently included.

        Raises:
            NotYetError: the target has tasks of it that it does not describe yet.
        """

    def find_tasks_on(self, instance_id: str) -> list[TaskObservation]:
        """Return the tasks on the node of this EC2 instance that have not stopped."""

    def drain(self, instance_id: str) -> None:
        """Let no new task be placed on this EC2 instance; no error if it is no node or is draining.

        Tasks that run there are not affected.
        """
        ...

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        """Return the shareable GPUs of the active nodes of this provider and type, at most a hundred nodes.

        `capacity_provider` is empty for machines of our own. Nodes that cannot share their GPUs have none.
        """

    def find_remaining_resources(
        self, instance_type: str, capacity_provider: str, instance_id: str = ""
    ) -> list[RemainingResources]:
        """Return the remaining resources of the active nodes of this provider and type, at most a hundred.

        `capacity_provider` is empty for machines of our own; `instance_id` names the only one that counts.
        """

    def find_node_of(self, instance_id: str) -> NodeObservation | None:
        """Return the node of this EC2 instance, active or not; None if it has none.

        Of several it is an active one, the latest registered.
        """
        ...

    def deregister(self, node: str) -> None:
        """Remove a node whose machine has ended; no error if it does not exist."""
        ...

    def find_node(self, node: str) -> NodeObservation | None:
        """Return a node, None if it does not exist."""
