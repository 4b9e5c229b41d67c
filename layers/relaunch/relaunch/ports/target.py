"""Tasks and container instances."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from relaunch.core.launches.launch import (
    ContainerInstanceObservation,
    LaunchOutcome,
    LaunchRequest,
    TaskObservation,
)
from relaunch.core.selection.gpu_devices import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources


class TaskTarget(Protocol):
    """An ECS cluster."""

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        """Call RunTask; every response, including an error, is an outcome.

        Raises:
            PermanentError: the request exceeds a documented limit and was not sent.
        """

    def stop(self, task_arn: str, reason: str) -> None:
        """Call StopTask; no error if the task is stopping or does not exist."""

    def describe(self, task_arns: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        """Describe tasks, up to a hundred per call; None: ECS does not know the task."""

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        """Yield all tasks of the cluster with desired status RUNNING, in pages of at most a hundred."""

    def list_machines(self) -> Iterator[Sequence[ContainerInstanceObservation]]:
        """Yield the container instances of the cluster, in pages of at most a hundred."""

    def find_started_by(self, started_by: str) -> list[TaskObservation]:
        """Return the running and recently stopped tasks with this startedBy."""

    def find_on_instance(self, instance_id: str) -> list[TaskObservation]:
        """Return the tasks on the container instance of this EC2 instance."""

    def drain(self, instance_id: str) -> None:
        """Let no new task be placed on this EC2 instance; no error if it is not in the cluster or is draining.

        Tasks that run there are not affected ("Draining Amazon ECS container instances").

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        """Return the shareable GPUs of the ACTIVE instances of this provider and type, at most a hundred instances.

        Instances whose ECS agent does not support sharing have none.
        """

    def find_remaining_resources(self, instance_type: str, capacity_provider: str) -> list[RemainingResources]:
        """Return the remaining resources of the ACTIVE instances of this provider and type, at most a hundred."""

    def find_container_instance(self, container_instance_arn: str) -> ContainerInstanceObservation | None:
        """Return a container instance, None if it does not exist."""
