import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console
from rich.text import Text

from relaunch_local.demo import command
from relaunch_local.demo.outcome import JobResult, Outcome
from relaunch_local.demo.recording import Printed
from relaunch_local.demo.runner import TRAINING
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import UnmetExpectationError
from relaunch_local.stack.build import NotBuiltError
from relaunch_local.stack.emulator import EmulatorError

Failing = Callable[[Exception], tuple[int, Outcome, str]]


@pytest.fixture
def fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Failing:
    """Return a function that runs the demo with an error; it returns the exit status, the outcome, and the errors."""

    def run(error: Exception) -> tuple[int, Outcome, str]:
        monkeypatch.setattr(command, "run_demo", Mock(side_effect=error))
        outcome = Outcome(40.0, TRAINING)
        code = command.run_and_report(outcome, Screen(Console(quiet=True)))
        return code, outcome, capsys.readouterr().err

    monkeypatch.chdir(tmp_path)
    return run


def test_an_error_on_opening_the_world_is_printed_in_one_line(fail: Failing) -> None:
    code, outcome, said = fail(NotBuiltError("the application is not built: run `make build`"))

    assert (code, outcome.result) == (2, "not opened")
    assert said == "demo: the application is not built: run `make build`\n"


def test_a_long_error_goes_to_a_file_but_for_its_first_line(fail: Failing, tmp_path: Path) -> None:
    code, _, said = fail(EmulatorError("the emulator did not start:\nTraceback\nno memory"))

    assert code == 2
    assert said == "demo: the emulator did not start; what it said is in demo-failure.log\n"
    assert (tmp_path / "demo-failure.log").read_text() == "Traceback\nno memory"


def test_a_port_that_cannot_be_had_is_named_as_what_it_is(fail: Failing) -> None:
    _, _, said = fail(OSError(98, "Address already in use"))

    assert said == "demo: the local world cannot be opened: [Errno 98] Address already in use\n"


def test_a_story_that_does_not_come_true_says_where_to_look(fail: Failing) -> None:
    code, _, said = fail(UnmetExpectationError("not within 5 s: a unicorn"))

    assert code == 1
    assert said.startswith("demo: not within 5 s: a unicorn\n")
    assert "demo.json" in said
    assert "demo-failure.log" in said


def test_a_story_that_comes_true_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "run_demo", Mock())
    console = Console(record=True, quiet=False, file=StringIO(), width=120)

    assert command.run_and_report(Outcome(40.0, TRAINING), Screen(console)) == 0
    assert "your own training next, on this machine: docs/local.md; on AWS: docs/deploy.md" in console.export_text()


def test_for_machines_it_prints_one_json_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run_demo(outcome: Outcome, screen: Screen) -> None:
        screen.line("a push starts a job")
        outcome.endings.append(JobResult("push", "a-job", 40, 0, 0.5, "abc"))
        outcome.result = "succeeded"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "run_demo", run_demo)

    assert command.run(["--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["result"], [each["kind"] for each in summary["endings"]]) == ("succeeded", ["push"])


@pytest.mark.parametrize("text", ["0", "-1", "101", "nan", "fast"])
def test_a_speed_that_makes_no_sense_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.run(["--speed", text])

    assert ended.value.code == 2
    assert "--speed" in capsys.readouterr().err


def test_what_containers_and_aws_say_does_not_control_the_terminal(
    fail: Failing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run_demo", lambda _outcome, screen: screen.line("loss\x1b[2J \x9b2J0.5"))
    monkeypatch.setattr(command.logging, "basicConfig", Mock())

    assert command.run([]) == 0
    assert "loss\ufffd[2J \ufffd2J0.5" in " ".join(capsys.readouterr().out.split())

    _, _, said = fail(UnmetExpectationError("no \x1b]0;title\x07task"))
    assert said.startswith("demo: no \ufffd]0;title\ufffdtask\n")


@pytest.mark.parametrize("arguments", [["--nodes", "9"], ["--nodes", "0"], ["--nodes", "2", "--target", "ack"]])
def test_a_number_of_machines_that_cannot_be_shown_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.run(arguments)

    assert ended.value.code == 2
    assert "is not from 1 to 8" in (said := capsys.readouterr().err) or "runs on ecs, not on ack" in said


def test_without_pytorch_it_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("relaunch_local.demo.gang.training.find_spec", lambda _name: None)

    assert command.run(["--nodes", "3"]) == 2
    assert "`make demo NODES=3` installs it, once" in capsys.readouterr().err


def test_the_picture_has_the_story_of_the_push_without_the_upload_and_the_timeline() -> None:
    lines = (
        *("a push", "it resumes", "10 An upload to S3", "it is lost", "12 How the push ends", "it has SUCCEEDED"),
        *("14 The timeline of demo-a", "15 How the upload ends"),
    )
    picture = command.draw_first_story([Printed(float(at), [Text(line)]) for at, line in enumerate(lines)])

    shown = [line for line in lines if line.replace(" ", "\N{NO-BREAK SPACE}") in picture or line in picture]
    assert shown == ["a push", "it resumes", "12 How the push ends", "it has SUCCEEDED"]
