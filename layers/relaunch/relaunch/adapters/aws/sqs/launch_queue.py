"""The attempts queue, whose messages make launch_attempt advance a job."""

import json
from typing import TYPE_CHECKING

from relaunch.adapters.aws.errors import aws_errors
from relaunch.adapters.messages.body import load_message
from relaunch.ports import PermanentError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The maximum of SQS. For longer delays, `reconcile` finds the job by its `wake_at`.
MAX_DELAY_SECONDS = 900


class SqsLaunchQueue:
    """Implements LaunchQueue. The message is `{"job_id": "…"}`; the delay is at most 900 seconds."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        with aws_errors(f"asking for the launch of job {job_id}"):
            self._client.send_message(
                QueueUrl=self._queue_url,
                MessageBody=json.dumps({"job_id": job_id}),
                DelaySeconds=min(max(delay_seconds, 0), MAX_DELAY_SECONDS),
            )

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
    """
    job_id = load_message(body).get("job_id")
    if not isinstance(job_id, str) or not job_id:
        raise PermanentError("the message names no job_id")
    return job_id
