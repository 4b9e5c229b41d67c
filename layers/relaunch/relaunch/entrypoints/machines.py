"""The queue `machines`: requests of machines of our own."""

from relaunch.adapters.aws.sqs.machine_queue import parse_machine_request
from relaunch.ports import MachineDependencies
from relaunch.usecases.request_machine import request_machine


def handle_message(body: str, deps: MachineDependencies) -> None:
    """Request the machine of a message from EC2 Fleet."""
    request_machine(parse_machine_request(body), deps)
