import subprocess
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.control_plane import debian_build
from relaunch_local.control_plane.programs import ASSETS, PROGRAMS, ProgramsMissingError


class Commands:
    """Commands that do what a test says: by their first word, the output and the exit status."""

    def __init__(self, **results: tuple[str, int]) -> None:
        self.results = results
        self.run: list[str] = []

    def __call__(self, command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        name = next((each for each in self.results if each in " ".join(command)), "")
        self.run.append(" ".join(command))
        said, status = self.results.get(name, ("", 0))
        return subprocess.CompletedProcess(command, status, "", said)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    commands = Commands()
    monkeypatch.setattr(debian_build.subprocess, "run", commands)
    monkeypatch.setattr(debian_build.shutil, "which", lambda name: f"/usr/bin/{name}")
    return commands


def test_a_machine_without_debians_tools_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(debian_build.shutil, "which", lambda name: None if name == "dpkg-source" else name)

    with pytest.raises(ProgramsMissingError, match=f"dpkg-source of Debian .* is missing: let {ASSETS} name a folder"):
        debian_build.build_programs(tmp_path / "built")


def test_a_package_that_cannot_be_had_says_why_and_what_to_do(commands: Commands, tmp_path: Path) -> None:
    commands.results = {"update": ("no network", 100), "source": ("E: Unable to find a source package", 100)}

    with pytest.raises(ProgramsMissingError, match=f"Unable to find a source package\nlet {ASSETS} name"):
        debian_build.build_programs(tmp_path / "built")
    assert not (tmp_path / "built").exists()


def test_another_version_of_the_source_package_is_not_built(commands: Commands, tmp_path: Path) -> None:
    with pytest.raises(ProgramsMissingError, match=r"is none, not 1\.20\.2 of Debian 12"):
        debian_build.build_programs(tmp_path / "built")


def test_what_another_process_has_built_meanwhile_is_taken(commands: Commands, tmp_path: Path) -> None:
    built = tmp_path / "built"
    built.mkdir()
    for name in PROGRAMS:
        (built / name).touch(mode=0o755)

    assert debian_build.build_programs(built) == built
    assert commands.run == []
