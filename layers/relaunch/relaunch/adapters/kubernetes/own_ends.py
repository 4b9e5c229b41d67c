"""Whether a program had ended by itself whose pod is gone, by events of the cluster.

The Job of a program that finished is complete, and so is that of one that saved on SIGTERM and exited with 0. A kubelet
records an event before it sends SIGTERM, and none for a program that ends (killContainer in pkg/kubelet/kuberuntime):
without one the program had finished, whoever deleted its pod afterwards. One that names a container beside the program
says nothing: kubelets end sidecars once the program is done (computePodActions there). Servers keep events for an
hour: as long as that of the Job's end is there, so is the kubelet's, which is up to two minutes older. What is recorded
of pods on virtual nodes is not documented.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from relaunch.adapters.kubernetes.api.models import Event, Job
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.stop_reports import find_condition

COMPLETED = "Completed"
KILLING = "Killing"
"""The reasons of the events: of a Job, from the Job controller, and of a pod, from a kubelet."""

# The words of a kubelet that ends a container which runs; for other reasons to end one it has others.
_STOPPING = "Stopping container "
# ACS and ECI, whose nodes are virtual, are chosen by labels of the pod.
_OF_VIRTUAL_NODES = "alibabacloud.com/"
# The name of a pod is that of its Job, cut so that a random end has room ("names.go", k8s.io/apiserver).
_ROOM = 58
_POD_NAME = re.compile(r"(?P<job>.+)-[a-z0-9]{5}")


def lacks_end(job: Job) -> bool:
    """Return whether a Job without a pod leaves open whether its program finished or saved."""
    is_complete = find_condition(job.status.conditions, "Complete") is not None
    is_known = STOP_REASON in job.metadata.annotations or job.metadata.deletion_timestamp is not None
    return is_complete and not is_known and not is_on_virtual_node(job)


def is_on_virtual_node(job: Job) -> bool:
    """Return whether the pods of a Job ask for virtual nodes, of whose events nothing is documented."""
    return any(each.startswith(_OF_VIRTUAL_NODES) for each in job.spec.template.metadata.labels)


def find_finished(jobs: Iterable[Job], completed: Iterable[Event], killed: Iterable[Event]) -> frozenset[str]:
    """Return the names of the Jobs whose programs had finished; the events are those of both reasons."""
    kept = {each.involved_object.uid for each in completed}
    of_owner = defaultdict[str, list[Event]](list)
    for each in killed:
        of_owner[owner_of_pod(each.involved_object.name)].append(each)
    return frozenset(
        job.metadata.name
        for job in jobs
        if job.metadata.uid in kept and not any(ends_program(job, each) for each in of_owner[job.metadata.name[:_ROOM]])
    )


def ends_program(job: Job, killed: Event) -> bool:
    """Return whether a kubelet's event about a pod of the Job may be of its program, or of what it has to wait for.

    The other containers beside it, sidecars, are ended after it too. An event from before the Job was made is of one
    that was deleted, whose name it has.
    """
    at = killed.first_timestamp or killed.at
    made_at = job.metadata.creation_timestamp
    if at is not None and made_at is not None and at < made_at:
        return False
    text = killed.message.strip()
    if not text.startswith(_STOPPING) or stops_program(job, killed):
        return True
    before = {each.name for each in job.spec.template.spec.init_containers if each.restart_policy != "Always"}
    return text.removeprefix(_STOPPING) in before


def stops_program(job: Job, killed: Event) -> bool:
    """Return whether a kubelet's event about a pod of the Job is of its program, which ran."""
    containers = job.spec.template.spec.containers
    return bool(containers) and killed.message.strip() == f"{_STOPPING}{containers[0].name}"


def owner_of_pod(name: str) -> str:
    """Return what the name of a pod begins with: that of its Job, and its index if it has one; empty for another."""
    found = _POD_NAME.fullmatch(name)
    return found["job"] if found is not None else ""
