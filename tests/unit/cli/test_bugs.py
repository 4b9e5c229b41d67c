"""What nobody foresaw: a line, a file, an exit code of its own, and the traceback for those who ask."""

import stat
import sys

import pytest

from relaunch_cli import app as command
from relaunch_cli.bugs import describe_bug


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("RELAUNCH_DEBUG", "")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command by its entry point, `plan` of which has a bug."""

    def fail(*_arguments, **_options):
        raise KeyError("Zone\nId")

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["relaunch", *arguments])
        monkeypatch.setattr("relaunch_cli.lookup.AwsConnection", fail)
        with pytest.raises((SystemExit, KeyError)) as ended:
            command.run()
        return ended.value, capsys.readouterr().err

    return run


def test_a_bug_is_a_line_with_where_to_report_it_and_an_exit_code_of_its_own(run, tmp_path):
    ended, shown = run("plan", "--gpu", "1")

    (report,) = tmp_path.glob("relaunch-*.txt")
    assert ended.code == 70
    message, hint = shown.splitlines()
    assert message == "relaunch: unforeseen error: KeyError: 'Zone\\nId'"
    assert hint.endswith(f"report it in the issues of the repository that you have it from, with {report}")


def test_the_file_has_the_traceback_and_nobody_else_reads_it(run, tmp_path):
    run("plan", "--gpu", "1")

    (report,) = tmp_path.glob("relaunch-*.txt")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    first, *lines = report.read_text().splitlines()
    assert first.startswith("relaunch 0.")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "KeyError: 'Zone\\nId'"


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_traceback_is_shown_to_those_who_ask(run, monkeypatch, tmp_path, way):
    if way == "variable":
        monkeypatch.setenv("RELAUNCH_DEBUG", "1")

    ended, _ = run(*(("--debug",) if way == "option" else ()), "plan", "--gpu", "1")

    assert isinstance(ended, KeyError)
    assert list(tmp_path.iterdir()) == []


def test_debugging_that_is_switched_off_is_off(run, monkeypatch):
    monkeypatch.setenv("RELAUNCH_DEBUG", "0")

    assert run("plan", "--gpu", "1")[0].code == 70


def test_without_a_place_for_the_file_the_traceback_can_be_shown(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))

    assert describe_bug(ValueError()).hint.endswith("with what RELAUNCH_DEBUG=1 shows")
    assert describe_bug(ValueError()).message == "unforeseen error: ValueError"


def test_a_text_of_several_lines_is_one_line(tmp_path):
    assert describe_bug(ValueError("a\n  b")).message == "unforeseen error: ValueError: a b"


def test_text_that_cannot_be_encoded_is_written_all_the_same(tmp_path):
    describe_bug(ValueError("half \ud800"))

    (report,) = tmp_path.iterdir()
    assert "half \\ud800" in report.read_text()


def test_an_expected_end_is_no_bug(run, tmp_path):
    assert run("nonsense")[0].code == 2
    assert list(tmp_path.iterdir()) == []
