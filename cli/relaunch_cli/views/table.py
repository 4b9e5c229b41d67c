"""Tables for terminals of any width, and for pipes.

IDs, names and numbers are never wrapped or cut. A terminal that is too narrow leaves columns out, the least important
first, and wraps prose. In a pipe each record is one line with all columns, for awk and grep, as kubectl and gh do it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from relaunch_cli.terminal import one_line
from relaunch_cli.wrapping import find_breaks

Cell = str | Text
_GAP = 2
# Prose that has less room than this is put below its record.
_NARROWEST_PROSE = 24
_INDENT = 4


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its index in the records, its heading, and the width of its widest cell."""

    index: int
    heading: str
    width: int
    is_right: bool

    def aligned(self, cell: Text) -> Text:
        missing = " " * (self.width - cell.cell_len)
        return Text(missing).append_text(cell) if self.is_right else cell.copy().append(missing)


class PlainTable:
    """A table without borders.

    `right` are the headings of columns that are aligned to the right, `optional` those that a narrow terminal leaves
    out where they do not fit, the first of them first. `prose`: the last column is text that is wrapped, or cut to the
    line. Without headings the first column is bold.
    """

    def __init__(
        self,
        *headings: str,
        right: Collection[str] = (),
        optional: Sequence[str] = (),
        prose: Literal["wrapped", "cut"] | None = None,
        has_headings: bool = True,
    ) -> None:
        self._headings = headings
        self._right = frozenset(right)
        self._optional = tuple(optional)
        self._prose = prose
        self._has_headings = has_headings
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: Cell) -> None:
        """Add a record; a cell with several lines is joined to one."""
        self._rows.append([_as_line(cell) for cell in cells])

    @property
    def row_count(self) -> int:
        """Return the number of records."""
        return len(self._rows)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines; none is longer than the terminal is wide, unless what is never left out is."""
        # Nothing is wrapped in a pipe (print_result).
        width = None if options.no_wrap else options.max_width
        columns, has_prose = self._fitting(width)
        for record in self._records():
            for line in self._lines(record, columns, width, has_prose=has_prose):
                line.rstrip()
                yield _as_it_is(line)

    def _records(self) -> list[list[Text]]:
        if self._has_headings:
            return [[Text(heading, style="bold") for heading in self._headings], *self._rows]
        return [[_in_bold(cells[0]), *cells[1:]] for cells in self._rows]

    def _fitting(self, width: int | None) -> tuple[list[_Column], bool]:
        """Return the columns to show, and whether prose is shown."""
        last = len(self._headings) - 1
        columns = [
            _Column(index, heading, self._width_of(index), heading in self._right)
            for index, heading in enumerate(self._headings)
            if not (self._prose and index == last)
        ]
        if width is None:
            return columns, self._prose is not None
        prose = min(self._width_of(last), _NARROWEST_PROSE) + _GAP if self._prose else 0
        shown = set(self._headings).difference(self._optional)
        # What a wide column has no room for, a less important one may have.
        for heading in reversed(self._optional):
            wanted = shown | {heading}
            needed = _total([column for column in columns if column.heading in wanted])
            if needed + (prose if self._headings[last] in wanted else 0) <= width:
                shown = wanted
        has_prose = self._prose is not None and self._headings[last] in shown
        return [column for column in columns if column.heading in shown], has_prose

    def _width_of(self, index: int) -> int:
        cells = [record[index].cell_len for record in self._rows]
        return max([*cells, len(self._headings[index]) if self._has_headings else 0])

    def _lines(
        self, record: Sequence[Text], columns: Sequence[_Column], width: int | None, *, has_prose: bool
    ) -> list[Text]:
        line = Text(" " * _GAP).join([column.aligned(record[column.index]) for column in columns])
        if not has_prose:
            return [line]
        prose = record[-1].copy()
        start = line.cell_len + _GAP
        line.append(" " * _GAP)
        if width is None:
            return [line.append_text(prose)]
        if width - start < min(_NARROWEST_PROSE, self._width_of(len(self._headings) - 1)):
            return [line, *_wrapped(prose, _INDENT, width)]
        if self._prose == "cut":
            prose.truncate(width - start, overflow="ellipsis")
            return [line.append_text(prose)]
        first, *others = _wrapped(prose, start, width) or [Text()]
        return [line.append_text(first[start:]), *others]


def key_values() -> PlainTable:
    """Return a table of names in bold and their values, which are prose."""
    return PlainTable("", "", prose="wrapped", has_headings=False)


def _as_line(cell: Cell) -> Text:
    text = Text(cell) if isinstance(cell, str) else cell.copy()
    if "\n" in text.plain:
        text = Text("; ").join(text.split("\n"))
    if one_line(text.plain) != text.plain:
        text.plain = one_line(text.plain)
    return text


def _in_bold(cell: Text) -> Text:
    bold = cell.copy()
    bold.stylize("bold")
    return bold


def _as_it_is(line: Text) -> Text:
    line.no_wrap = True
    line.overflow = "ignore"
    return line


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + _GAP * max(len(columns) - 1, 0)


def _wrapped(prose: Text, start: int, width: int) -> list[Text]:
    """Return prose in lines that begin at a column; words longer than a line stay whole, so that they can be copied."""
    breaks = find_breaks(prose.plain, max(width - start, 1))
    return [Text(" " * start).append_text(line) for line in prose.divide(breaks) if line.plain.strip()]
