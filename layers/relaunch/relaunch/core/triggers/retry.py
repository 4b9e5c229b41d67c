"""Decides whether a job can be retried, and what the job that retries it takes over."""

from collections.abc import Mapping

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.core.records import dataclass
from relaunch.core.triggers.events import RetriedJob

# The tag is looked up again, as the revision is, and may be on another image by now.
_OF_THE_EVENT_ALONE = frozenset({"RELAUNCH_IMAGE_DIGEST"})


@dataclass(frozen=True, slots=True)
class CannotRetry:
    """The job cannot be retried; `reason` says why, and what to do."""

    reason: str


def retry(job: Job, step: int | None = None, attempt: int | None = None) -> RetriedJob | CannotRetry:
    """Return what a job takes over that retries another one; `step` and `attempt` choose among its checkpoints.

    Only a job that has ended can be retried: then none of its tasks lives, so that no two of them train the same, and
    its checkpoints do not change any more. The new one writes below a prefix of its own. A job that was not launched
    has no checkpoints; the one that it retries itself may have.
    """
    if not job.state.is_final:
        return CannotRetry(f"job {job.job_id} is {job.state}: wait until it has ended, or cancel it")
    uri = job.definition.checkpoint_uri
    if step is None and attempt is None:
        own = (ResumePoint(job.job_id, uri),) if uri is not None and job.attempt is not None else ()
        points = own + job.resume_from
    elif uri is None:
        return CannotRetry(f"job {job.job_id} has no checkpoints: its definition names no `checkpoint`")
    else:
        points = (ResumePoint(job.job_id, uri, step, attempt),)
    environment = {name: text for name, text in job.trigger.environment.items() if name not in _OF_THE_EVENT_ALONE}
    return RetriedJob(job.job_id, environment, job.image or _pushed_image(environment), points)


def _pushed_image(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the repository and the tag of the image whose push started a job."""
    repository = environment.get("RELAUNCH_IMAGE_REPOSITORY")
    tag = environment.get("RELAUNCH_IMAGE_TAG")
    return (repository, tag) if repository and tag else None
