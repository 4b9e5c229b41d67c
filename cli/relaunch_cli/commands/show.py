"""`relaunch show`."""

import typer

from relaunch.core.lifecycle.explanation import explain
from relaunch_cli.job_checkpoints import load_checkpoints
from relaunch_cli.job_machines import load_job_machines
from relaunch_cli.lookup import connect, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.views.jobs import render_job
from relaunch_cli.views.json_output.definitions import owner_json
from relaunch_cli.views.json_output.jobs import checkpoints_json, history_json
from relaunch_cli.views.machine_progress import with_progress
from relaunch_cli.views.screen import print_json, print_result, progress


def show(context: typer.Context, job: JobId, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """Show a job, its attempts, what it has saved and where, and who owns its definition now."""
    deps = connect(context, stack).deps
    with progress("reading the job"):
        history = load_history(deps, job)
        registered = deps.definitions.load_registered(history.job.definition.name)
        machines = load_job_machines(history.job, deps.machines)
        saved = load_checkpoints(history.job, deps.checkpoints)
    now = deps.clock.now()
    owner = registered.owner if registered else None
    if as_json:
        document = history_json(history, now, machines)
        document |= {"checkpoints": checkpoints_json(history.job, saved), "definition_owner": owner_json(owner)}
        print_json(document)
    else:
        explanation = with_progress(explain(history.job, now), history.job, machines, now, deps.limits.machines)
        print_result(render_job(history, explanation, now, saved, owner))
