"""Arguments and options that several commands share."""

from datetime import timedelta
from typing import Annotated

import typer

from relaunch_cli.completions import complete_job
from relaunch_cli.errors import CommandError

DEFAULT_STACK = "relaunch"
Stack = Annotated[
    str, typer.Option("--stack", envvar="RELAUNCH_STACK", metavar="NAME", help="CloudFormation stack of Relaunch.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON (documented in docs/command.md).")]
JobId = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="ID of the job, as printed by `submit` and `ps`, or the beginning of it; - for the newest.",
        autocompletion=complete_job,
    ),
]


def refuse_options_of_group(context: typer.Context) -> None:
    """Check that no option stands before the name of a subcommand, which would not see it.

    Raises:
        CommandError: one does.
    """
    for name, option in (("stack", "--stack"), ("as_json", "--json")):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise CommandError(f"{option} stands behind `{context.invoked_subcommand}`")


def parse_age(text: str) -> timedelta:
    """Parse the value of `--since`: `10m`, `2h` or `1h30m`.

    Raises:
        CommandError: it is no time.
    """
    from relaunch.adapters.definition_file.values import parse_duration  # noqa: PLC0415 - with --since only

    try:
        return parse_duration(text)
    except ValueError as error:
        raise CommandError(f"--since: {error}") from error
