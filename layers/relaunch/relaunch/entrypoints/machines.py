"""The queue `machines`: what EC2 is to be called for."""

from relaunch.adapters.aws.sqs.machine_queue import parse_machine_request
from relaunch.ports import FleetDependencies
from relaunch.usecases.make_ec2_calls import make_ec2_calls


def handle_message(body: str, deps: FleetDependencies) -> None:
    """Request the machine of a message from EC2 Fleet, or end it."""
    make_ec2_calls(parse_machine_request(body), deps)
