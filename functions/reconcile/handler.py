"""Called by a schedule: looks at every job that is due, for what events did not tell; once an hour, cleans up."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, measured
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.reconcile_jobs import reconcile_jobs

# Stops early enough for the last job's calls to finish; what is left stays due and comes with the next call.
_BATCH = 100
_SPARE_MILLISECONDS = 10_000


@measured
def handle(_event: object, context: LambdaContext) -> dict[str, int]:
    """Look at due jobs until there are none left or the time is nearly up."""
    looked_at = 0
    while context.get_remaining_time_in_millis() > _SPARE_MILLISECONDS:
        count = reconcile_jobs(function().world, _BATCH)
        looked_at += count
        if count < _BATCH:
            break
    return {"looked_at": looked_at, "deregistered": clean_revisions(function().world)}
