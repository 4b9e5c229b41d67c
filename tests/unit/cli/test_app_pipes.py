"""Output that is piped: `| head` is no failure, and what goes on for ever ends with its reader."""

import errno
import os
import subprocess
import sys
from io import StringIO

import pytest
from rich.text import Text

from relaunch_cli.views.screen import TerminalConsole, refreshed

pytestmark = pytest.mark.slow

PLAIN = "from relaunch_cli.main import main; main()"
WATCHING = """
from fakes.cli_session import CliSession
from relaunch_cli import app, lookup

session = CliSession()
session.submit()
session.on_pause = [lambda: None] * 1000
lookup.AwsConnection = lambda *_: session
app.run()
"""


def run_with_reader(program: str, *arguments: str, lines: int) -> tuple[int, str, list[str]]:
    """Run the command for a reader that leaves after some lines; return its exit code, its errors, what was read."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read = [process.stdout.readline() for _ in range(lines)]
        process.stdout.close()
        return process.wait(), process.stderr.read(), read


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--offline", "--gpu", "1", "--json")])
def test_a_reader_that_is_gone_is_no_failure(arguments):
    exit_code, errors, _ = run_with_reader(PLAIN, *arguments, lines=0)

    assert exit_code == 0
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


def test_watching_ends_with_its_reader():
    exit_code, errors, read = run_with_reader(WATCHING, "ps", "--watch", lines=4)

    assert (exit_code, errors) == (0, "")
    assert [line.split()[0] for line in read[::2]] == ["JOB", "JOB"]


def test_a_console_leaves_it_to_the_command_that_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    console = TerminalConsole()
    console.file = os.fdopen(writer, "w")

    with pytest.raises(BrokenPipeError) as broken:
        console.print("x")

    assert broken.value.errno == errno.EPIPE
    with pytest.raises(BrokenPipeError):
        console.file.close()


def shown_twice(*, is_interactive: bool) -> str:
    console = TerminalConsole()
    console.file, console._force_terminal, console.is_interactive = StringIO(), is_interactive, is_interactive
    with refreshed(console) as show:
        show(Text("first"))
        show(Text("second"))
    return console.file.getvalue()


def test_each_result_is_below_the_one_before_unless_there_is_a_cursor_to_move(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")

    assert shown_twice(is_interactive=False) == "first\nsecond\n"
    assert "first\r\x1b[2Ksecond" in shown_twice(is_interactive=True)
