"""`relaunch cancel`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli.lookup import connect, raise_no_job
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Job
    from relaunch.ports import Dependencies


def cancel(
    context: typer.Context,
    job: JobId,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Reason to record in the job's timeline.")
    ] = "cancelled by hand",
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Cancel a job.

    A running task receives SIGTERM and has time to save a checkpoint; the job is not launched again.
    """
    from relaunch_cli.views.json_output.jobs import job_json
    from relaunch_cli.views.screen import print_json, print_text, progress

    deps = connect(context, stack).deps
    with progress("cancelling"):
        before = deps.jobs.load_job(job) or raise_no_job(deps, job)
        after = _cancel(job, reason, deps) or raise_no_job(deps, job)
    if as_json:
        print_json({"state_before": before.state.value, **job_json(after, deps.clock.now())})
    else:
        print_text(_describe(before, after))


def _cancel(job_id: str, reason: str, deps: "Dependencies") -> "Job | None":
    """Cancel a job; a stop that this caller may not ask for is left to the functions, which repeat it."""
    from relaunch.ports import PortError
    from relaunch.usecases.cancel_job import cancel_job

    try:
        return cancel_job(job_id, reason, deps)
    except PortError as error:
        job = deps.jobs.load_job(job_id)
        if job is None or not job.definition.target.is_kubernetes or not job.cancel_requested:
            raise
        from relaunch_cli.views.screen import print_note

        print_note(f"the functions stop its task within a minute: {error}")
        return job


def _describe(before: "Job", after: "Job") -> str:
    if before.state.is_final:
        return f"{after.job_id} has already ended: {after.state}"
    if after.state.is_final:
        return f"{after.job_id} was {before.state} and is {after.state} now"
    return f"{after.job_id} was {before.state}: its task is being stopped, then the job is CANCELLED"
