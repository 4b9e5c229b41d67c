"""Takes job ids from the queue `attempts` and launches those jobs."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.aws.sqs.launch_queue import parse_launch_request
from relaunch.bootstrap import function, with_metrics
from relaunch.usecases.launch_attempt import launch_attempt


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of launch requests."""
    return handle_batch(event, context, _launch, function().dead_letters, function().meter("attempts"))


def _launch(body: str) -> None:
    launch_attempt(parse_launch_request(body), function().deps)
