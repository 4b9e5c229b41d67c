"""The queue `task-changes`: state changes of ECS tasks and container instances."""

from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.messages.body import load_message
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.verdicts import seconds_to_verdict
from relaunch.ports import JobDependencies, NotYetError
from relaunch.usecases.observe_machine import observe_machine
from relaunch.usecases.observe_task import observe_task


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply a state change of a task to its job, that of a container instance to its offering; ignore other events.

    Raises:
        NotYetError: what the end of the task means is decided in some seconds, when EC2 has said what it may.
    """
    observation = parse_ecs_event(load_message(body))
    if isinstance(observation, TaskObservation):
        job = observe_task(observation, deps)
        if job is not None and (seconds := seconds_to_verdict(job, deps.clock.now())):
            raise NotYetError(seconds)
    elif observation is not None:
        observe_machine(observation, deps)
