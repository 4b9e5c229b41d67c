"""`relaunch wait`."""

import typer

from relaunch_cli.job_progress import exit_code_of, wait_for_job
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.views.json_output.jobs import job_json
from relaunch_cli.views.screen import print_json


def wait(context: typer.Context, job: JobId, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """Wait until a job has ended, and show its progress.

    The exit code is 0 if the job succeeded, 1 if it failed or timed out, and 130 if it was cancelled, or on Ctrl-C,
    which ends the wait, not the job.
    """
    connection = connect(context, stack)
    ended = wait_for_job(job, connection)
    if as_json:
        print_json(job_json(ended, connection.deps.clock.now()))
    raise typer.Exit(exit_code_of(ended))
