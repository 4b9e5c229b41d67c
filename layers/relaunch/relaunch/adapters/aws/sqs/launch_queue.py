"""The attempts queue, whose messages make launch_attempt advance a job."""

from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.adapters.aws.sqs.delayed_message import send_delayed
from relaunch.adapters.messages.body import load_id

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsLaunchQueue:
    """Implements LaunchQueue. The message is `{"job_id": "…", "format": 1}`; the delay is at most 900 seconds."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        with aws_errors(f"asking for the launch of job {job_id}"):
            send_delayed(self._client, self._queue_url, {"job_id": job_id}, delay_seconds)

    def count_requests(self) -> int:
        with aws_errors("counting the launch requests"):
            answer = self._client.get_queue_attributes(
                QueueUrl=self._queue_url,
                AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"],
            )
        return sum(int(count) for count in answer["Attributes"].values())


def parse_launch_request(body: str) -> str:
    """Return the ID of the job in a message.

    Raises:
        PermanentError: the message has no job ID.
        TransientError: a newer release sent it.
    """
    return load_id(body, "job_id")
