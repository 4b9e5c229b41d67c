"""`relaunch lost`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.lifecycle.unconfirmed_stops import why_not_given_up
from relaunch.ports import PortError
from relaunch.usecases.give_up_task import give_up_task
from relaunch_cli.completions import complete_job
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import LATEST, connect, load_job
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.json_output.jobs import job_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Job
    from relaunch.ports import Dependencies


def lost(
    context: typer.Context,
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="ID of the job, as printed by `ps`.", autocompletion=complete_job),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Take the pod of a job for lost, whose node is out of reach.

    A cluster keeps such a pod until the node is removed, and the job waits for it for a day. The job goes on from its
    newest checkpoint, or ends if it is cancelled or out of time. The pod may live on, and cost: each attempt writes its
    checkpoints under a prefix of its own. The timeline names who said so.
    """
    if job == LATEST:
        raise CommandError("`lost` takes no `-`: the newest job may be somebody else's", "name the job")
    connection = connect(context, stack)
    deps = connection.deps
    found = load_job(deps, job)
    if why := why_not_given_up(found, deps.clock.now()):
        raise CommandError(f"the task of {found.job_id} is not taken for lost", why)
    node = found.current_attempt.node or "an unknown node"
    if not yes:
        confirm(f"Take the pod of {found.job_id} on {node} for lost?", done="changed", does="does it")
    with progress("giving up the pod"):
        after = _give_up(found, f"taken for lost by {connection.caller}", deps)
    if as_json:
        print_json({"state_before": found.state.value, **job_json(after, deps.clock.now())})
        return
    print_result(f"{after.job_id} was {found.state} and is {after.state} now; its pod may live on {node}")


def _give_up(job: "Job", reason: str, deps: "Dependencies") -> "Job":
    """Give the task up; what this caller may not ask the cluster for is left to the functions, which repeat it."""
    try:
        return give_up_task(job.job_id, reason, deps) or job
    except PortError as error:
        after = deps.jobs.load_job(job.job_id)
        if after is None or after.state is job.state:
            raise
        print_note(f"the functions go on with it within minutes: {error}")
        return after
