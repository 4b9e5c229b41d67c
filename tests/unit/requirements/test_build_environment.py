"""Environments are built once, whoever asks for them, and count only when they are complete."""

import subprocess
import sys
from pathlib import Path

from fakes.repository import REPOSITORY

SCRIPT = REPOSITORY / "requirements" / "build_environment.py"


def build(folder: Path) -> subprocess.Popen[str]:
    # Without packages, which take their time and need an index.
    return subprocess.Popen(
        [sys.executable, SCRIPT, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_two_at_once_build_it_once(tmp_path: Path) -> None:
    at_once = [build(tmp_path / "environment") for _ in range(2)]
    said = [process.communicate()[0] for process in at_once]
    later = build(tmp_path / "environment").communicate()[0]

    assert [process.returncode for process in at_once] == [0, 0]
    assert sorted("installing" in each for each in said) == [False, True]
    assert later == ""


def test_one_that_was_left_half_done_is_built_from_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "half-done").touch()

    said = build(folder).communicate()[0]

    assert "installing" in said
    assert not (folder / "half-done").exists()
    assert (folder / "bin" / "python").exists()


def test_one_that_was_made_of_something_else_is_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    build(folder).communicate()
    (folder / "complete").write_text("another key")

    assert "installing" in build(folder).communicate()[0]
    assert build(folder).communicate()[0] == ""
