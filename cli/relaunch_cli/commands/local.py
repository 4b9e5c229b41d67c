"""`relaunch local`: pushes to the local world, and faults of it, each aimed at a job."""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, load_job
from relaunch_cli.options import DEFAULT_STACK, JobId, Stack
from relaunch_cli.repository_setup.git_repository import find_repository
from relaunch_cli.repository_setup.local_push import find_push
from relaunch_cli.views.screen import print_note, progress

if TYPE_CHECKING:
    from relaunch.core.jobs.attempt import Attempt
    from relaunch_cli.aws.connected import Connection

_START_SECONDS = 30
_POLL_SECONDS = 1.0
_RECENT_EVENTS = 5


def interrupt(
    context: typer.Context,
    job: JobId,
    lead: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Time from the warning to the end; default: as EC2, two minutes."),
    ] = None,
    *,
    has_rebalance: Annotated[
        bool, typer.Option("--rebalance-first", help="Send a rebalance recommendation before the warning.")
    ] = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Take the spot instance of a job away, with EC2's warning.

    The task receives SIGTERM and can save a checkpoint; the job is launched again on another machine.
    """
    connection = connect(context, stack)
    attempt = _load_attempt(job, connection)
    if attempt.placement.offering.purchase is not PurchaseOption.SPOT:
        hint = f"`relaunch local terminate {job}` ends its instance without a warning"
        raise CommandError(f"{job} does not run on spot, and EC2 interrupts nothing else", hint)
    instance_id = _running_instance(job, attempt)
    arguments = {"instance_id": instance_id, "lead_seconds": lead, "rebalance_first": has_rebalance}
    connection.local_world.control("interrupt", arguments)
    print_note(f"EC2 warns that it takes {instance_id} away; `relaunch explain {job}` shows what follows")


def terminate(context: typer.Context, job: JobId, stack: Stack = DEFAULT_STACK) -> None:
    """Terminate the instance of a job without a warning.

    The task receives no SIGTERM; the job is launched again, from its newest complete checkpoint.
    """
    connection = connect(context, stack)
    instance_id = _running_instance(job, _load_attempt(job, connection))
    connection.local_world.control("terminate", {"instance_id": instance_id})
    print_note(f"{instance_id} is terminated; `relaunch explain {job}` shows what follows")


def no_capacity(
    context: typer.Context,
    job: JobId,
    *,
    is_ended: Annotated[bool, typer.Option("--end", help="Let EC2 have capacity again.")] = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Let EC2 have no capacity for what a job was launched on last, in any zone.

    Instances that run go on. The next launch of any job there finds none, until `--end`.
    """
    connection = connect(context, stack)
    offering = _load_attempt(job, connection).placement.offering
    pool = {"instance_type": offering.instance_type, "purchase": offering.purchase.value}
    connection.local_world.control("capacity", {**pool, "instances": None if is_ended else 0})
    shown = f"{offering.instance_type} {offering.purchase}"
    print_note(f"EC2 has capacity for {shown}" if is_ended else f"EC2 has no capacity for {shown} until `--end`")


def push(context: typer.Context, stack: Stack = DEFAULT_STACK) -> None:
    """Push the commit that you are on as an image, as `git push` and the workflow at GitHub would.

    Nothing is built: the local world runs the files of the commit, each container in a folder of its own, with the
    programs of this terminal's PATH but for Relaunch's own, and with the command of task-definition.json or of the
    Dockerfile. Waits some seconds for the job that the image starts.
    """
    found = find_push(find_repository(Path.cwd()))
    connection = connect(context, stack)
    with tempfile.TemporaryDirectory(prefix="relaunch-") as folder:
        arguments = found.archive(Path(folder) / "files.tar")
        answer = connection.local_world.control("push", arguments)
    if found.has_changes:
        print_note("what is not committed is not in it, as at GitHub")
    if found.tag not in answer["pushed"]:
        print_note(f"{found.repository}:{found.tag} was pushed before, and starts nothing: commit, or relaunch submit")
        return
    print_note(f"pushed {found.repository}:{found.tag} and {found.newest_tag}")
    print_note(_describe_python(answer["python"]))
    print_note(_await_start(f"ecr:{found.repository}:{found.tag}:", connection))


def _describe_python(python: str) -> str:
    """Say what runs the training, where nothing is built; empty: this terminal has no `python` but Relaunch's own."""
    if python:
        return f"nothing was built: `python` is {python}, with the packages that it has"
    return (
        "nothing was built, and `python` is Relaunch's own, without the packages of your training: this terminal has "
        "no other. Activate the environment of your training, commit, and push again"
    )


def _await_start(identity: str, connection: "Connection") -> str:
    """Wait until an event with such an identity was handled; return what it started, or why it started nothing."""
    deps = connection.deps
    ends_at = deps.clock.now() + timedelta(seconds=_START_SECONDS)
    with progress("waiting for the job that the image starts"):
        while True:
            handled = deps.events.list_events(deps.clock.now(), _RECENT_EVENTS)
            found = next((each for each in handled if each.identity.startswith(identity)), None)
            if found is not None and found.job_ids:
                return f"started {', '.join(found.job_ids)}: relaunch logs {found.job_ids[0]} -f"
            if found is not None:
                return f"it started no job: {found.outcome}"
            if deps.clock.now() >= ends_at:
                return f"no job within {_START_SECONDS} s: `relaunch events` shows what becomes of the image"
            connection.pause(_POLL_SECONDS)


def _load_attempt(job_id: str, connection: "Connection") -> "Attempt":
    """Return the current attempt of a job.

    Raises:
        CommandError: there is no such job, or it was not launched yet.
    """
    job = load_job(connection.deps, job_id)
    if job.attempt is None:
        raise CommandError(f"{job_id} was not launched yet", f"`relaunch explain {job_id}`", exit_codes.NOT_FOUND)
    return job.attempt


def _running_instance(job_id: str, attempt: "Attempt") -> str:
    """Return the instance that a task is on.

    Raises:
        CommandError: it is on none, or has ended.
    """
    instance_id = attempt.instance_id or attempt.placement.instance_id
    if attempt.stop is not None or not instance_id:
        hint = f"`relaunch show {job_id}` says how its attempts ended, and what it waits for"
        raise CommandError(f"{job_id} has no task on an instance now", hint, exit_codes.NOT_FOUND)
    return instance_id


group = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Push to the local world (`make local`), and cause faults in it."
)
group.command()(push)
group.command()(interrupt)
group.command()(terminate)
group.command("no-capacity")(no_capacity)
