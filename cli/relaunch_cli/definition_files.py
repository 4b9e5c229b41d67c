"""Reading definition files: whatever can be checked without AWS is checked before AWS is called."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.ownership import Owner, repository_of
from relaunch_cli.errors import CommandError
from relaunch_cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.definitions.definition import JobDefinition

# git only reads its own files here; a network file system may hang.
_GIT_SECONDS = 10

# UTF-8 has four bytes at most for each of the characters that a definition file may have.
_MOST_BYTES = 1_000_000

STDIN = Path("-")
"""The name of standard input as a definition file."""


def read_file(file: Path) -> str:
    """Read a definition file, or standard input if it is STDIN.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        content = _read_bytes(file)
        if len(content) > _MOST_BYTES:
            raise CommandError(f"{file} is larger than {_MOST_BYTES:,} bytes: it is no definition file")
        # Line ends are those of whatever system it was written on.
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _read_bytes(file: Path) -> bytes:
    """Read no more than is looked at: a pipe or a device may never end."""
    if file == STDIN:
        return sys.stdin.buffer.read(_MOST_BYTES + 1)
    with file.open("rb") as opened:
        return opened.read(_MOST_BYTES + 1)


def parse_file(
    text: str, file: Path, registered: "Sequence[JobDefinition]" = (), *, consequence: str
) -> "list[JobDefinition]":
    """Parse a definition file; print all its problems if there are any.

    Raises:
        CommandError: with the number of problems and their consequence.
    """
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
    if file == STDIN:
        return Owner("", "stdin", caller)
    path = file.resolve()
    if repository := repository_of(_git(path.parent, "config", "--local", "--get", "remote.origin.url")):
        return Owner(repository, _git(path.parent, "rev-parse", "--show-prefix") + _as_text(path.name), caller)
    return Owner("", _as_text(path.name if path.is_file() else file.name), caller)


def _as_text(name: str) -> str:
    """Return the name of a file as text that can be stored: to the system it is bytes, of whatever encoding."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _git(folder: Path, *arguments: str) -> str:
    """Return the output of a git command, empty if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(  # noqa: S603 - no shell, and the arguments are ours
            command,
            capture_output=True,
            # Names of folders and remotes are bytes to git.
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()
