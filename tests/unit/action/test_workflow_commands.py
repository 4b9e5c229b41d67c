import io
import re
from pathlib import Path

import pytest

from relaunch_action.workflow_commands import Runner, plain

ATTACKS = [
    "::set-env name=PATH::/tmp",
    "fine\n::add-path::/tmp",
    "fine\r::error::no",
    "\u2028::error::no",
    "x\x85::error::no",
    "\x0b::stop-commands::x",
    "##[add-path]/tmp",
    "text ##[set-env name=A;]b",
    "#\x00#[error]x",
    "##\x00[error]x",
    "\x1b[2J",
    "EOF\nstate=SUCCEEDED",
]


def executed(line: str) -> bool:
    """Return whether the runner executes a line, as its ActionCommand.cs does."""
    return line.lstrip().startswith("::") or "##[" in line


@pytest.mark.parametrize("text", ATTACKS)
def test_no_text_becomes_a_command(text: str) -> None:
    output = io.StringIO()
    runner = Runner({}, output)

    runner.log(text)

    (line,) = output.getvalue().splitlines()
    assert line.startswith("relaunch: ")
    assert not executed(line)


@pytest.mark.parametrize("text", ATTACKS)
def test_an_annotation_is_one_command_whatever_its_text(text: str) -> None:
    output = io.StringIO()

    Runner({}, output).error(text)
    Runner({}, output).warning(text)

    error, warning = output.getvalue().splitlines()
    assert error.startswith("::error title=Relaunch::")
    assert warning.startswith("::warning title=Relaunch::")
    assert "##[" not in error + warning


def test_percent_signs_of_an_annotation_are_no_escapes() -> None:
    output = io.StringIO()

    Runner({}, output).error("100%0Adone")

    assert output.getvalue() == "::error title=Relaunch::100%250Adone\n"


def test_a_secret_is_masked_as_it_is() -> None:
    output = io.StringIO()

    Runner({}, output).mask("a%b")

    assert output.getvalue() == "::add-mask::a%25b\n"


def test_a_long_text_is_cut() -> None:
    assert len(plain("x" * 10_000)) < 2_010


@pytest.mark.parametrize("text", [*ATTACKS, "plain", ""])
def test_an_output_is_its_text_and_nothing_else(tmp_path: Path, text: str) -> None:
    file = tmp_path / "output"

    Runner({"GITHUB_OUTPUT": str(file)}, io.StringIO()).set_outputs({"state": text, "job-id": "resnet-1"})

    found = re.findall(r"^(\S+)<<(\S+)\n(.*?)\n\2\n", file.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [(name, value) for name, _, value in found] == [("state", plain(text)), ("job-id", "resnet-1")]


def test_outputs_and_summaries_are_appended(tmp_path: Path) -> None:
    variables = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    for file in variables.values():
        Path(file).write_text("before\n")
    runner = Runner(variables, io.StringIO())

    runner.set_outputs({"a": "1"})
    runner.summarize("<p>é</p>")

    assert Path(variables["GITHUB_OUTPUT"]).read_text().startswith("before\na<<")
    assert Path(variables["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8") == "before\n<p>é</p>\n\n"


def test_a_runner_without_files_is_told_and_the_step_goes_on() -> None:
    output = io.StringIO()

    Runner({}, output).summarize("<p></p>")

    assert output.getvalue() == "relaunch: the runner names no file in GITHUB_STEP_SUMMARY: nothing is written to it\n"
