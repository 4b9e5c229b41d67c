"""`relaunch show`."""

import typer

from relaunch.core.jobs.training import measure_training
from relaunch.core.lifecycle.explanation import explain
from relaunch_cli.job_checkpoints import load_checkpoints
from relaunch_cli.job_machines import load_job_machines
from relaunch_cli.job_training import load_lines, with_noted
from relaunch_cli.lookup import connect, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.views.job_training import saved_rows
from relaunch_cli.views.jobs import render_job
from relaunch_cli.views.json_output.definitions import owner_json
from relaunch_cli.views.json_output.jobs import checkpoints_json, history_json, training_json
from relaunch_cli.views.machine_progress import with_progress
from relaunch_cli.views.screen import print_json, print_result, progress


def show(context: typer.Context, job: JobId, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """Show a job, its attempts, what it has saved and where, and who owns its definition now."""
    connection = connect(context, stack)
    deps = connection.deps
    with progress("reading the job"):
        history = load_history(deps, job)
        registered = deps.definitions.load_registered(history.job.definition.name)
        machines = load_job_machines(history.job, deps.machines)
        saved = load_checkpoints(history.job, deps.checkpoints)
        lines = load_lines(history, connection)
    now = deps.clock.now()
    history = with_noted(history, saved, now)
    training = measure_training(history.job, saved.newest, lines, now)
    owner = registered.owner if registered else None
    if as_json:
        document = history_json(history, now, machines)
        document |= {"checkpoints": checkpoints_json(history.job, saved), "definition_owner": owner_json(owner)}
        document["training"] = training_json(history.job, training)
        print_json(document)
    else:
        explanation = with_progress(explain(history.job, now), history.job, machines, now, deps.limits.machines)
        print_result(render_job(history, explanation, now, saved_rows(history.job, saved, training, now), owner))
