"""Reading definition files: whatever can be checked without AWS is checked before AWS is called."""

import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relaunch_cli.errors import CommandError
from relaunch_cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.definitions.definition import JobDefinition
    from relaunch.core.definitions.ownership import Owner

# git only reads its own files here; a network file system may hang.
_GIT_SECONDS = 10

STDIN = Path("-")
"""The name of standard input as a definition file."""


def read_file(file: Path) -> str:
    """Read a definition file, or standard input if it is STDIN.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return _read_stdin() if file == STDIN else file.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _read_stdin() -> str:
    # Standard input has the encoding of the locale.
    text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8")
    try:
        return text.read()
    finally:
        text.detach()


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


def find_owner(file: Path, caller: str) -> "Owner":
    """Return the owner of a file's definitions.

    The repository is that of git's remote `origin`; without git, a repository or a remote of that name it is empty.
    A pipe has the name that it was given by, like `stdin`, which is the name of standard input, too.
    """
    from relaunch.core.definitions.ownership import Owner, repository_of

    if file == STDIN:
        return Owner("", "stdin", caller)
    path = file.resolve()
    if repository := repository_of(_git(path.parent, "config", "--local", "--get", "remote.origin.url")):
        return Owner(repository, _git(path.parent, "rev-parse", "--show-prefix") + path.name, caller)
    return Owner("", path.name if path.is_file() else file.name, caller)


def _git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command, empty if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(  # noqa: S603 - no shell, and the arguments are ours
            command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
