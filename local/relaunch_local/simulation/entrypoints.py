"""The bodies of the functions: what functions/<name>/handler.py does, for the world of a simulated run.

The handlers themselves make their clients from an environment when they are imported; everything behind their first two
lines is the application's own code.
"""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.aws.sqs.launch_queue import parse_launch_request
from relaunch.adapters.messages.body import load_message
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import Dependencies
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_capacity import observe_capacity
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.submit_job import submit_event
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster


def submit(body: str, deps: Dependencies) -> None:
    """submit_job: one message of the queue intake."""
    for trigger in parse_intake_message(body):
        if not isinstance(trigger, IgnoredEvent):
            submit_event(trigger, deps)


def launch(body: str, deps: Dependencies) -> None:
    """launch_attempt: one message of the queue attempts."""
    launch_attempt(parse_launch_request(body), deps)


def observe_machine(body: str, deps: Dependencies) -> None:
    """observe_capacity: one message of the queue warnings."""
    news = parse_ec2_event(load_message(body))
    if news is not None:
        observe_capacity(news, deps)


def observe_state_change(body: str, deps: Dependencies) -> None:
    """observe_task: one message of the queue task-changes."""
    observation = parse_ecs_event(load_message(body))
    if observation is not None:
        observe_task(observation, deps)


def reconcile(deps: Dependencies, has_time: Callable[[], bool]) -> None:
    """reconcile: looks at due jobs while there is time; cleans up, and sweeps."""
    is_sweeping = is_sweep_due(deps.clock.now())
    reconcile_jobs(deps, has_time)
    clean_revisions(deps, has_time)
    if is_sweeping and has_time():
        sweep_cluster(deps, has_time)


HANDLERS: Mapping[str, Callable[[str, Dependencies], Any]] = {
    "submit_job": submit,
    "launch_attempt": launch,
    "observe_capacity": observe_machine,
    "observe_task": observe_state_change,
}
"""The functions that consume a queue."""
