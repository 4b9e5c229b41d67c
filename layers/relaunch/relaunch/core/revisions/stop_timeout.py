"""The time from SIGTERM to SIGKILL of a task's main container, in which it can save a checkpoint.

ECS stops a container with SIGTERM, and with SIGKILL after its `stopTimeout` ("ContainerDefinition", Amazon ECS API
Reference). Without one it is ECS_CONTAINER_STOP_TIMEOUT of the agent, 30 seconds ("Amazon ECS container agent
configuration"). `stopTimeout` is at most 120 seconds on Fargate, and is kept within that everywhere.
"""

from dataclasses import dataclass

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.main_container import main_container
from relaunch.core.revisions.revision import Revision

WARNING_SECONDS = 120
"""From EC2's warning to the interruption ("Spot Instance interruption notices", Amazon EC2 User Guide)."""
# From EC2's warning to SIGTERM in 95 of 100 cases: EventBridge, our StopTask and the agent. A budget, not measured; the
# metric WarningToStop shows all of it but the agent's second.
_WARNING_TO_SIGTERM_SECONDS = 30

STOP_TIMEOUT_SECONDS = WARNING_SECONDS - _WARNING_TO_SIGTERM_SECONDS
"""What a spot interruption leaves of its warning after SIGTERM, in seconds: `stopTimeout` of derived revisions."""


@dataclass(frozen=True, slots=True)
class StopTimeout:
    """The seconds from SIGTERM to SIGKILL; `is_own`: they are those of the task definition, else Relaunch sets them."""

    seconds: int
    is_own: bool

    def __str__(self) -> str:
        """Return a sentence for the owner of the job."""
        follows = f"SIGKILL follows SIGTERM after {self.seconds} s"
        if not self.is_own:
            return f"{follows}: set by Relaunch, for the task definition has no `stopTimeout`"
        if self.seconds == STOP_TIMEOUT_SECONDS:
            return f"{follows}: `stopTimeout` of the task definition"
        return f"{follows}: `stopTimeout` of the task definition; a spot warning leaves about {STOP_TIMEOUT_SECONDS} s"


def find_stop_timeout(definition: JobDefinition, revision: Revision) -> StopTimeout | None:
    """Return the stop timeout of the main container; None if the revision has no such container."""
    main = main_container(definition, revision)
    for container in revision.containers:
        if container.name == main:
            own = container.stop_timeout_seconds
            return StopTimeout(STOP_TIMEOUT_SECONDS if own is None else own, own is not None)
    return None
