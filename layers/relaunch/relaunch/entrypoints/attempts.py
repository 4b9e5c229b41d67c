"""The queue `attempts`: jobs to be launched."""

from relaunch.adapters.aws.sqs.launch_queue import parse_launch_request
from relaunch.ports import LaunchDependencies
from relaunch.usecases.launch_attempt import launch_attempt


def handle_message(body: str, deps: LaunchDependencies) -> None:
    """Launch the job that a message names.

    Raises:
        PermanentError: the message cannot be read.
        TransientError: something failed for now.
    """
    launch_attempt(parse_launch_request(body), deps)
