"""What a form of the dashboard does: the same use cases, and so the same checks, as `cancel`, `retry` and `submit`."""

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import keyed_identity
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.retry_job import retry_job
from relaunch.usecases.submit_job import Submission, submit_request
from relaunch_cli.aws.connected import Connection
from relaunch_cli.cancellation import cancel_for, describe_cancellation
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import load_definition, load_job
from relaunch_cli.submission import explained_refusals

INPUT_PREFIX = "input-"
"""The beginning of the name of a field that has an input."""


def cancel(job_id: str, reason: str, connection: Connection) -> str:
    """Cancel a job; return what came of it.

    Raises:
        CommandError: there is no such job.
        PortError: it is not cancelled.
    """
    deps = connection.deps
    before = load_job(deps, job_id)
    after, left = cancel_for(before.job_id, describe_cancellation(reason.strip(), connection.caller), deps)
    if before.state.is_final:
        return f"it had already ended: {before.state.value}"
    if after is not None and after.state.is_final:
        return f"it is {after.state.value}"
    return left or "its task is being stopped, and has time to save; then the job is CANCELLED"


def retry(job_id: str, key: str, connection: Connection) -> str:
    """Submit a job that goes on where one ended; return its ID. The same key returns the same job.

    Raises:
        CommandError: it cannot be retried.
    """
    deps = connection.deps
    ended = load_job(deps, job_id)
    asked = _request(ended.definition.name, {}, key, connection)
    with explained_refusals():
        return _id_of(retry_job(ended, asked, deps))


def submit(name: str, given: dict[str, str], key: str, connection: Connection) -> str:
    """Submit a job of a definition; return its ID. The same key returns the same job.

    Raises:
        CommandError: the request is refused.
    """
    deps = connection.deps
    definition: JobDefinition = load_definition(deps, name)
    with explained_refusals():
        return _id_of(submit_request(_request(definition.name, given, key, connection), deps))


def _request(name: str, given: dict[str, str], key: str, connection: Connection) -> DirectRequest:
    if not key:
        raise CommandError("the form has no key: load the page again")
    identity = keyed_identity(connection.caller, key)
    return DirectRequest(identity, name, given, connection.caller, connection.deps.clock.now())


def _id_of(submission: Submission) -> str:
    if submission.job is None:
        raise CommandError(submission.note)
    return submission.job.job_id
