"""The demo's terminal output: headings, timed lines, tables, and a status line."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

TIME_COLUMNS = 9
"""The width of the times at the left."""
INDENT = 4
"""The indentation of tables, which need more width than lines."""


@dataclass(frozen=True, slots=True)
class Indented:
    """Something indented; a word that is longer than a line is whole, where Padding would cut it."""

    part: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        inner = options.update(width=options.max_width - INDENT)
        for line in Segment.split_lines(console.render(self.part, inner)):
            yield Segment(" " * INDENT)
            yield from line
            yield Segment.line()


class Screen:
    """Output to a terminal, or plain lines if there is none."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Start the time at 0."""
        self.console = console
        self._clock = clock
        self._start = clock()
        self._headings = 0

    @property
    def seconds(self) -> float:
        """The running time of the demo."""
        return self._clock() - self._start

    @property
    def is_live(self) -> bool:
        """Whether the status line can be updated."""
        return self.console.is_terminal and not self.console.quiet

    @property
    def line_width(self) -> int:
        """The width of a line without its time."""
        return self.console.width - TIME_COLUMNS

    @property
    def table_width(self) -> int:
        """The width of a table."""
        return self.console.width - INDENT

    def heading(self, title: str) -> None:
        """Print a numbered heading."""
        self._headings += 1
        self.console.print(Text(f"\n{self._headings:>2}  {title}", style="bold cyan"))

    def line(self, text: str | Text, style: str = "") -> None:
        """Print a line with the time."""
        shown = Text(text) if isinstance(text, str) else text
        shown.stylize_before(style)
        self.console.print(self._timed(shown))

    def show(self, *parts: RenderableType) -> None:
        """Print something under the previous line, over the whole width."""
        for part in parts:
            self.console.print(Indented(part), crop=False)

    def note(self, text: str) -> None:
        """Print a note under the previous line."""
        self.console.print(beside(Text(), Text(text, style="dim")))

    @contextmanager
    def status_line(self, text: str) -> Iterator[Callable[[str | Text], None]]:
        """Show a status line until the end of the context; yield a function that updates it."""
        if not self.is_live:
            yield lambda _text: None
            return
        spinner = Spinner("dots", style="cyan")
        with Live(console=self.console, transient=True, refresh_per_second=12) as live:

            def update(text: str | Text) -> None:
                shown = Text(text, style="dim") if isinstance(text, str) else text
                live.update(beside(spinner, shown, is_cut=True))

            update(text)
            yield update

    def _timed(self, text: Text) -> Table:
        return beside(Text(f"{self.seconds:.1f}s", style="dim"), text)


def beside(left: RenderableType, right: RenderableType, *, is_cut: bool = False) -> Table:
    """Put `left` into the column of times and `right` beside it, cut or folded at the edge."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_column(width=TIME_COLUMNS - 1, justify="right")
    row.add_column(no_wrap=is_cut, overflow="ellipsis" if is_cut else "fold")
    row.add_row(left, right)
    return row
