"""The launch of a job of several nodes: what is checked before its Job is made, and the Service that is made then.

The Service belongs to its Job, whose UID it needs for that, and the cluster deletes it with the Job. All names are
those of the placement, so that a function that goes on where another one ended makes nothing twice.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from relaunch.adapters.kubernetes.api.errors import AlreadyExistsError
from relaunch.adapters.kubernetes.api.models import Job, RawObject, ServerVersion
from relaunch.adapters.kubernetes.gang_manifest import KNOWS_GANGS, has_ranks, headless_service, service_name
from relaunch.adapters.kubernetes.labels import TASK
from relaunch.adapters.kubernetes.launches import outcome_of_error
from relaunch.core.launches.launch import LaunchOutcome, LaunchRefused, LaunchUncertain, TaskPlaced
from relaunch.ports import PermanentError, PortError


class GangCluster(Protocol):
    """What is asked of the Kubernetes API; see `api.client`, whose errors these are."""

    def version(self) -> ServerVersion: ...

    def delete_job(self, name: str) -> None: ...

    def create_headless_service(self, manifest: Mapping[str, Any], *, is_dry: bool = False) -> None: ...

    def get_headless_service(self, name: str) -> RawObject | None: ...

    def delete_headless_service(self, name: str) -> None: ...


def check_cluster(cluster: GangCluster, manifest: Mapping[str, Any]) -> None:
    """Check that a cluster gives pods a rank, and that its Service may be made, before anything runs.

    Raises:
        PermanentError: it is too old.
        PortError: it refuses the Service, or does not answer.
    """
    version = cluster.version()
    if version.minor < KNOWS_GANGS:
        raise PermanentError(f"{_needs()}: the cluster has {version.git_version}")
    try:
        cluster.create_headless_service(headless_service(manifest), is_dry=True)
    except AlreadyExistsError:
        # Of an earlier send.
        return


def finish_launch(cluster: GangCluster, manifest: Mapping[str, Any], job: Job) -> LaunchOutcome:
    """Let the pods of a Job that was made find each other; return what becomes of the launch.

    A Job that the server stored without ranks is deleted.
    """
    name = job.metadata.name
    if not has_ranks(job):
        return _delete(cluster, name)
    try:
        cluster.create_headless_service(headless_service(manifest, job.metadata.uid))
    except AlreadyExistsError:
        return _outcome_of_existing(cluster, job)
    except PortError as error:
        return _with_job(outcome_of_error(error), name)
    return TaskPlaced(name)


def _delete(cluster: GangCluster, name: str) -> LaunchOutcome:
    reason = f"{_needs()}: the cluster made the Job {name} without ranks, and it was deleted"
    try:
        cluster.delete_job(name)
    except PermanentError as error:
        return LaunchRefused(f"{_needs()}: the cluster made the Job {name} without ranks: {error}", placed=(name,))
    except PortError as error:
        return LaunchUncertain(f"the Job {name} has no ranks, and is not deleted yet: {error}")
    return LaunchRefused(reason)


def _outcome_of_existing(cluster: GangCluster, job: Job) -> LaunchOutcome:
    name = job.metadata.name
    service = service_name(name)
    try:
        found = cluster.get_headless_service(service)
        if found is not None and found.metadata.labels.get(TASK) != name:
            return LaunchRefused(f"there is a Service {service} that is not of Relaunch", placed=(name,))
        if found is not None and any(each.uid == job.metadata.uid for each in found.metadata.owner_references):
            # The answer to an earlier send was lost: its pods have been able to meet since then.
            return TaskPlaced(name, since=found.metadata.creation_timestamp)
        cluster.delete_headless_service(service)
    except PortError as error:
        return _with_job(outcome_of_error(error), name)
    return LaunchUncertain(f"the Service {service} was that of an earlier Job of this name")


def _with_job(outcome: LaunchOutcome, name: str) -> LaunchOutcome:
    """Return the outcome of an error after the Job was made, which is stopped if the launch does not go on."""
    return replace(outcome, placed=(name,)) if isinstance(outcome, LaunchRefused) else outcome


def _needs() -> str:
    return f"a job with `nodes` needs Kubernetes 1.{KNOWS_GANGS}, from which on pods of a Job have a rank"
