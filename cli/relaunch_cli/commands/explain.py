"""`relaunch explain`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.training import measure_training
from relaunch.core.lifecycle.explanation import explain as explain_job
from relaunch.usecases.count_waiting_jobs import count_waiting_jobs
from relaunch_cli.job_checkpoints import load_checkpoints
from relaunch_cli.job_machines import load_job_machines
from relaunch_cli.job_nodes import find_node_fits
from relaunch_cli.job_starts import has_more, load_starts
from relaunch_cli.job_training import load_lines, with_noted
from relaunch_cli.lookup import connect, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.save_advice import advise_job
from relaunch_cli.views.job_training import saved_rows
from relaunch_cli.views.jobs import render_full_explanation
from relaunch_cli.views.json_output.jobs import checkpoints_json, explanation_json, training_json
from relaunch_cli.views.json_output.start_stages import starts_json
from relaunch_cli.views.machine_progress import with_progress
from relaunch_cli.views.node_fit import fits_json, render_fits
from relaunch_cli.views.screen import print_json, print_result, print_text, progress
from relaunch_cli.views.start_stages import render_starts

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Job
    from relaunch.core.triggers.waiting_jobs import WaitingJobs
    from relaunch.ports import Dependencies


def explain(
    context: typer.Context,
    job: JobId,
    *,
    is_full: Annotated[
        bool, typer.Option("--full", help="The whole timeline, and every selection with each rejected offering.")
    ] = False,
    is_machine: Annotated[
        bool, typer.Option("--machine", help="How the machine and the task of the newest attempt started, by stage.")
    ] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Explain what a job waits for and what happens next.

    Also shows since when it waits, what you can change, its last events, and its newest selection.
    """
    connection = connect(context, stack)
    deps = connection.deps
    if is_machine:
        _explain_machine(job, deps, is_full=is_full, as_json=as_json)
        return
    with progress("reading the job"):
        history = load_history(deps, job)
        waiting = _count_waiting(history.job, deps)
        machines = load_job_machines(history.job, deps.machines)
        saved = load_checkpoints(history.job, deps.checkpoints)
        lines = load_lines(history, connection)
        fits = find_node_fits(history.job, deps.limits.pods.nodes)
    now = deps.clock.now()
    history = with_noted(history, saved, now)
    training = measure_training(history.job, saved.newest, lines, now)
    explanation = explain_job(history.job, now)
    explanation = replace(explanation, advice=(*explanation.advice, *advise_job(history)))
    if as_json:
        document = explanation_json(history, explanation, now, waiting, machines)
        document |= {"checkpoints": checkpoints_json(history.job, saved), "nodes": fits_json(fits)}
        print_json({**document, "training": training_json(history.job, training)})
    else:
        explanation = with_progress(explanation, history.job, machines, now, deps.limits.machines)
        rows = saved_rows(history.job, saved, training, now)
        print_result(render_full_explanation(history, explanation, now, rows, waiting, is_full=is_full))
        if fits:
            print_result(render_fits(fits, history.job.definition))


def _explain_machine(job: str, deps: "Dependencies", *, is_full: bool, as_json: bool) -> None:
    """Print the stages of the newest start of a job, with `is_full` or `as_json` of all."""
    with progress("reading the job"):
        history = load_history(deps, job)
        now = deps.clock.now()
        starts = load_starts(history, deps.machines, now, is_full=is_full or as_json)
    if as_json:
        print_json(starts_json(history.job.job_id, starts))
    elif starts:
        shown = starts if is_full else starts[-1:]
        print_result(render_starts(shown, now, has_more=not is_full and has_more(history)))
    else:
        print_text(f"{history.job.job_id} has asked for no machine yet: `relaunch explain` says what it waits for")


def _count_waiting(job: "Job", deps: "Dependencies") -> "WaitingJobs | None":
    """Count the jobs that wait beside a waiting job, by the limit of its definition as it is now."""
    if job.state is not JobState.WAITING:
        return None

    return count_waiting_jobs(deps.definitions.load_definition(job.definition.name) or job.definition, deps)
