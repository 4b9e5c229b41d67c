"""Takes EC2's warnings and instance state changes from the queue `warnings`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.messages.body import load_message
from relaunch.bootstrap import function, with_metrics
from relaunch.usecases.observe_capacity import observe_capacity


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle one warning or state change."""
    return handle_batch(event, context, _observe, function().dead_letters, function().meter("warnings"))


def _observe(body: str) -> None:
    news = parse_ec2_event(load_message(body))
    if news is not None:
        observe_capacity(news, function().deps)
