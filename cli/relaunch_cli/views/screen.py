"""The terminal: results on standard output, progress and remarks on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

STATE_STYLES = {
    "WAITING": "yellow",
    "LAUNCHING": "cyan",
    "RUNNING": "bold blue",
    "STOPPING": "magenta",
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "CANCELLED": "dim",
    "TIMED_OUT": "red",
}


def out() -> Console:
    """Return where results go."""
    return Console(highlight=False, emoji=False)


def err() -> Console:
    """Return where progress and remarks go."""
    return Console(stderr=True, highlight=False, emoji=False)


def show(*parts: RenderableType) -> None:
    """Print parts of a result."""
    out().print(*parts, sep="\n")


def say(text: str) -> None:
    """Print text to be piped on: neither wrapped nor marked up."""
    out().print(Text(text), soft_wrap=True)


def remark(text: str) -> None:
    """Say something beside the result."""
    err().print(Text(text, style="dim"), soft_wrap=True)


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show what is being done while it takes long; nothing where nobody watches."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(Text(doing)):
        yield


def state_text(state: str, note: str = "") -> Text:
    """Return a state in its colour, with a note in brackets."""
    text = Text(state, style=STATE_STYLES.get(state.strip(), ""))
    return text.append(f" ({note})", style="dim") if note else text


def plain_table(*headings: str, title: str = "") -> Table:
    """Return a table without lines: it is read on 80 columns, and cut up with awk."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title_justify="left", title_style="")
    table.title = Text(title) if title else None
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
