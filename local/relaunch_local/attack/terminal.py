"""Attacks on the terminal of whoever reads: names of objects and branches that contain control sequences."""

import io
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from relaunch.ports.stores import EventRecord
from relaunch_cli.terminal import escape_json, log_lines
from relaunch_cli.views.jobs import render_events
from relaunch_cli.views.screen import TerminalConsole
from relaunch_local.attack.attempts import Attempt, attempt

_AT = datetime(2026, 11, 3, 12, 30, tzinfo=UTC)
_PARTS = (
    *(
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x1b]8;;http://a\x1b\\",
        "\x9b31m",
        "\x9d52;c;eA==\x9c",
        "\x1bP",
        "\x08" * 9,
        "\r",
    ),
    *("\u202e", "\u2066", "\u200f", "\u2028", "\x7f", "\x00", "\ud800", "a", "/", ".manifest", "[bold]", "[/]", "ä"),
)
# Everything that is no letter, mark, number, punctuation, symbol or space to a terminal.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def control_sequences(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Print names as `relaunch events`, its `--json`, and `relaunch logs` do: no control character is among them."""
    for number in range(count):
        name = "".join(dice.choices(_PARTS, k=dice.randint(1, 8)))
        yield attempt(f"{number}: {name!a}", partial(_print, name))


def _print(name: str) -> str | None:
    event = EventRecord(f"s3:acme:{name}", "s3", f"nobody watches s3://acme/{name}", (), _AT)
    console = TerminalConsole()
    console.file = io.StringIO()
    console.print(render_events([event], _AT))
    printed = (console.file.getvalue(), escape_json(json.dumps(name, ensure_ascii=False)), "\n".join(log_lines(name)))
    found = [_CONTROL.search(text) for text in printed]
    return next((f"printed {each[0]!a}" for each in found if each), None)
