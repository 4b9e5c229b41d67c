"""`relaunch cancel`."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from relaunch_cli.cancellation import cancel_for, describe_cancellation
from relaunch_cli.completions import complete_job
from relaunch_cli.errors import CommandError, explain_error
from relaunch_cli.lookup import LATEST, connect, load_job
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.terminal import echo
from relaunch_cli.views.json_output.jobs import job_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.jobs.job import Job
    from relaunch.ports import Dependencies


def cancel(
    context: typer.Context,
    jobs: Annotated[
        list[str],
        typer.Argument(metavar="JOB", help="IDs of the jobs, as printed by `ps`.", autocompletion=complete_job),
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason to record in the job's timeline.")] = "",
    *,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Cancel jobs.

    A running task receives SIGTERM and has time to save a checkpoint; the job is not launched again. No job is
    cancelled if one of them does not exist. The timeline names who cancelled.
    """
    if LATEST in jobs:
        raise CommandError("`cancel` takes no `-`: the newest job may be somebody else's", "name the job")
    connection = connect(context, stack)
    deps = connection.deps
    with progress("cancelling"):
        reason = describe_cancellation(reason, connection.caller)
        found = [load_job(deps, job_id) for job_id in dict.fromkeys(jobs)]
        cancelled, failed = _cancel_all(found, reason, deps)
    if as_json and (cancelled or len(found) > 1):
        documents = [_document(before, after, deps) for before, after in cancelled]
        print_json(documents[0] if len(found) == len(documents) == 1 else {"jobs": documents})
    for before, after in [] if as_json else cancelled:
        print_result(_describe(before, after))
    if failed:
        _raise(failed, len(found))


def _cancel_all(
    jobs: "Sequence[Job]", reason: str, deps: "Dependencies"
) -> "tuple[list[tuple[Job, Job]], list[tuple[Job, Exception]]]":
    """Cancel each job; return those that are, before and after, and those that are not, with the error."""
    cancelled: list[tuple[Job, Job]] = []
    failed: list[tuple[Job, Exception]] = []
    for job in jobs:
        try:
            after, left = cancel_for(job.job_id, reason, deps)
            cancelled.append((job, after or job))
            if left:
                print_note(left)
        except Exception as error:
            if explain_error(error) is None:
                raise
            failed.append((job, error))
    return cancelled, failed


def _raise(failed: "Sequence[tuple[Job, Exception]]", count: int) -> NoReturn:
    """Raise the error of the only job, or print those of several jobs and raise one with the exit code of the first.

    Raises:
        CommandError: always.
    """
    errors = [(job.job_id, explained) for job, error in failed if (explained := explain_error(error))]
    if count == 1:
        raise errors[0][1]
    for job_id, error in errors:
        echo(f"{job_id}: {error.message}", err=True)
    raise CommandError(
        f"{len(errors)} of {count} jobs are not cancelled", errors[0][1].hint, exit_code=errors[0][1].exit_code
    )


def _document(before: "Job", after: "Job", deps: "Dependencies") -> dict[str, object]:
    return {"state_before": before.state.value, **job_json(after, deps.clock.now())}


def _describe(before: "Job", after: "Job") -> str:
    if before.state.is_final:
        return f"{after.job_id} has already ended: {after.state}"
    if after.state.is_final:
        return f"{after.job_id} was {before.state} and is {after.state} now"
    return f"{after.job_id} was {before.state}: its task is being stopped, then the job is CANCELLED"
