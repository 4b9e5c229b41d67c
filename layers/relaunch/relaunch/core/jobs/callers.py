"""Who asks for a job directly, and which jobs are the caller's own."""

from relaunch.core.jobs.job import Job

INVOKE = "invoke"
"""The caller of every direct Invoke of `job_api`: Lambda does not tell a function who invokes it."""


def keyed_identity(caller: str, key: str) -> str:
    """Return the identity of a request with an idempotency key: each caller has keys of its own.

    An ARN has no space. The keys of INVOKE are those of earlier versions, which had only this caller.
    """
    return f"api:key:{key}" if caller == INVOKE else f"api:caller:{caller} {key}"


def is_own(job: Job, caller: str) -> bool:
    """Return whether a caller may see and cancel a job: one that it asked for.

    Jobs that nobody asked for (those of events) and those of versions that stored no caller are INVOKE's.
    """
    return job.trigger.caller == caller or (caller == INVOKE and not job.trigger.caller)
