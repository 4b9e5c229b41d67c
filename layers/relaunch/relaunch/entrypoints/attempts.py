"""The queue `attempts`: launch requests."""

from relaunch.adapters.aws.sqs.launch_queue import parse_launch_request
from relaunch.ports import LaunchDependencies
from relaunch.usecases.launch_attempt import launch_attempt


def handle_message(body: str, deps: LaunchDependencies) -> None:
    """Launch the job of a message."""
    launch_attempt(parse_launch_request(body), deps)
