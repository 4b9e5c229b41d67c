"""`relaunch open`."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.job_links import INSTANCE, LOG, TASK, find_links
from relaunch_cli.lookup import connect, find_attempt, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.views.screen import print_json, print_note, print_text, progress


class Page(StrEnum):
    """What is opened."""

    TASK = TASK
    LOG = LOG
    INSTANCE = INSTANCE


def open_(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    job: JobId,
    page: Annotated[Page, typer.Argument(help="What to open.")] = Page.TASK,
    attempt: Annotated[int | None, typer.Option(metavar="N", min=1, help="This attempt; default: the latest.")] = None,
    *,
    is_printed: Annotated[bool, typer.Option("--print", help="Print the links and open nothing.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Open a job's task, log stream or instance in the AWS console, and print the links of all three."""
    connection = connect(context, stack)
    with progress("reading the job"):
        history = load_history(connection.deps, job)
        links, problem = find_links(history, find_attempt(attempt, history.attempts, history.job.job_id), connection)
    if problem:
        print_note(f"no link of its log: {problem}")
    if as_json:
        print_json({"links": {each.value: links.get(each) for each in Page}})
    for name, link in {} if as_json else links.items():
        print_text(f"{name:<8}  {link}")
    if is_printed or as_json:
        return
    if page not in links:
        raise CommandError(f"{job} has no {page} to open", exit_code=exit_codes.NOT_FOUND)
    if any(name.startswith("AWS_ENDPOINT_URL") for name in os.environ):
        print_note("not opened: AWS_ENDPOINT_URL is set, and the console knows AWS alone")
    else:
        typer.launch(links[page])
