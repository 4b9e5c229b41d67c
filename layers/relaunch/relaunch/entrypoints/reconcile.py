"""The schedule of every minute: due jobs, the cluster, dead-letter queues and derived revisions."""

from collections.abc import Callable

from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies, NotGrantedError, TransientError
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.dead_letters import measure_dead_letters
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.reconcile_machines import is_instance_sweep_due, reconcile_machines, sweep_instances
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

# Enough for the calls of the last job; the remaining jobs stay due for the next invocation.
_SPARE_MILLISECONDS = 10_000
_ALWAYS = frozenset({"machines", "looked_at"})


def reconcile(function: FunctionDependencies, remaining_milliseconds: Callable[[], int]) -> dict[str, int]:
    """Reconcile due jobs while there is time, then sweep the cluster and clean up; return the numbers."""
    deps = function.deps
    now = deps.clock.now()
    is_sweeping = is_sweep_due(now)

    def has_time() -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS

    has_revisions = any(each.capabilities.takes_task_definition for each in deps.targets)
    # A job may wait for its machine.
    parts: dict[str, Callable[[], int]] = {
        "machines": lambda: reconcile_machines(deps, has_time),
        "looked_at": lambda: reconcile_jobs(deps, has_time),
    }
    if is_sweeping:
        parts["swept"] = lambda: sweep_cluster(deps, has_time).tasks
    if is_instance_sweep_due(now):
        parts["leaked"] = lambda: sweep_instances(deps, has_time)
    if has_revisions:
        parts["deregistered"] = lambda: clean_revisions(deps, has_time)
    done = {name: _try(name, part, deps) for name, part in parts.items() if name in _ALWAYS or has_time()}
    if is_sweeping and has_time():
        measure_dead_letters(function.counted, deps)
    return done


def _try(name: str, part: Callable[[], int], deps: Dependencies) -> int:
    """Do a part of a pass; return its number, 0 if it could not be done now: the next pass does it.

    The metrics that are missing then, JobsOverdue and IdleMachines, alarm.
    """
    try:
        return part()
    except (TransientError, NotGrantedError) as error:
        deps.log.decided("failed", part=name, reason=str(error))
        return 0
