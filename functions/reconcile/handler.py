"""Reconciles jobs with ECS and ECR; invoked every minute by a schedule."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.reconcile import reconcile


@with_metrics
def handle(event: object, context: LambdaContext) -> dict[str, int]:
    """Reconcile due jobs, sweep the cluster and clean up."""
    return reconcile(event, function(), context.get_remaining_time_in_millis)
