"""The subcommands of the `relaunch` command, and how it ends."""

import os
import sys
from typing import Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.bugs import DEBUG_VARIABLE, describe_bug
from relaunch_cli.commands import dead_letters, definitions, github, local, notices, webhook
from relaunch_cli.commands.acs_profile import acs_profile
from relaunch_cli.commands.amis import amis
from relaunch_cli.commands.apply import apply
from relaunch_cli.commands.cancel import cancel
from relaunch_cli.commands.completion import completion
from relaunch_cli.commands.deploy import deploy
from relaunch_cli.commands.doctor import doctor
from relaunch_cli.commands.events import events
from relaunch_cli.commands.explain import explain
from relaunch_cli.commands.init import init
from relaunch_cli.commands.logs import logs
from relaunch_cli.commands.machines import machines
from relaunch_cli.commands.open import open_
from relaunch_cli.commands.plan import plan
from relaunch_cli.commands.ps import ps
from relaunch_cli.commands.retry import retry
from relaunch_cli.commands.schema import schema
from relaunch_cli.commands.show import show
from relaunch_cli.commands.submit import submit
from relaunch_cli.commands.uninstall import uninstall
from relaunch_cli.commands.wait import wait
from relaunch_cli.completions import COMPLETE_VARIABLE
from relaunch_cli.errors import print_error, reports_errors
from relaunch_cli.terminal import echo

app = typer.Typer(
    name="relaunch",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    deploy,
    init,
    apply,
    plan,
    submit,
    wait,
    retry,
    ps,
    show,
    explain,
    logs,
    cancel,
    machines,
    events,
    amis,
    acs_profile,
    doctor,
    uninstall,
    schema,
    completion,
):
    app.command()(reports_errors(_command))
app.command("open")(reports_errors(open_))

_definitions = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
_definitions.callback()(reports_errors(definitions.list_))
_definitions.command()(reports_errors(definitions.show))
_definitions.command()(reports_errors(definitions.delete))
app.add_typer(_definitions, name="definitions")

_dead_letters = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Inspect and redrive failed messages.")
_dead_letters.command("list")(reports_errors(dead_letters.list_))
_dead_letters.command()(reports_errors(dead_letters.show))
_dead_letters.command()(reports_errors(dead_letters.redrive))
_dead_letters.command()(reports_errors(dead_letters.drop))
app.add_typer(_dead_letters, name="dead-letters")

_webhook = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Manage the secrets of the GitHub webhook.")
_webhook.command("list")(reports_errors(webhook.list_))
_webhook.command()(reports_errors(webhook.add))
_webhook.command()(reports_errors(webhook.rotate))
_webhook.command()(reports_errors(webhook.remove))
app.add_typer(_webhook, name="webhook")

_notices = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manage the receivers of notices: Slack, e-mail and others."
)
_notices.command("list")(reports_errors(notices.list_))
_notices.command()(reports_errors(notices.add))
_notices.command()(reports_errors(notices.remove))
_notices.command("test")(reports_errors(notices.try_out))
app.add_typer(_notices, name="notices")

_github = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Let in repositories on GitHub.")
_github.command("list")(reports_errors(github.list_))
_github.command()(reports_errors(github.add))
_github.command()(reports_errors(github.remove))
app.add_typer(_github, name="github")

_local = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Push to the local world (`make local`), and cause faults in it."
)
_local.command()(reports_errors(local.push))
_local.command()(reports_errors(local.interrupt))
_local.command()(reports_errors(local.terminate))
_local.command("no-capacity")(reports_errors(local.no_capacity))
app.add_typer(_local, name="local")


def _show_version(*, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

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
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # it registers the shells, too
    stdout = sys.stdout
    try:
        app()
    except SystemExit:
        # Typer replaces standard output that nobody reads any more, as by `| head`, and ends with 1.
        if sys.stdout is not stdout:
            raise SystemExit(exit_codes.OK) from None
        raise
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        failure = describe_bug(error)
        print_error(failure)
        raise SystemExit(failure.exit_code) from error
