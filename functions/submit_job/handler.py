"""Takes events from the queue `intake` and creates the jobs they start."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.bootstrap import function, measured
from relaunch.core.lifecycle.metrics import Measure, Metric
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.usecases.submit_job import submit_event


@measured
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of GitHub deliveries, uploads and image pushes."""
    return handle_batch(event, context, _submit, function().poison, function().meter("intake"))


def _submit(body: str) -> None:
    world = function().world
    for trigger in parse_intake_message(body):
        if isinstance(trigger, IgnoredEvent):
            world.log.decided("ignored", reason=trigger.reason)
            world.measures.record(Measure(Metric.EVENTS_IGNORED))
        else:
            submit_event(trigger, world)
