"""What runs tasks, and the task definitions they run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.launches.launch import (
    ContainerInstance,
    ContainerInstanceObservation,
    LaunchOutcome,
    LaunchRequest,
    TaskObservation,
)
from relaunch.core.revisions.revision import Revision
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


class RevisionSource(Protocol):
    """ECS task definitions."""

    def newest_active(self, family: str, since: datetime | None = None) -> Revision:
        """Return the newest ACTIVE revision of exactly this family.

        With `since` as it was at that moment or later: one question may answer for many events.

        Raises:
            NoActiveRevisionError: there is none.
            TransientError: throttled or unreachable.
        """
        ...


class RevisionRegistry(Protocol):
    """Where derived revisions are registered, found and deregistered: ECS."""

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        """Return what a revision was registered with, tags included; INACTIVE revisions too.

        Raises:
            PermanentError: ECS does not know the revision.
            TransientError: throttled or unreachable.
        """
        ...

    def find_active(self, family: str, max_age: timedelta = timedelta(0)) -> str | None:
        """Return the ARN of the newest ACTIVE revision of a derived family, None when there is none.

        That there was one may be an answer up to `max_age` old.

        Revisions without the tag DERIVED_FROM are somebody else's, and are not found.
        """
        ...

    def register(self, definition: TaskDefinition) -> str:
        """Register a derived revision and return its ARN.

        Raises:
            PermanentError: ECS refuses the definition.
            TransientError: throttled (20 at once, 1 per second) or unreachable.
        """
        ...

    def list_families(self) -> list[str]:
        """Return the families of derived revisions that have an ACTIVE one."""
        ...

    def deregister_family(self, family: str) -> int:
        """Deregister every ACTIVE revision of a derived family and return their number; running tasks go on.

        Revisions without the tag DERIVED_FROM are left alone.

        Raises:
            TransientError: throttled or unreachable; what was deregistered stays so.
        """
        ...


@dataclass(frozen=True, slots=True)
class RevisionMaintenance:
    """What is remembered between two looks at the derived revisions.

    `unused_since` maps families to when no open job was first seen to use them; `version` is the item's own.
    """

    next_at: datetime
    unused_since: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0


class MaintenanceStore(Protocol):
    """What must outlive a function and belongs to no job."""

    def take_turn(self, name: str) -> int:
        """Return the next number of a count that begins with 0: nobody gets the same one twice.

        A call whose answer was lost may skip a number.
        """
        ...

    def load_maintenance(self) -> RevisionMaintenance | None:
        """Load what the last look at the derived revisions left."""
        ...

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        """Save it if the stored version is still `maintenance.version`; return whether it was saved."""
        ...
