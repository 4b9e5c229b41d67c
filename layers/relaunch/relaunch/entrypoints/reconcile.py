"""The schedule of every minute: due jobs, the cluster, dead-letter queues and derived revisions."""

from collections.abc import Callable

from relaunch.entrypoints.function import FunctionDependencies
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.dead_letters import measure_dead_letters
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.reconcile_machines import is_instance_sweep_due, reconcile_machines, sweep_instances
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

# Enough for the calls of the last job; the remaining jobs stay due for the next invocation.
_SPARE_MILLISECONDS = 10_000


def reconcile(function: FunctionDependencies, remaining_milliseconds: Callable[[], int]) -> dict[str, int]:
    """Reconcile due jobs while there is time, then sweep the cluster and clean up; return the numbers."""
    deps = function.deps
    now = deps.clock.now()
    is_sweeping = is_sweep_due(now)

    def has_time() -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS

    # A job may wait for its machine.
    machines = reconcile_machines(deps, has_time)
    looked_at = reconcile_jobs(deps, has_time)
    if is_sweeping and has_time():
        measure_dead_letters(function.counted, deps)
    swept = sweep_cluster(deps, has_time).tasks if is_sweeping and has_time() else 0
    leaked = sweep_instances(deps, has_time) if is_instance_sweep_due(now) and has_time() else 0
    has_revisions = any(each.capabilities.takes_task_definition for each in deps.targets)
    deregistered = clean_revisions(deps, has_time) if has_time() and has_revisions else 0
    return {
        "looked_at": looked_at,
        "machines": machines,
        "deregistered": deregistered,
        "swept": swept,
        "leaked": leaked,
    }
