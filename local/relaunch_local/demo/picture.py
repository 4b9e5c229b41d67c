"""Draws what a console printed as an animated SVG: a terminal whose lines come in their order and scroll away.

It has no script, so that it moves in an `<img>` too. Where animations are unwanted (prefers-reduced-motion), or not
known, it is the last screen.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, groupby
from operator import itemgetter

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME
from rich.text import Text

from relaunch_local.demo.recording import Printed

ROWS = 26
LONGEST_PAUSE_SECONDS = 1.5
"""Longer waits of the run are cut to this."""
LINE_SECONDS = 0.14
"""From a line to the next of those that were printed at once."""
END_SECONDS = 6.0
"""How long the last screen stays, before it begins anew."""

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, Liberation Mono, monospace"
FONT_SIZE = 14
CELL_WIDTH = 8.4
LINE_HEIGHT = 19
MARGIN = 16
BAR_HEIGHT = 36
STYLES = Console()
"""Knows what the names of styles mean."""
BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


@dataclass(frozen=True)
class ShownLine:
    """A line of the picture, and when it appears: seconds from the beginning."""

    at: float
    text: Text


def pace(printed: Sequence[Printed]) -> Sequence[ShownLine]:
    """Return the lines with their times in the picture: those of the run, without its long waits."""
    shown: list[ShownLine] = []
    before = printed[0].at if printed else 0.0
    now = 0.0
    for each in printed:
        # The lines of the print before have taken a part of the wait already.
        earliest = shown[-1].at + LINE_SECONDS if shown else 0.0
        now = max(now + min(each.at - before, LONGEST_PAUSE_SECONDS), earliest)
        shown += [ShownLine(now + LINE_SECONDS * place, line) for place, line in enumerate(each.lines)]
        before = each.at
    return shown


def draw(lines: Sequence[ShownLine], columns: int, title: str, description: str) -> str:
    """Return the picture of a terminal of this many columns."""
    width = round(columns * CELL_WIDTH + 2 * MARGIN)
    screen_height = ROWS * LINE_HEIGHT
    height = BAR_HEIGHT + screen_height + MARGIN
    last = len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t d" '
        f'font-family="{FONT}" font-size="{FONT_SIZE}">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(description)}</desc>',
        f"<style>{_animations(lines)}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{THEME.background_color.hex}"/>',
        *(f'<circle cx="{20 + 20 * place}" cy="18" r="6" fill="{fill}"/>' for place, fill in enumerate(BUTTONS)),
        f'<text x="{width / 2:g}" y="23" text-anchor="middle" fill="#999">{escape(title)}</text>',
        f'<svg x="{MARGIN}" y="{BAR_HEIGHT}" width="{width - 2 * MARGIN}" height="{screen_height}">',
        f'<g class="lines" fill="{THEME.foreground_color.hex}">',
        *(_draw_line(line.text, row) for row, line in enumerate(lines)),
        # What has not been printed yet lies under this, or below the screen.
        f'<rect class="rest" y="{last * LINE_HEIGHT}" width="100%" height="{screen_height}" '
        f'fill="{THEME.background_color.hex}"/>',
        "</g>",
        "</svg>",
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _animations(lines: Sequence[ShownLine]) -> str:
    """Return the two animations: the lines move up, and what covers those that are still to come moves down."""
    duration = (lines[-1].at if lines else 0.0) + END_SECONDS
    counts = range(1, len(lines) + 1)
    moments = [f"{100 * line.at / duration:.2f}%" for line in lines]
    scrolled = [max(count - ROWS, 0) * LINE_HEIGHT for count in counts]
    covered = [(count - len(lines)) * LINE_HEIGHT for count in counts]
    return "".join(
        [
            f".lines{{transform:translateY({-(scrolled or [0])[-1]}px)}}",
            f"@keyframes scroll{{{_keyframes(moments, (-each for each in scrolled))}}}",
            f"@keyframes print{{{_keyframes(moments, covered)}}}",
            "@media (prefers-reduced-motion:no-preference){",
            f".lines{{animation:scroll {duration:.1f}s step-end infinite}}",
            f".rest{{animation:print {duration:.1f}s step-end infinite}}}}",
        ]
    )


def _keyframes(moments: Iterable[str], offsets: Iterable[int]) -> str:
    """Return a keyframe for each moment at which the offset is another one."""
    changes = (next(same) for _, same in groupby(zip(moments, offsets, strict=True), key=itemgetter(1)))
    return "".join(f"{moment}{{transform:translateY({offset}px)}}" for moment, offset in changes)


def _draw_line(line: Text, row: int) -> str:
    """Return a text element for each run of cells with the same style, at its column."""
    y = round((row + 0.75) * LINE_HEIGHT, 2)
    return "".join(
        f'<text x="{column * CELL_WIDTH:g}" y="{y:g}" textLength="{cell_len(text) * CELL_WIDTH:g}" '
        f'lengthAdjust="spacingAndGlyphs"{_attributes(style)}>{escape(text)}</text>'
        for column, text, style in _runs(line)
    )


def _runs(line: Text) -> Iterator[tuple[int, str, Style]]:
    """Yield column, text and style of what is between two or more spaces, or at the edge of a style."""
    segments = [segment for segment in line.render(STYLES) if segment.text.strip("\n")]
    columns = accumulate((segment.cell_length for segment in segments), initial=0)
    for column, segment in zip(columns, segments, strict=False):
        yield from _words(column, segment)


def _words(column: int, segment: Segment) -> Iterator[tuple[int, str, Style]]:
    style = segment.style or Style.null()
    for part in segment.text.rstrip("\n").split("  "):
        if text := part.strip(" "):
            yield column + len(part) - len(part.lstrip(" ")), text, style
        column += cell_len(part) + 2


def _attributes(style: Style) -> str:
    color = f' fill="{style.color.get_truecolor(THEME).hex}"' if style.color else ""
    return color + (' font-weight="bold"' if style.bold else "") + (' opacity="0.6"' if style.dim else "")
