"""The queue `warnings`: EC2's warnings, recommendations, state changes and block ends; retirements by AWS."""

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.aws.health import parse_health_event
from relaunch.adapters.messages.body import load_message
from relaunch.core.launches.instance_events import InstanceEvent, InstancesRetiring, ReservationEnding
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_capacity import observe_capacity, observe_reservation, observe_retirement


def handle_message(body: str, deps: JobDependencies) -> None:
    """Apply an event to the jobs on its instances, or on those of its reservation; other events are ignored."""
    message = load_message(body)
    event = parse_ec2_event(message) or parse_health_event(message)
    if isinstance(event, InstanceEvent):
        observe_capacity(event, deps)
    elif isinstance(event, ReservationEnding):
        observe_reservation(event, deps)
    elif isinstance(event, InstancesRetiring):
        observe_retirement(event, deps)
