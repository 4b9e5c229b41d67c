"""Where tasks run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from relaunch.core.launches.launch import (
    ContainerInstance,
    ContainerInstanceObservation,
    LaunchOutcome,
    LaunchRequest,
    TaskObservation,
)
from relaunch.core.selection.gpu_devices import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources


class TaskTarget(Protocol):
    """Where tasks run: an ECS cluster."""

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        """Send RunTask; every answer is an outcome, none is an exception.

        Raises:
            PermanentError: the request breaks a documented limit; it was not sent.
        """
        ...

    def stop(self, task_arn: str, reason: str) -> None:
        """Ask ECS to stop a task; a task that is gone or stopping already is fine.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def describe(self, task_arns: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        """Describe tasks by hundreds; None: ECS does not know the task (any more)."""
        ...

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        """Yield the cluster's tasks that are to run, whoever started them, in pages of at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def list_machines(self) -> Iterator[Sequence[ContainerInstanceObservation]]:
        """Yield the cluster's container instances in pages of at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_started_by(self, started_by: str) -> list[TaskObservation]:
        """Return all tasks, running and recently stopped, with this startedBy."""
        ...

    def find_on_instance(self, instance_id: str) -> list[TaskObservation]:
        """Return the tasks on the container instance of this EC2 instance."""
        ...

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        """Return the GPUs that can be shared, of the provider's ACTIVE machines of this type, at most a hundred.

        Machines whose ECS agent knows nothing of sharing have none.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_remaining_resources(self, instance_type: str, capacity_provider: str) -> list[RemainingResources]:
        """Return what is left of the provider's ACTIVE machines of this type, at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_container_instance(self, container_instance_arn: str) -> ContainerInstance | None:
        """Return a container instance, None when it is gone."""
        ...
