"""Changes of files: shown before they are made, and each made whole or not at all.

A repository is somebody else's until it was looked at: its links may lead anywhere, and none is followed out of it.
"""

import io
import secrets
from collections.abc import Iterable
from pathlib import Path

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import FileChange

# What is read here was written by hand, or here.
_MOST_BYTES = 1_000_000


def read_text(root: Path, path: str) -> str | None:
    """Return the text of a file of a repository, None if there is none.

    Raises:
        CommandError: it cannot be read, or a link leads out of the repository or to git's own files.
    """
    place = _place_of(root, path)
    try:
        # What is no file, such as a pipe, may never end.
        if place.exists() and not place.is_file():
            raise CommandError(f"{path} cannot be read, and is not replaced: it is no file")
        with place.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise CommandError(f"{path} cannot be read, and is not replaced: it is larger than {_MOST_BYTES:,} bytes")
        # Line ends are those of whatever system it was checked out on.
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read, and is not replaced: {error}") from error


def write_files(root: Path, changes: Iterable[FileChange]) -> None:
    """Write what is to be changed.

    Raises:
        CommandError: a file cannot be written, a link leads out of the repository or to git's own files, or a file was
            changed since it was read; those before it are written.
    """
    for each in changes:
        if each.is_needed:
            if read_text(root, each.path) != each.before:
                raise CommandError(
                    f"{each.path} was changed meanwhile, and is left as it is", "run relaunch init again"
                )
            _write(_place_of(root, each.path), each.after)


def _place_of(root: Path, path: str) -> Path:
    """Return where a file of a repository is once links are followed.

    Raises:
        CommandError: that is not within the repository, or it is where git has what it runs and obeys.
    """
    hint = "put a file in the place of the link, and run relaunch init again"
    try:
        folder = root.resolve()
        place = (folder / path).resolve()
    except (OSError, RuntimeError) as error:
        raise CommandError(f"{path} is a link that leads nowhere: nothing was written", hint) from error
    if not place.is_relative_to(folder):
        raise CommandError(f"{path} is a link to {place}, outside of the repository: nothing was written there", hint)
    if any(part.casefold() == ".git" for part in place.relative_to(folder).parts):
        raise CommandError(f"{path} is a link to {place}, one of git's own files: nothing was written there", hint)
    return place


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(text, encoding="utf-8")
            if path.exists():
                temporary.chmod(path.stat().st_mode)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
