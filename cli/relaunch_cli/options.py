"""Arguments and options that several commands share."""

from typing import Annotated

import typer

from relaunch_cli.completions import complete_job

DEFAULT_STACK = "relaunch"
Stack = Annotated[
    str, typer.Option("--stack", envvar="RELAUNCH_STACK", metavar="NAME", help="CloudFormation stack of Relaunch.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON (documented in docs/command.md).")]
JobId = Annotated[
    str,
    typer.Argument(metavar="JOB", help="ID of the job, as printed by `submit` and `ps`.", autocompletion=complete_job),
]
