"""The queue `task-changes`: state changes of ECS tasks and container instances."""

from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.messages.body import load_message
from relaunch.core.launches.launch import TaskObservation
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_machine import observe_machine
from relaunch.usecases.observe_task import observe_task


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply a state change of a task to its job, that of a container instance to its offering; ignore other events."""
    observation = parse_ecs_event(load_message(body))
    if isinstance(observation, TaskObservation):
        observe_task(observation, deps)
    elif observation is not None:
        observe_machine(observation, deps)
