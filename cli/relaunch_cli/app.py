"""The subcommands of the `relaunch` command, and how it ends."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.bugs import DEBUG_VARIABLE, describe_bug
from relaunch_cli.errors import explain_error, print_error
from relaunch_cli.lazy_commands import COMPLETE_VARIABLE, lazy_group
from relaunch_cli.terminal import echo

COMMANDS = {
    "deploy": (
        "deploy:deploy",
        "Deploy Relaunch: what trainings need, what machines are launched with, and the application.",
    ),
    "init": ("init:init", "Set up the repository of a training, in which you are."),
    "apply": ("apply:apply", "Validate the job definitions of FILE and register them."),
    "plan": ("plan:plan", "Show where a job would run now, and why not elsewhere."),
    "submit": ("submit:submit", "Submit a job and print its ID."),
    "wait": ("wait:wait", "Wait until a job has ended, and show its progress."),
    "retry": ("retry:retry", "Submit a job that goes on where another one ended, and print its ID."),
    "ps": ("ps:ps", "List the open jobs, newest first; their costs include the running task."),
    "show": ("show:show", "Show a job, its attempts, what it has saved and where, and who owns its definition now."),
    "explain": ("explain:explain", "Explain what a job waits for and what happens next."),
    "logs": ("logs:logs", "Print the logs of a job's tasks, all attempts in order."),
    "cancel": ("cancel:cancel", "Cancel jobs."),
    "lost": ("lost:lost", "Take the pod of a job for lost, whose node is out of reach."),
    "machines": (
        "machines:machines",
        "List the machines that Relaunch requested from EC2 and that are not gone, newest first.",
    ),
    "dashboard": (
        "dashboard:dashboard",
        "Show jobs, costs, machines and the market on a page in the browser, until Ctrl-C.",
    ),
    "costs": ("costs:costs", "Show what jobs cost, by definition, repository, caller, instance type, day or month."),
    "budgets": (
        "budgets:group",
        "List the budgets: what jobs may cost and how much is spent or reserved; set or remove one.",
    ),
    "events": ("events:events", "List recent events and their outcomes."),
    "amis": ("amis:amis", "Show the ECS-optimized AMIs for GPU and Neuron instances."),
    "acs-profile": (
        "acs_profile:acs_profile",
        "Show or set the driver that GPU pods of an ACS cluster get if they name none.",
    ),
    "doctor": (
        "doctor:doctor",
        "Check what an AWS account or a cluster needs for jobs, and say what to do about what it lacks.",
    ),
    "uninstall": (
        "uninstall:uninstall",
        "Remove a deployment: cancel its jobs, wait for its machines, delete its stacks, and say what is kept.",
    ),
    "schema": ("schema:schema", "Print the JSON Schema of definition files, for editors that complete and check keys."),
    "completion": (
        "completion:completion",
        "Print a script with which a shell completes commands, options, job IDs and names of definitions.",
    ),
    "open": (
        "open:open_",
        "Open a job's task, log stream or instance in the AWS console, and print the links of all three.",
    ),
    "definitions": ("definitions:group", "List the registered job definitions; show or delete one."),
    "dead-letters": ("dead_letters:group", "Inspect and redrive failed messages."),
    "webhook": ("webhook:group", "Manage the secrets of the GitHub webhook."),
    "notices": ("notices:group", "Manage the receivers of notices: Slack, e-mail and others."),
    "github": ("github:group", "Let in repositories on GitHub."),
    "local": ("local:group", "Push to the local world (`make local`), and cause faults in it."),
}
"""Where each command is, and the first line of its help: nothing of it is imported before it is called."""

app = typer.Typer(
    name="relaunch",
    cls=lazy_group(COMMANDS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(*, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415 - with --version only

        echo(f"relaunch {version('relaunch')}")
        raise typer.Exit


def _debug(*, is_wanted: bool) -> None:
    # The environment tells `run`, which has no context of the command any more.
    os.environ[DEBUG_VARIABLE] = "1" if is_wanted else ""


@app.callback()
def _relaunch(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    is_debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar=DEBUG_VARIABLE, callback=_debug, is_eager=True, help="Show the traceback of a bug."
        ),
    ] = False,
) -> None:
    """Start machine-learning training on the cheapest accelerator that fits, and relaunch it until it has finished.

    Exit codes: 0 success, 1 the job failed, 2 usage error or invalid definition, 3 not found, 4 no offering satisfies
    the job (capacity or quota), 5 AWS denied the request or is unreachable, 70 a bug, 130 cancelled.
    """


def run() -> None:
    """Run the command that the arguments name."""
    if COMPLETE_VARIABLE in os.environ:
        from typer.completion import get_completion_inspect_parameters  # noqa: PLC0415 - where a shell asks only

        get_completion_inspect_parameters()  # it registers the shells, too
    _prepare_streams()
    stdout = sys.stdout
    try:
        app()
    except SystemExit:
        # Typer replaces standard output that nobody reads any more, as by `| head`, and ends with 1.
        if sys.stdout is not stdout:
            raise SystemExit(exit_codes.OK) from None
        raise
    except Exception as error:
        # What is printed outside of a command, as its help, fails here where nothing more can be written.
        failure = explain_error(error)
        if failure is not None:
            # Python would write once more what is left, and end with an exit code of its own.
            sys.stdout = None
        elif os.environ.get(DEBUG_VARIABLE):
            raise
        else:
            failure = describe_bug(error)
        print_error(failure)
        raise SystemExit(failure.exit_code) from error


def _prepare_streams() -> None:
    """Let what a terminal's encoding does not have be printed as `?`, and a closed standard input be an empty one."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - it stays open
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
