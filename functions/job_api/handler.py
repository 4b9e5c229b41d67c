"""Answers callers that may only invoke a function: submit, show, cancel (docs/job_api.schema.json)."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.job_api import answer_request


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request; an answer with `error` says what to change, an exception is worth another try."""
    return answer_request(event, context.aws_request_id, function().deps)
