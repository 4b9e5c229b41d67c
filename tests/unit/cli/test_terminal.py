"""Text from outside does not control the terminal, whichever way it takes there."""

import ast
import json
from io import StringIO
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from fakes.builders import NOW
from fakes.cli_session import CliSession, Outcome, rewrite
from fakes.repository import REPOSITORY
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.submit_job import submit_direct
from relaunch_cli.terminal import escape_json, harmless, log_lines, one_line
from relaunch_cli.views.screen import TerminalConsole

# It clears the screen, sets the title, turns red by C1, moves up by C1 and by NEL, reverses and isolates what follows.
HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x9b31mc\x8d\x85d\u202etxt.exe\u2066\u200f\u2028e\x7f"
CONTROLS = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c"}
CONTROLS |= {*"\u202d\u202e\u2066\u2067\u2068\u2069"}


def controls_in(text: str) -> set[str]:
    return (CONTROLS - {"\n", "\t"}) & set(text)


def test_each_control_character_is_replaced_and_nothing_else_is() -> None:
    plain = "".join(chr(code) for code in range(0x20, 0x3000) if chr(code) not in CONTROLS) + "日本 👩‍🔬\t\n"

    assert harmless(plain) == plain
    assert harmless("".join(sorted(CONTROLS - {"\n", "\t"}))) == "\ufffd" * (len(CONTROLS) - 2)
    assert harmless("half \ud800") == "half \ufffd"
    assert one_line("two\nlines\t") == "two\ufffdlines\t"


def test_json_is_escaped_where_it_has_control_characters_and_means_the_same() -> None:
    document = {HOSTILE: [HOSTILE, "日本", "half \ud800"]}

    written = escape_json(json.dumps(document, indent=2, ensure_ascii=False))

    assert controls_in(written) == set()
    assert "日本" in written
    assert json.loads(written) == document
    written.encode()  # so that no output fails


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("loss 0.5", ["loss 0.5"]),
        ("", [""]),
        ("\x1b[1;32mINFO\x1b[0m done\n", ["INFO done"]),
        (" 10 %|#   |\r 20 %|##  |\r\n", [" 10 %|#   |", " 20 %|##  |"]),
        ("Traceback:\n\tfailed", ["Traceback:", "\tfailed"]),
        ("\x1b]0;title\x07\x1b[2Jgone", ["\ufffd]0;title\ufffd\ufffd[2Jgone"]),
    ],
)
def test_a_log_message_becomes_plain_lines(message: str, lines: list[str]) -> None:
    assert log_lines(message) == lines


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_console_writes_no_controls_but_its_own(is_terminal: bool) -> None:
    written = []
    for text in (HOSTILE, "harmless"):
        table = Table(text)
        table.add_row(Text(text, style="red"))
        console = TerminalConsole()
        console.file, console._force_terminal = StringIO(), is_terminal
        console.print(text, Text(text, style="bold"), table)
        with console.status(Text(text)):
            pass
        written.append(controls_in(console.file.getvalue()))

    assert written[0] == written[1] <= ({"\x1b", "\r"} if is_terminal else set())


def test_brackets_are_no_markup() -> None:
    console = TerminalConsole()
    console.file = StringIO()

    console.print("branches [release]-* [link=https://example.com]here[/link]")

    assert console.file.getvalue() == "branches [release]-* [link=https://example.com]here[/link]\n"


@pytest.fixture
def hostile_job(session: CliSession) -> str:
    """Run a job that somebody of a hostile name submitted, whose task logs and ends hostilely; return its id."""
    at = session.clock.now()
    job_id = submit_direct(DirectRequest("direct:hostile", "resnet", {}, HOSTILE, at), session.deps).job_id
    task_id = session.launch(job_id)
    session.run(task_id)
    ended = session.tasks.end(task_id, 1, stopped_at=session.clock.now(), stopped_reason=HOSTILE)
    observe_task(ended, session.deps)
    session.logs.streams = {f"train/main/{task_id.rsplit('/', 1)[-1]}": [(NOW, HOSTILE)]}
    session.deps.events.record_event(HOSTILE, "github", HOSTILE, [], NOW)
    return job_id


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", ["ps", "show", "explain", "logs", "events"])
def test_what_others_chose_is_shown_harmlessly(relaunch, hostile_job: str, command: str, as_json: bool) -> None:
    arguments = {"ps": ["--all"], "events": []}.get(command, [hostile_job])

    result: Outcome = relaunch(command, *arguments, *(["--json"] if as_json else []))

    assert result.exit_code == 0
    assert controls_in(result.stdout + result.stderr) == set()
    assert "txt.exe" in result.stdout


def test_what_an_error_quotes_is_shown_harmlessly(relaunch, file: Path) -> None:
    rewrite(file, "container: main", 'container: "ma\\e[2Jin\\nsecond"')
    for arguments in (["show", HOSTILE], ["plan", HOSTILE], ["apply", HOSTILE], ["apply", str(file)]):
        result: Outcome = relaunch(*arguments)

        assert result.exit_code
        assert controls_in(result.stderr) == set()
        assert "\ufffd" in result.stderr or "\\x1b" in result.stderr


def test_the_command_prints_in_no_other_way() -> None:
    printing = {
        str(file.relative_to(REPOSITORY / "cli" / "relaunch_cli"))
        for file in (REPOSITORY / "cli" / "relaunch_cli").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in {"print", "echo", "secho", "Console", "write"}
        and ast.unparse(node.func) not in {"echo", "console.print", "stdout_console().print", "stderr_console().print"}
    }

    # What the dashboard writes goes to a browser, and is escaped there.
    assert printing == {"terminal.py", "views/screen.py", "dashboard/server.py"}
