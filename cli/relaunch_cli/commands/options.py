"""Arguments and options that several commands share."""

from typing import Annotated

import typer

Stack = Annotated[
    str, typer.Option("--stack", envvar="RELAUNCH_STACK", help="The CloudFormation stack that Relaunch is deployed as.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines (shapes: docs/command.md).")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, as `submit` and `ps` print it.")]
DEFAULT_STACK = "relaunch"
