"""The queue `warnings`: EC2 spot interruption warnings, rebalance recommendations and instance state changes."""

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.messages.body import load_message
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_capacity import observe_capacity


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply an EC2 event to the jobs on its instance; other events are ignored."""
    event = parse_ec2_event(load_message(body))
    if event is not None:
        observe_capacity(event, deps)
