"""Environments are built once, whoever asks for them, and count only when they are complete."""

import hashlib
import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

pytestmark = pytest.mark.slow

SCRIPT = REPOSITORY / "requirements" / "build_environment.py"
BUILDING = runpy.run_path(str(SCRIPT))


def build(folder: Path, interpreter: str | Path = sys.executable) -> subprocess.Popen[str]:
    # Without packages, which take their time and need an index.
    return subprocess.Popen([interpreter, SCRIPT, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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
    (folder / "made-by-make").touch()
    (folder / "half-done").touch()

    said = build(folder).communicate()[0]

    assert "installing" in said
    assert not (folder / "half-done").exists()
    assert (folder / "bin" / "python").exists()


def test_one_that_it_did_not_make_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "pyvenv.cfg").write_text("somebody's own")

    process = build(folder)
    said = process.communicate()[0]

    assert process.returncode != 0
    assert f"{folder}: is there, and was not made by make: move it away, or remove it" in said
    assert [path.name for path in folder.iterdir()] == ["pyvenv.cfg"]


def test_one_that_was_made_of_something_else_is_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    build(folder).communicate()
    (folder / "complete").write_text("another key")

    assert "installing" in build(folder).communicate()[0]
    assert build(folder).communicate()[0] == ""


def test_an_interpreter_of_an_environment_counts_as_the_one_it_was_made_with(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    build(folder).communicate()

    # As with an environment's folder `bin` first on PATH.
    assert build(folder, folder / "bin" / "python").communicate()[0] == ""


def make_wheel(folder: Path, name: str) -> str:
    """Write a wheel with one module and return its hash."""
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_what_is_not_listed_with_its_hash_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    digest = make_wheel(tmp_path, "genuine")
    requirements = tmp_path / "requirements.txt"
    folder = tmp_path / "environment"
    installed = "lib/*/site-packages/genuine.py"

    requirements.write_text("genuine==1.0")
    command = [sys.executable, SCRIPT, folder, "--requirement", requirements]
    refused = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (refused.returncode, (folder / "complete").exists()) == (1, False)
    assert "Hashes are required" in refused.stderr
    assert not list(folder.glob(installed))

    # What was refused has left an environment without it: another one would take as long again.
    requirements.write_text(f"genuine==1.0 --hash=sha256:{digest}")
    BUILDING["install_listed"](folder, [requirements])

    assert list(folder.glob(installed))
