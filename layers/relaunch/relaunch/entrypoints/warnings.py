"""The queue `warnings`: EC2's interruption warnings, rebalance recommendations, state changes, Capacity Block ends."""

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.messages.body import load_message
from relaunch.core.launches.launch import InstanceEvent, ReservationEnding
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_capacity import observe_capacity, observe_reservation


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply an EC2 event to the jobs on its instance, or on those of its reservation; other events are ignored."""
    event = parse_ec2_event(load_message(body))
    if isinstance(event, InstanceEvent):
        observe_capacity(event, deps)
    elif isinstance(event, ReservationEnding):
        observe_reservation(event, deps)
