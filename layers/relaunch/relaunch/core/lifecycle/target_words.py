"""What the targets call themselves and what is asked of them, for texts that people read."""

from dataclasses import dataclass

from relaunch.core.jobs.job import Job


@dataclass(frozen=True, slots=True)
class TargetWords:
    """The words of a target.

    `launch` and `stop` are the calls, `again` why a repeated launch is harmless.
    """

    name: str
    launch: str
    stop: str
    again: str


_ECS = TargetWords("ECS", "RunTask", "StopTask", "with the same client token")
_KUBERNETES = TargetWords("Kubernetes", "the request for its Job", "the deletion of its pod", "under the same name")


def words_of(job: Job) -> TargetWords:
    """Return the words of the target of a job."""
    return _KUBERNETES if job.definition.target.is_kubernetes else _ECS
