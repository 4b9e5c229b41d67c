"""Changes of files: shown before they are made, and each made whole or not at all."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import FileChange


def read_text(root: Path, path: str) -> str | None:
    """Return the text of a file, None if there is none.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read, and is not replaced: {error}") from error


def write_files(root: Path, changes: Iterable[FileChange]) -> None:
    """Write what is to be changed.

    Raises:
        CommandError: a file cannot be written, or was changed since it was read; those before it are written.
    """
    for each in changes:
        if each.is_needed:
            if read_text(root, each.path) != each.before:
                raise CommandError(
                    f"{each.path} was changed meanwhile, and is left as it is", "run relaunch init again"
                )
            _write((root / each.path).resolve(), each.after)


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
