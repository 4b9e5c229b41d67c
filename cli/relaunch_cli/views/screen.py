"""Output to the terminal: results on standard output, progress and notes on standard error."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from relaunch_cli.terminal import escape_json, harmless
from relaunch_cli.wrapping import wrap

if TYPE_CHECKING:
    from rich.status import Status

_STATE_STYLES = {
    "WAITING": "yellow",
    "LAUNCHING": "cyan",
    "RUNNING": "bold blue",
    "STOPPING": "magenta",
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "CANCELLED": "dim",
    "TIMED_OUT": "red",
}
_SHOWING: ContextVar[Console | None] = ContextVar("_SHOWING", default=None)
"""The console with a status line: what another one writes to the same terminal stands behind that."""


class TerminalConsole(Console):
    """A console that writes no control characters but its own, and in which `[bold]` is text like any other."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, emoji=False, markup=False)

    def on_broken_pipe(self) -> None:
        """Leave it to the command that nobody reads any more, where rich would end it with 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render something; the control characters of its text are replaced."""
        if isinstance(renderable, Text) and harmless(renderable.plain) != renderable.plain:
            # Before it is laid out: rich takes control characters for zero cells wide, and their signs are one.
            renderable = renderable.copy()
            renderable.plain = harmless(renderable.plain)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))


def stdout_console() -> Console:
    """Return the console for results."""
    return TerminalConsole()


def stderr_console() -> Console:
    """Return the console for progress and notes: that of the status line if one is shown, which moves it aside."""
    return _SHOWING.get() or TerminalConsole(stderr=True)


def print_result(*parts: RenderableType) -> None:
    """Print the parts of a result, laid out for the terminal's width."""
    console = stdout_console()
    # A manifest has lines that are neither wrapped nor cut; in a pipe no line is.
    console.print(*parts, sep="\n", crop=False, soft_wrap=not console.is_terminal)


def print_text(text: str) -> None:
    """Print a result as plain text, neither wrapped nor marked up."""
    stdout_console().print(Text(text), soft_wrap=True)


def print_json(document: object, *, indent: int | None = 2) -> None:
    """Print a result as JSON; what an encoding other than UTF-8 may not have is escaped."""
    # There is no standard output where it was closed.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_utf_8 = encoding.lower().replace("_", "-") == "utf-8"
    typer.echo(escape_json(json.dumps(document, indent=indent, ensure_ascii=not is_utf_8)))


def print_note(text: str) -> None:
    """Print a note to standard error, wrapped at words where that is a terminal."""
    console = stderr_console()
    console.print(Text(wrap(text, console), style="dim"), soft_wrap=True)


@contextmanager
def noting_consequence(consequence: str) -> Iterator[None]:
    """Print the consequence of an error, or of Ctrl-C, beside it."""
    try:
        yield
    except BaseException:
        print_note(consequence)
        raise


def can_ask() -> bool:
    """Return whether somebody at a terminal can answer a question."""
    return sys.stdin.isatty()


@contextmanager
def progress(message: str) -> "Iterator[Status | None]":
    """Show a message with a spinner while the body runs; nothing if standard error is not a terminal.

    It yields what changes the message.
    """
    console = stderr_console()
    if not console.is_terminal:
        yield None
        return
    token = _SHOWING.set(console)
    try:
        with console.status(Text(message)) as status:
            yield status
    finally:
        _SHOWING.reset(token)


@contextmanager
def refreshed(console: Console) -> Iterator[Callable[[RenderableType], None]]:
    """Yield a function that shows a result in the place of the one before, or below it where that is no terminal."""
    if not console.is_interactive:
        # Every time, also an unchanged one: writing is what tells that nobody reads any more.
        yield partial(console.print, soft_wrap=True)
        return
    from rich.live import Live  # noqa: PLC0415 - with --watch only

    with Live(console=console, auto_refresh=False) as live:
        yield lambda result: live.update(result, refresh=True)


def state_text(state: str, note: str = "") -> Text:
    """Return a job's state in its colour, with a note in brackets."""
    text = Text(state, style=_STATE_STYLES.get(state.strip(), ""))
    return text.append(f" ({note})", style="dim") if note else text
