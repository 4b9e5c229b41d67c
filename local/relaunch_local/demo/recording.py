"""A console that remembers when it printed what, so that a picture can show it again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.ansi import AnsiDecoder
from rich.text import Text

from relaunch_cli.views.screen import TerminalConsole


@dataclass(frozen=True)
class Printed:
    """Lines that were printed at once, with their styles, and when: in seconds of a clock."""

    at: float
    lines: Sequence[Text]


class RecordingConsole(TerminalConsole):
    """A console of a fixed width, without anything that moves."""

    def __init__(self, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.width = width
        self.record = True
        self.printed: list[Printed] = []
        self._clock = clock

    @property
    def is_terminal(self) -> bool:
        """Say no: a status line is no part of what is left on a screen."""
        return False

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, and remember it."""
        super().print(*objects, **options)
        # A line ends with its newline: nothing follows the last one.
        lines = AnsiDecoder().decode(self.export_text(styles=True).removesuffix("\n"))
        self.printed.append(Printed(self._clock(), tuple(lines)))
