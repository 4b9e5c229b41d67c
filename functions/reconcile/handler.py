"""Called by a schedule every minute: looks for what events did not tell."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.reconcile import reconcile


@with_metrics
def handle(_event: object, context: LambdaContext) -> dict[str, int]:
    """Look at due jobs; then sweep the cluster, and clean up."""
    return reconcile(function(), context.get_remaining_time_in_millis)
