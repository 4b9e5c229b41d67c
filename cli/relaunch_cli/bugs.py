"""Errors that Relaunch did not foresee: one line and a file for whoever is told of them; the traceback on request."""

import os
import platform
import tempfile
import traceback

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError

DEBUG_VARIABLE = "RELAUNCH_DEBUG"
_REPORT = "this is a bug of Relaunch: report it in the issues of the repository that you have it from"


def describe_bug(error: Exception) -> CommandError:
    """Return a bug as it is printed: the error, and where to report it with which file."""
    text = " ".join(str(error).split())
    shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
    file = _write_report(error)
    hint = f"{_REPORT}, with {file}" if file else f"{_REPORT}, with what {DEBUG_VARIABLE}=1 shows"
    return CommandError(f"unforeseen error: {shown}", hint, exit_codes.BUG)


def _write_report(error: Exception) -> str:
    """Write a traceback to a temporary file that only its owner can read; return its name, empty if it cannot be."""
    from importlib.metadata import version  # noqa: PLC0415 - of bugs only

    lines = [
        f"relaunch {version('relaunch')}, Python {platform.python_version()}, {platform.platform()}\n",
        *traceback.format_exception(error),
    ]
    try:
        descriptor, name = tempfile.mkstemp(prefix="relaunch-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
    except OSError:
        return ""
    return name
