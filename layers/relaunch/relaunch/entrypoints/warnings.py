"""The queue `warnings`: spot interruption warnings, rebalance recommendations and instance state changes of EC2."""

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.messages.body import load_message
from relaunch.ports import JobDependencies
from relaunch.usecases.observe_capacity import observe_capacity


def handle_message(body: str, deps: JobDependencies) -> None:
    """Carry an event of EC2 into the jobs on its instance; events of other kinds are ignored.

    Raises:
        PermanentError: the message cannot be read.
        TransientError: something failed for now.
    """
    event = parse_ec2_event(load_message(body))
    if event is not None:
        observe_capacity(event, deps)
