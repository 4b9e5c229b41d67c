"""The limits of the stack."""

from dataclasses import field
from datetime import timedelta

from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.core.selection.offering_filters import SelectionLimits

# Managed scaling waits for the instance warm-up (300 s by default) before it requests more, and a GPU instance takes
# minutes to boot and register ("Amazon ECS cluster auto scaling", "ManagedScaling", Amazon ECS API Reference).
_GROUP_DEADLINE = timedelta(seconds=900)
# ECS launches the instance at once, without a group.
_MANAGED_DEADLINE = timedelta(seconds=480)


@dataclass(frozen=True, slots=True)
class StackLimits:
    """The limits of the stack.

    `provisioning_deadline_seconds` is how long a task may wait for its instance; 0 stands for a time that depends on
    the capacity provider. ECS stops a PROVISIONING task only after 10 to 30 minutes (aws/containers-roadmap#2381).
    """

    max_running_jobs: int = 20
    max_waiting_jobs: int = 5000
    provisioning_deadline_seconds: int = 0
    selection: SelectionLimits = field(default_factory=SelectionLimits)
    task_definitions: TaskDefinitionGrants = field(default_factory=TaskDefinitionGrants)
    pods: PodGrants = field(default_factory=PodGrants)
    machines: MachineLimits = field(default_factory=MachineLimits)

    def provisioning_deadline(self, *, is_managed: bool) -> timedelta:
        """Return how long a task may wait for its instance; `is_managed`: it is one of ECS Managed Instances."""
        if self.provisioning_deadline_seconds:
            return timedelta(seconds=self.provisioning_deadline_seconds)
        return _MANAGED_DEADLINE if is_managed else _GROUP_DEADLINE
