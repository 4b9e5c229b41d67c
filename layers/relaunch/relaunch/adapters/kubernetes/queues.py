"""Jobs that a queue of the cluster holds back: Kueue, ack-kube-queue, or whoever else suspends them.

A queue takes Jobs that are created suspended, and lets them go on when there is quota ("Run A Kubernetes Job", Kueue;
"ack-kube-queue", ACK). It suspends one again to give its place to another: the Job controller then deletes the pod,
with its grace period, and counts it neither as failed nor as succeeded; when the Job goes on its time begins again
("Suspending a Job", Kubernetes documentation; KEP-2232).
"""

from collections.abc import Iterable

from relaunch.adapters.kubernetes.api.models import Event, Job
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.stop_reports import find_condition
from relaunch.core.kubernetes.rules import QUEUE_LABEL

QUEUE_PENDING = "Pending"
"""the reason of the events in which Kueue says why the workload of a Job is not admitted."""
KNOWS_SUSPEND = 22
"""The minor version of the first servers that suspend Jobs (beta, on by default); others drop the field."""

_WORKLOAD = "Workload"
# `job-`, the name of the Job, `-` and a hash of five characters ("workload names", Kueue).
_HASH_LENGTH = 5


def is_held_back(job: Job) -> bool:
    """Return whether the Job is suspended and has not finished."""
    return bool(job.spec.suspend) and find_condition(job.status.conditions, "Complete", "Failed") is None


def is_withdrawn(job: Job) -> bool:
    """Return whether Relaunch stopped a Job that was suspended: its deadline does not count, and it makes no pod."""
    return is_held_back(job) and job.spec.parallelism == 0 and STOP_REASON in job.metadata.annotations


def queue_words(job: Job, said: str) -> str:
    """Return why a suspended Job does not start."""
    name = job.metadata.labels.get(QUEUE_LABEL, "")
    return ": ".join(part for part in (f"suspended, queue {name}" if name else "suspended", said.strip()) if part)


def find_queue_words(jobs: Iterable[Job], events: Iterable[Event]) -> dict[str, str]:
    """Return what Kueue said last of the Jobs, by their names; `events` are in the order in which they happened."""
    said = {each.involved_object.name[:-_HASH_LENGTH]: each.message for each in events if _is_of_workload(each)}
    names = [job.metadata.name for job in jobs]
    return {name: said[f"job-{name}-"] for name in names if f"job-{name}-" in said}


def _is_of_workload(event: Event) -> bool:
    return event.involved_object.kind == _WORKLOAD
