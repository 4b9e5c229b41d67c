"""`relaunch explain`."""

from typing import Annotated

import typer

from relaunch_cli.lookup import connect, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack


def explain(
    context: typer.Context,
    job: JobId,
    is_full: Annotated[bool, typer.Option("--all", help="Name every rejected offering.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Explain what a job waits for and what happens next.

    Also shows since when it waits, what you can change, its timeline, and the selection of each attempt.
    """
    from relaunch.core.lifecycle.explanation import explain as explain_job
    from relaunch_cli.views.jobs import render_full_explanation
    from relaunch_cli.views.json_output.jobs import explanation_json
    from relaunch_cli.views.screen import print_json, print_result, progress, stdout_console

    deps = connect(context, stack).deps
    with progress("reading the job"):
        history = load_history(deps, job)
    now = deps.clock.now()
    explanation = explain_job(history.job, now)
    if as_json:
        print_json(explanation_json(history, explanation, now))
    else:
        width = stdout_console().width
        print_result(render_full_explanation(history, explanation, now, width, is_full=is_full))
