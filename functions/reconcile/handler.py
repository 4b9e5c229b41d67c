"""Called by a schedule: looks at every job that is due, for what events did not tell.

Once an hour it cleans up, and every ten minutes it compares the jobs with the whole cluster.
"""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

# Stops early enough for the last job's calls to finish; what is left stays due and comes with the next call.
_SPARE_MILLISECONDS = 10_000


@with_metrics
def handle(_event: object, context: LambdaContext) -> dict[str, int]:
    """Look at due jobs while there is time; then sweep, and clean up."""
    deps = function().deps
    is_sweeping = is_sweep_due(deps.clock.now())

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > _SPARE_MILLISECONDS

    looked_at = reconcile_jobs(deps, has_time)
    swept = sweep_cluster(deps, has_time).tasks if is_sweeping and has_time() else 0
    deregistered = clean_revisions(deps, has_time) if has_time() else 0
    return {"looked_at": looked_at, "deregistered": deregistered, "swept": swept}
