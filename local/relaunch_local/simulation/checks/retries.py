"""What a job that retries another one must keep of it, told by the identity of its request alone."""

from collections.abc import Callable, Iterator, Mapping

from relaunch.core.jobs.job import Job
from relaunch_local.simulation.aws.s3 import Checkpoint, ObjectStore

_RETRY_OF = " retry of "
# The retry looks its image up again.
_OF_THE_EVENT_ALONE = "RELAUNCH_IMAGE_DIGEST"

Check = Callable[[str, bool, str], None]


def chain_of(job: Job, jobs: Mapping[str, Job]) -> Iterator[str]:
    """Yield the id of a job, that of the job it retries, and so on."""
    yield job.job_id
    while (before := jobs.get(job.trigger.identity.rpartition(_RETRY_OF)[2])) is not None:
        yield before.job_id
        job = before


def newest_checkpoint(job: Job, jobs: Mapping[str, Job], objects: ObjectStore) -> Checkpoint | None:
    """Return from what a job must resume now: from its own newest checkpoint, else of the job it retries."""
    if job.definition.checkpoint_uri is None:
        return None
    found = (objects.newest.get(job_id) for job_id in chain_of(job, jobs))
    return next((each for each in found if each is not None), None)


def check_retry(check: Check, job: Job, jobs: Mapping[str, Job]) -> None:
    """Check a new job: what retries another one retries one that is over, with its definition, inputs and trigger."""
    retried = next((jobs[job_id] for job_id in chain_of(job, jobs) if job_id != job.job_id), None)
    if retried is None:
        return
    check("only a job that is over is retried", retried.state.is_final, f"{job.job_id} retries {retried.job_id}")
    is_same = (job.definition.name, job.inputs) == (retried.definition.name, retried.inputs)
    facts = [
        {name: value for name, value in each.trigger.environment.items() if name != _OF_THE_EVENT_ALONE}
        for each in (job, retried)
    ]
    is_same &= facts[0] == facts[1]
    check("a retry has the inputs and the trigger of the job it retries", is_same, f"{job.job_id}: {facts}")


def kept_of(job: Job) -> tuple[object, ...]:
    """Return what no retry may change of the job that it retries; effects may still be done."""
    told = (job.state, job.reason, job.ended_at, job.trigger, job.inputs, job.definition, job.revision)
    totals = job.totals
    return *told, job.resume_from, totals.failures, totals.interruptions, totals.run_seconds, totals.cost_usd
