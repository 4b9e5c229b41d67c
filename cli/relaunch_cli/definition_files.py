"""Reading definition files: whatever can be checked without AWS is checked before AWS is called."""

from pathlib import Path
from typing import TYPE_CHECKING

from relaunch_cli.errors import CommandError
from relaunch_cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.definitions.definition import JobDefinition


def read_file(file: Path) -> str:
    """Read a definition file.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def parse_file(
    text: str, file: Path, registered: "Sequence[JobDefinition]" = (), *, consequence: str
) -> "list[JobDefinition]":
    """Parse a definition file; print all its problems if there are any.

    Raises:
        CommandError: with the number of problems and their consequence.
    """
    from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
    from relaunch.adapters.offerings.bundled import load_catalogue

    try:
        return parse_definitions(text, str(file), load_catalogue(), registered)
    except DefinitionFileError as error:
        for problem in error.problems:
            echo(str(problem), err=True)
        count = len(error.problems)
        raise CommandError(f"{file} has {count} problem{'s' if count > 1 else ''}: {consequence}") from error
