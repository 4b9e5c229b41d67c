"""The machines queue, whose consumer calls EC2 for machines."""

from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.adapters.aws.sqs.delayed_message import send_delayed
from relaunch.adapters.messages.body import load_id

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsMachineQueue:
    """Implements MachineQueue. The message is `{"machine_id": "m-…", "format": 1}`.

    The delay is at most 900 seconds.
    """

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_calls(self, machine_id: str, delay_seconds: int = 0) -> None:
        with aws_errors(f"asking for attention to machine {machine_id}"):
            send_delayed(self._client, self._queue_url, {"machine_id": machine_id}, delay_seconds)


def parse_machine_request(body: str) -> str:
    """Return the ID of the machine in a message.

    Raises:
        PermanentError: the message has no machine ID.
        TransientError: a newer release sent it.
    """
    return load_id(body, "machine_id")
