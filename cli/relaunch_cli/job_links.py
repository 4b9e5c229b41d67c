"""The links of a job's task, log stream and instance in the AWS console, for `open` and the dashboard."""

from typing import TYPE_CHECKING

from relaunch_cli import exit_codes
from relaunch_cli.console_links import TaskConsole
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import find_container

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.ports import JobHistory
    from relaunch_cli.aws.connected import Connection

TASK = "task"
LOG = "log"
INSTANCE = "instance"


def find_links(
    history: "JobHistory", attempt: "Attempt | None", connection: "Connection"
) -> tuple[dict[str, str], str]:
    """Return the links of TASK, LOG and INSTANCE of an attempt, as far as there are any, and why its log has none.

    Raises:
        CommandError: there is no task, it is not on ECS, or its ARN cannot be read.
    """
    name = history.job.job_id
    if not history.job.definition.target.capabilities.takes_task_definition:
        hint = "`relaunch show` has the name of its task, which is a Job: `kubectl describe job NAME`"
        raise CommandError(f"{name} runs on {history.job.definition.target}, which the AWS console does not show", hint)
    if attempt is None or not attempt.task_id:
        raise CommandError(f"{name} has no task yet", f"`relaunch explain {name}`", exit_codes.NOT_FOUND)
    try:
        console = TaskConsole.of(attempt.task_id)
    except ValueError as error:
        raise CommandError(f"{name}: {attempt.task_id!r} is no ARN of a task") from error
    links = {TASK: console.task_link()}
    log, problem = _find_log(history, attempt.task_id, console, connection)
    if log:
        links[LOG] = log
    if instance_id := attempt.instance_id or attempt.placement.instance_id:
        links[INSTANCE] = console.instance_link(instance_id)
    return links, problem


def _find_log(history: "JobHistory", task_arn: str, console: TaskConsole, connection: "Connection") -> tuple[str, str]:
    """Return the link of the log stream of a task's main container, or why there is none."""
    try:
        container = find_container(None, history)
        destination = connection.logs.destination(history.job.revision.arn, container)
    except CommandError as error:
        return "", str(error)
    return console.log_link(destination.group, destination.stream(container, task_arn), destination.region), ""
