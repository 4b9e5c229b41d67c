"""The queue `task-changes`: task state changes of ECS."""

from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.messages.body import load_message
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_task import observe_task


def handle_message(body: str, deps: JobDependencies) -> None:
    """Carry a task state change into its job; events of other kinds are ignored.

    Raises:
        PermanentError: the message cannot be read.
        TransientError: something failed for now.
    """
    observation = parse_ecs_event(load_message(body))
    if observation is not None:
        observe_task(observation, deps)
