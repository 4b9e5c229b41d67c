"""The queue `machines`: what EC2 is to be called for."""

from relaunch.adapters.aws.sqs.machine_queue import parse_machine_request
from relaunch.ports import FleetDependencies
from relaunch.usecases.attend_machine import attend_machine


def handle_message(body: str, deps: FleetDependencies) -> None:
    """Request the machine of a message from EC2 Fleet, or end it."""
    attend_machine(parse_machine_request(body), deps)
