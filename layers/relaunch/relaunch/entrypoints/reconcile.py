"""The schedule of every minute: due jobs, the cluster, dead-letter queues and derived revisions."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.machines.machine import Machine
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies, NotGrantedError, PermanentError, TransientError
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.dead_letters import measure_dead_letters
from relaunch.usecases.keep_images import is_reading_due, keep_images
from relaunch.usecases.note_progress import note_progress_of
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.reconcile_machines import is_instance_sweep_due, reconcile_machines, sweep_instances
from relaunch.usecases.reserve_budget import renew_leases
from relaunch.usecases.sweep_cluster import is_sweep_due, sweep_cluster

# Enough for the calls of the last job; the remaining jobs stay due for the next invocation.
_SPARE_MILLISECONDS = 10_000
# For a page of a bucket's listing, of a thousand objects that are read into memory.
_PAGE_MILLISECONDS = 250
_ALWAYS = frozenset({"machines", "looked_at"})


def reconcile(
    event: object, function: FunctionDependencies, remaining_milliseconds: Callable[[], int]
) -> dict[str, int]:
    """Reconcile due jobs while there is time, then sweep the cluster and clean up; return the numbers.

    Raises:
        PermanentError: a part can never be done; the others were.
    """
    deps = function.deps
    minute = _scheduled_time(event) or deps.clock.now()
    is_sweeping = is_sweep_due(minute)

    def has_time() -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS

    done: dict[str, int] = {}
    failed: list[PermanentError] = []
    for name, part in _parts(deps, minute, remaining_milliseconds):
        if name not in _ALWAYS and not has_time():
            continue
        try:
            done[name] = part()
        except (TransientError, NotGrantedError) as error:
            # The next pass does it. The metrics that are missing then, JobsOverdue and IdleMachines, alarm.
            done[name] = 0
            deps.log.decided("failed", part=name, reason=str(error))
        except PermanentError as error:
            failed.append(error)
    if is_sweeping and has_time():
        measure_dead_letters(function.counted, deps)
    if failed:
        raise failed[0]
    return done


def _scheduled_time(event: object) -> datetime | None:
    """Return the time of a scheduled event of EventBridge; None of what somebody else sends.

    It is of one minute after the other. The calls are not: "Your scheduled rule runs within that minute" (Amazon
    EventBridge User Guide), so one may come late in its minute and the next but one early, and none in between.
    """
    try:
        return datetime.fromisoformat(str(event["time"])) if isinstance(event, Mapping) else None
    except (KeyError, ValueError):
        return None


def _parts(
    deps: Dependencies, minute: datetime, remaining_milliseconds: Callable[[], int]
) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield what is due in this minute, in order: a job may wait for its machine."""

    def has_time() -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS

    def has_time_for(pages: int) -> bool:
        return remaining_milliseconds() > _SPARE_MILLISECONDS + pages * _PAGE_MILLISECONDS

    looked_at: list[Job] = []
    machines: list[Machine] = []
    yield "machines", lambda: reconcile_machines(deps, has_time, machines.append)
    yield "looked_at", lambda: reconcile_jobs(deps, has_time, looked_at.append)
    claiming = (claim.job_id for machine in machines for claim in machine.claims)
    yield "renewed", lambda: renew_leases(looked_at, deps, claiming)
    if is_sweep_due(minute):
        yield "swept", lambda: sweep_cluster(deps, has_time).tasks
    if is_instance_sweep_due(minute):
        yield "leaked", lambda: sweep_instances(deps, has_time)
    if any(each.capabilities.takes_task_definition for each in deps.targets):
        yield "deregistered", lambda: clean_revisions(deps, has_time)
    if is_reading_due(minute):
        yield "images", lambda: keep_images(deps, has_time)
    # Last, as nothing waits for it, and the listing of a bucket may take long.
    yield "noted", lambda: note_progress_of(looked_at, minute, deps, has_time_for)
