"""`relaunch open`."""

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.console_links import TaskConsole
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, find_attempt, find_container, load_history
from relaunch_cli.options import DEFAULT_STACK, JobId, Json, Stack
from relaunch_cli.views.screen import print_json, print_note, print_text, progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.core.jobs.attempt import Attempt
    from relaunch.ports import JobHistory
    from relaunch_cli.aws.connected import Connection


class Page(StrEnum):
    """What is opened."""

    TASK = "task"
    LOG = "log"
    INSTANCE = "instance"


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
        links = _find_links(history, find_attempt(attempt, history.attempts, history.job.job_id), connection)
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


def _find_links(history: "JobHistory", attempt: "Attempt | None", connection: "Connection") -> "Mapping[Page, str]":
    """Return the links of an attempt's task, its log and its instance, as far as there are any.

    Raises:
        CommandError: there is no task, or it is not on ECS.
    """
    name = history.job.job_id
    if not history.job.definition.target.capabilities.takes_task_definition:
        hint = "`relaunch show` has the name of its task, which is a Job: `kubectl describe job NAME`"
        raise CommandError(f"{name} runs on {history.job.definition.target}, which the AWS console does not show", hint)
    if attempt is None or not attempt.task_id:
        raise CommandError(f"{name} has no task yet", f"`relaunch explain {name}`", exit_codes.NOT_FOUND)
    console = TaskConsole.of(attempt.task_id)
    links = {Page.TASK: console.task_link()}
    if log := _find_log(history, attempt.task_id, console, connection):
        links[Page.LOG] = log
    if instance_id := attempt.instance_id or attempt.placement.instance_id:
        links[Page.INSTANCE] = console.instance_link(instance_id)
    return links


def _find_log(history: "JobHistory", task_arn: str, console: "TaskConsole", connection: "Connection") -> str:
    """Return the link of the log stream of a task's main container, empty if its log is not in CloudWatch Logs."""
    try:
        container = find_container(None, history)
        destination = connection.logs.destination(history.job.revision.arn, container)
    except CommandError as error:
        print_note(f"no link of its log: {error}")
        return ""
    return console.log_link(destination.group, destination.stream(container, task_arn), destination.region)
