"""Prose in lines of a terminal's width, broken at words; in a pipe nothing is wrapped."""

import re
from collections.abc import Iterator
from itertools import pairwise

from rich.cells import cell_len
from rich.console import Console

# What stands in backticks is a command, a path or a key.
_PART = re.compile(r"(?:`[^`\n]*`|\S)+\s*")
_WORD = re.compile(r"\S+\s*")


def wrap(text: str, console: Console) -> str:
    """Return text in lines that fit a console that is a terminal; each begins in the column of the one that it is of.

    What stands in backticks stays whole where a line has room for it, and so does any word: both can be copied.
    """
    if not console.is_terminal:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrap_line(line, console.width))


def _wrap_line(line: str, width: int) -> Iterator[str]:
    prose = line.lstrip(" ")
    indent = line[: len(line) - len(prose)]
    ends = [0, *find_breaks(prose, width - len(indent)), len(prose)]
    for start, end in pairwise(ends):
        yield f"{indent}{prose[start:end].rstrip()}"


def find_breaks(prose: str, room: int) -> list[int]:
    """Return where the lines of at most `room` cells begin, but for the first; what cannot be broken may be wider."""
    breaks = []
    used = 0
    for start, part in _parts(prose, room):
        if used and used + cell_len(part.rstrip()) > room:
            breaks.append(start)
            used = 0
        used += cell_len(part)
    return breaks


def _parts(prose: str, room: int) -> Iterator[tuple[int, str]]:
    for part in _PART.finditer(prose):
        is_whole = cell_len(part[0].rstrip()) <= room
        for each in [part] if is_whole else _WORD.finditer(prose, part.start(), part.end()):
            yield each.start(), each[0]
