"""The command on a pseudo-terminal, as people see it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress

import pytest

from fakes.repository import REPOSITORY

COMMAND = ("plan", "--offline", "--gpu", "1", "--model", "A10G", "--limit", "3")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7](;[0-9;]*)?m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def screen(columns: int, **environment: str) -> str:
    """Run the command with standard output on a terminal of this width; return what it writes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    path = os.pathsep.join(str(REPOSITORY / folder) for folder in ("layers/relaunch", "cli"))
    done = subprocess.Popen(
        [sys.executable, "-c", "from relaunch_cli.main import main; main()", *COMMAND],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": path, "TERM": "xterm-256color", "PATH": os.environ["PATH"], **environment},
    )
    os.close(theirs)
    written = b""
    # The terminal is gone with its last writer (EIO).
    with suppress(OSError):
        while part := os.read(ours, 4096):
            written += part
    os.close(ours)
    assert done.wait(timeout=300) == 0
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 120])
def test_a_table_fits_the_terminal_and_its_names_and_prices_are_whole(columns: int) -> None:
    lines = CONTROL.sub("", screen(columns)).splitlines()

    assert max(len(line.rstrip()) for line in lines) <= columns
    rows = [line.split() for line in lines if re.match(r"[1-3]  g", line)]
    assert [(row[0], row[1][:3]) for row in rows] == [("1", "g5."), ("2", "g5."), ("3", "g5.")]
    assert all(any(re.fullmatch(r"(<=)?\d+\.\d{4}", word) for word in row) for row in rows)


def test_no_color_leaves_colours_out() -> None:
    assert not COLOUR.search(screen(80, NO_COLOR="1"))
