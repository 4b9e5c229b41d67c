"""The `relaunch` command; `main` is its entry point."""

from typing import Annotated

import typer

from relaunch_cli.commands import amis as ami_command
from relaunch_cli.commands import dead_letters as dead_letter_command
from relaunch_cli.commands import definitions as definition_commands
from relaunch_cli.commands import jobs as job_commands
from relaunch_cli.commands import logs as log_command
from relaunch_cli.commands import plan as plan_command
from relaunch_cli.commands import submit as submit_command

app = typer.Typer(
    name="relaunch",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group in (definition_commands, plan_command, submit_command, job_commands, log_command, ami_command):
    app.registered_commands.extend(_group.commands.registered_commands)
app.add_typer(dead_letter_command.commands, name="dead-letters")


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415 - reads the installed package, which others do not need

        typer.echo(f"relaunch {version('relaunch')}")
        raise typer.Exit


@app.callback()
def _relaunch(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Start machine-learning training on the cheapest accelerator that fits, and relaunch it until it has finished.

    Exit codes: 0 ok, 1 the job failed, 2 usage or a bad definition, 3 not found, 4 nothing satisfies it (capacity or
    quota), 5 AWS refuses or cannot be reached, 130 cancelled.
    """


def main() -> None:
    """Run the command."""
    app()
