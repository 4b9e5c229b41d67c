"""What every output to the terminal passes through: text from outside cannot control the terminal.

S3 keys, branch names and log lines are chosen by others. An escape sequence in them could move the cursor, set the
window's title or hide what follows; a bidirectional control could reorder a line.
"""

import os
import re

import typer

# C0 and C1 control characters and DEL (ECMA-48), line separators and bidirectional controls (Unicode Standard Annex 9),
# and surrogates, which no encoding can write. Tabs and newlines stay.
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CONTROLS}]")
_UNSAFE_IN_LINE = re.compile(f"[\n{_CONTROLS}]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str) -> str:
    """Replace each control character but tab and newline by U+FFFD."""
    return _UNSAFE.sub(_SHOWN, text)


def one_line(text: str) -> str:
    """Replace each control character but tab by U+FFFD, so that a value cannot begin a line of its own."""
    return _UNSAFE_IN_LINE.sub(_SHOWN, text)


def log_lines(message: str) -> list[str]:
    """Return the lines of a log message without their colours; a progress bar has one for each state it wrote."""
    return [harmless(line) for line in _COLOUR.sub("", message).splitlines()] or [""]


def escape_json(text: str) -> str:
    r"""Escape (`\u009b`) what json.dumps leaves as it is in strings; outside of strings JSON has no such characters."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str, *, err: bool = False, fg: str | None = None, is_whole: bool = False) -> None:
    """Print one line, without colours where NO_COLOR asks for none (no-color.org).

    An error is wrapped at words in a terminal, unless it `is_whole`, as a command to copy is.
    """
    line = one_line(text)
    if err and not is_whole:
        # Rich is slow to import, and most commands print no error.
        from rich.console import Console  # noqa: PLC0415

        from relaunch_cli.wrapping import wrap  # noqa: PLC0415 - imports Rich

        line = wrap(line, Console(stderr=True))
    is_plain = fg is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    typer.echo(line if is_plain else typer.style(line, fg=fg), err=err)
