"""The schedule of every minute: jobs that are due, the whole cluster, dead letters, derived revisions."""

from collections.abc import Callable

from relaunch.entrypoints.function import FunctionDependencies
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.dead_letters import measure_dead_letters
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

# Enough for the last job's calls to finish; what is left stays due and comes with the next call.
_SPARE_MILLISECONDS = 10_000


def reconcile(function: FunctionDependencies, remaining_milliseconds: Callable[[], int]) -> dict[str, int]:
    """Look at due jobs while there is time, then sweep the cluster, then clean up; return how many of each."""
    deps = function.deps
    is_sweeping = is_sweep_due(deps.clock.now())

    def has_time() -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS

    looked_at = reconcile_jobs(deps, has_time)
    if is_sweeping and has_time():
        measure_dead_letters(function.counted, deps)
    swept = sweep_cluster(deps, has_time).tasks if is_sweeping and has_time() else 0
    deregistered = clean_revisions(deps, has_time) if has_time() else 0
    return {"looked_at": looked_at, "deregistered": deregistered, "swept": swept}
