"""Takes events from the queue `intake` and creates the jobs they start."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.bootstrap import function, with_metrics
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.usecases.submit_job import submit_event


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of GitHub deliveries, uploads and image pushes."""
    return handle_batch(event, context, _submit, function().dead_letters, function().meter("intake"))


def _submit(body: str) -> None:
    deps = function().deps
    for trigger in parse_intake_message(body):
        if isinstance(trigger, IgnoredEvent):
            deps.log.decided("ignored", reason=trigger.reason)
            deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
        else:
            submit_event(trigger, deps)
