"""Handles requests to plan a definition file that is not applied (docs/plan_api.schema.json)."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.plan_api import answer_plan_request


@with_metrics
def handle(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Handle one request; a response with `error` is a permanent error, an exception may be retried."""
    return answer_plan_request(event, function().deps)
