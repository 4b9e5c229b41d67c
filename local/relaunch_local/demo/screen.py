"""What the demo shows: chapters of timed lines, tables between them, and one line that moves while something lasts."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

TIMES = 9
"""Columns that the times take, left of what happened."""
INDENT = 4
"""Columns left of tables, which need the room."""


class Screen:
    """A terminal, or lines where there is none."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Count time from now."""
        self.console = console
        self._clock = clock
        self._start = clock()
        self._headings = 0

    @property
    def seconds(self) -> float:
        """How long the demo has been running."""
        return self._clock() - self._start

    @property
    def is_live(self) -> bool:
        """Whether lines can change after they were written."""
        return self.console.is_terminal and not self.console.quiet

    @property
    def line_width(self) -> int:
        """The columns right of the times."""
        return self.console.width - TIMES

    @property
    def table_width(self) -> int:
        """The columns that a table has."""
        return self.console.width - INDENT

    def heading(self, title: str) -> None:
        """Begin a chapter."""
        self._headings += 1
        self.console.print(Text(f"\n{self._headings:>2}  {title}", style="bold cyan"))

    def line(self, text: str | Text, style: str = "") -> None:
        """Say what has happened just now."""
        shown = Text(text) if isinstance(text, str) else text
        shown.stylize_before(style)
        self.console.print(self._timed(shown))

    def show(self, *parts: RenderableType) -> None:
        """Show something under the line before it, over the whole width."""
        for part in parts:
            self.console.print(Padding(part, (0, 0, 0, INDENT), expand=False))

    def note(self, text: str) -> None:
        """Add something to the line before."""
        self.console.print(beside(Text(), Text(text, style="dim")))

    @contextmanager
    def status_line(self, text: str) -> Iterator[Callable[[str | Text], None]]:
        """Show what is going on, in one line that is gone afterwards; give a function that changes it."""
        if not self.is_live:
            yield lambda _text: None
            return
        spinner = Spinner("dots", style="cyan")
        with Live(console=self.console, transient=True, refresh_per_second=12) as live:

            def change(text: str | Text) -> None:
                shown = Text(text, style="dim") if isinstance(text, str) else text
                live.update(beside(spinner, shown, is_cut=True))

            change(text)
            yield change

    def _timed(self, text: Text) -> Table:
        return beside(Text(f"{self.seconds:.1f}s", style="dim"), text)


def beside(left: RenderableType, right: RenderableType, *, is_cut: bool = False) -> Table:
    """Put one thing into the column of times and another one right of it, cut or folded at the edge."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(width=TIMES - 1, justify="right")
    row.add_column(no_wrap=is_cut, overflow="ellipsis" if is_cut else "fold")
    row.add_row(left, right)
    return row
