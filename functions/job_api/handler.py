"""Handles requests to submit, show and cancel jobs (docs/job_api.schema.json)."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.job_api import answer_request


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Handle one request; a response with `error` is a permanent error, an exception may be retried."""
    return answer_request(event, context.aws_request_id, function().deps)
