"""What the Job of a job of several nodes has beside that of one, and the Service for its pods to meet.

The index of a pod is its rank: the Job controller writes it as an annotation, gives the pod the host name
`<job>-<index>`, and replaces no pod of a Job that fails with the first one. The Service is headless, and DNS has an
address of each pod by it, before the pod is ready ("Job with Pod-to-Pod Communication", "DNS for Services and Pods",
Kubernetes documentation; pkg/controller/job/indexed_job_utils.go of Kubernetes).
"""

from collections.abc import Mapping
from typing import Any

from relaunch.adapters.kubernetes.api.models import Job
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.ack import GROUP_NAME, GROUP_SIZE
from relaunch.core.launches.launch import LaunchRequest
from relaunch.core.launches.launch_plan import own_of_rank

INDEXED = "Indexed"
KNOWS_GANGS = 24
"""The minor version of the first servers whose Indexed Jobs are stable; 1.22 and 1.23 have them as beta, and older ones
drop the field and start pods without a rank."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""The annotation of pods with the index."""

# Names of Services begin with a letter, and those of Jobs may not (RFC 1035, RFC 1123).
_SERVICE = "nodes-"


def job_fields(nodes: int) -> dict[str, Any]:
    """Return how many pods a Job makes, and that each has an index if they are several."""
    counts = {"parallelism": nodes, "completions": nodes}
    return counts if nodes == 1 else {**counts, "completionMode": INDEXED}


def group_labels(target: Target, job: str, nodes: int) -> Mapping[str, str]:
    """Return the labels that let the scheduler of a target place all pods of a Job together; none for one pod.

    Each placement is a group of its own.
    """
    if nodes == 1 or not target.capabilities.has_pod_groups:
        return {}
    return {GROUP_NAME: job, GROUP_SIZE: str(nodes)}


def service_name(job: str) -> str:
    """Return the name of the Service of a Job, which is also the subdomain of its pods."""
    return f"{_SERVICE}{job}"


def rank_variables(request: LaunchRequest, job: str) -> list[dict[str, Any]]:
    """Return the variables of each pod that say which rank it is, and the name of the first; none for one pod."""
    if request.nodes == 1:
        return []
    own = request.workload.own_variables if request.workload is not None else ()
    given = {**request.environment, **dict.fromkeys(own, "")}
    # A reference to a field: a variable can name only those before it, and the Job controller adds its own last.
    index = {"valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}}
    address = f"{job}-0.{service_name(job)}"
    found = own_of_rank(given, "", address)
    return [{"name": name, **({"value": value} if value else index)} for name, value in sorted(found.items())]


def headless_service(job: Mapping[str, Any], uid: str = "") -> dict[str, Any]:
    """Return the Service for the pods of a Job, by its manifest; with the UID of the Job it is deleted with it."""
    metadata = job["metadata"]
    name = metadata["name"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service_name(name),
            "labels": metadata["labels"],
            **({"ownerReferences": [owner]} if uid else {}),
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {TASK: name}},
    }


def has_ranks(job: Job) -> bool:
    """Return whether the pods of a Job have indices: servers that do not know the field have dropped it."""
    return job.spec.completion_mode == INDEXED
