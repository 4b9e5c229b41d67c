"""Reopen the offerings of instances that arrived late, and wake jobs that wait for capacity."""

from collections.abc import Iterable, Sequence

from relaunch.core.jobs.job import CAPACITY
from relaunch.core.launches.launch import NodeObservation, refutes
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.pool_records import change_by_arrival
from relaunch.ports import JobDependencies
from relaunch.usecases.learn_pool import learn_pool

# The oldest jobs may need another offering. The instance has room for few, and the others look again within five
# minutes, in less than the 15 after which managed scaling terminates an unused instance.
_MAX_WOKEN = 10


def reopen_offerings(
    failures: Iterable[CapacityFailure], nodes: Sequence[NodeObservation], deps: JobDependencies
) -> None:
    """End the avoidance of the offerings of which an instance registered after the failure.

    The launches of the oldest jobs that wait for capacity are requested at once; their `wake_at` stays.

    Raises:
        TransientError: retry; jobs that were not woken look again by themselves.
    """
    for failure in failures:
        late = next((seen for seen in nodes if refutes(seen, failure)), None)
        if late is None or late.registered_at is None:
            continue
        deps.capacity.reopen(failure, late.registered_at)
        learn_pool(failure.offering, change_by_arrival(failure, late.registered_at), deps)
        arrived = f"{late.node.instance_id or late.node.name} registered after {failure.reason!r}"
        deps.log.decided("reopened", offering=str(failure.offering), reason=arrived)
        for job_id in deps.jobs.load_waiting(CAPACITY, _MAX_WOKEN):
            deps.launches.request_launch(job_id)
