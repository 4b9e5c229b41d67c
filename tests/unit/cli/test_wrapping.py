"""Prose is wrapped at words, and commands stay whole."""

import io
import re

import pytest
from rich.console import Console

from relaunch_cli.terminal import echo
from relaunch_cli.views.screen import print_note
from relaunch_cli.wrapping import wrap

NOTE = "on-demand prices of this region are not known; `relaunch plan --offline` has others"


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width)


@pytest.mark.parametrize(
    ("width", "text", "lines"),
    [
        (20, "spot prices of EC2, now", ["spot prices of EC2,", "now"]),
        (20, "  spot prices of EC2, now", ["  spot prices of", "  EC2, now"]),
        (20, "say `relaunch ps --all`, or", ["say", "`relaunch ps --all`,", "or"]),
        (12, "say `relaunch ps --all`", ["say", "`relaunch ps", "--all`"]),
        (12, "s3://a-long-bucket/key is it", ["s3://a-long-bucket/key", "is it"]),
        (8, "a` b` c d", ["a` b` c", "d"]),
        (12, "one\n\ntwo words three", ["one", "", "two words", "three"]),
        (9, "日本語 日本語", ["日本語", "日本語"]),
    ],
)
def test_lines_end_at_words_and_what_is_copied_is_whole(width, text, lines):
    assert wrap(text, terminal(width)).split("\n") == lines


def test_in_a_pipe_a_line_stays_one():
    assert wrap(NOTE, Console(file=io.StringIO(), width=20)) == NOTE


@pytest.mark.parametrize("write", [print_note, lambda text: echo(text, err=True)], ids=["note", "error"])
def test_notes_and_errors_are_wrapped_in_a_terminal_and_not_in_a_pipe(write, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    write(NOTE)
    assert capsys.readouterr().err == f"{NOTE}\n"

    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    write(NOTE)
    shown = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().err.splitlines()]

    assert " ".join(shown) == NOTE
    assert max(map(len, shown)) <= 40


def test_a_command_alone_is_not_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")

    echo(f"    {NOTE}", err=True, is_whole=True)

    assert capsys.readouterr().err == f"    {NOTE}\n"
