"""Change what is known of offerings: reopen those of instances that came late or are free; learn of spot pools."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from relaunch.core.jobs.job import CAPACITY
from relaunch.core.launches.launch import NodeObservation, refutes
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.spot_runs import PoolChange, change_by_arrival, is_news
from relaunch.ports import JobDependencies, PortError

# Each conflict means that another function learned something of the same pool. One observation of many may be lost.
_ATTEMPTS = 4


def learn_pool(offering: OfferingKey, change: PoolChange | None, deps: JobDependencies, nodes: int = 1) -> None:
    """Change the record of a pool for so many machines at once.

    A fact that comes twice, after a later one, or is no news changes nothing.

    What cannot be saved is lost, and logged: no launch and no stop waits for it.
    """
    if change is None:
        return
    reason = f"others learned of it {_ATTEMPTS} times meanwhile"
    try:
        for _ in range(_ATTEMPTS):
            pool = deps.capacity.load_pool(offering, nodes)
            record = change(pool.record)
            if not is_news(pool.record, record) or deps.capacity.save_pool(replace(pool, record=record)):
                return
    except PortError as error:
        reason = str(error)
    deps.log.decided("not learned", offering=str(offering), reason=reason)


# The oldest jobs may need another offering. The instance has room for few, and the others look again within five
# minutes, in less than the 15 after which managed scaling terminates an unused instance.
_MAX_WOKEN = 10
# A machine that is free is the one of the job that has waited longest, if that can use it.
_HEAD_START_SECONDS = 5


def reopen_offerings(
    failures: Iterable[CapacityFailure], nodes: Sequence[NodeObservation], deps: JobDependencies
) -> None:
    """End the avoidance of the offerings of which an instance registered after the failure, or is free of other tasks.

    The launches of the oldest jobs that wait for capacity are requested at once; their `wake_at` stays.

    Raises:
        TransientError: retry; jobs that were not woken look again by themselves.
    """
    for failure in failures:
        late = next((seen for seen in nodes if refutes(seen, failure)), None)
        if late is None or late.registered_at is None:
            continue
        name = late.node.instance_id or late.node.name
        is_late = late.registered_at > failure.at
        learn_pool(failure.offering, change_by_arrival(failure, late.registered_at), deps)
        reason = f"{name} {'registered' if is_late else 'is free'} after {failure.reason!r}"
        _reopen(failure, late.registered_at if is_late else deps.clock.now(), reason, deps)


def offer_machine(capacity_provider: str, deps: JobDependencies) -> None:
    """End the avoidance of a capacity provider whose machines ran other tasks, one of which has stopped.

    Raises:
        TransientError: retry.
    """
    for failure in deps.capacity.load_capacity_memory(deps.clock.now()).values():
        if failure.is_queue and failure.capacity_provider == capacity_provider:
            _reopen(failure, deps.clock.now(), f"a task stopped after {failure.reason!r}", deps)


def _reopen(failure: CapacityFailure, at: datetime, reason: str, deps: JobDependencies) -> None:
    deps.capacity.reopen(failure, at)
    deps.log.decided("reopened", offering=str(failure.key), reason=reason)
    for place, job_id in enumerate(deps.jobs.load_waiting(CAPACITY, _MAX_WOKEN)):
        deps.launches.request_launch(job_id, place * _HEAD_START_SECONDS if failure.is_queue else 0)
