"""The queue `task-changes`: ECS task state changes."""

from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.messages.body import load_message
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_task import observe_task


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply a task state change to its job; other events are ignored."""
    observation = parse_ecs_event(load_message(body))
    if observation is not None:
        observe_task(observation, deps)
