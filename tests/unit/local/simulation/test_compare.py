"""Traces of two trees are compared line by line, after the words that were renamed."""

import subprocess
from pathlib import Path

import pytest

from relaunch_local.simulation.compare import compare, describe_difference

OPTIONS = "def Options(trace): return trace"
RUN = """
from types import SimpleNamespace
def run_seed(seed, options):
    return SimpleNamespace(trace=tuple(TRACE) + (str(seed),) * (seed == LONGER), violations=())
"""


def make_tree(folder: Path, trace: list[str], longer: int = -1) -> Path:
    """Make a tree whose simulation has this trace, and a line more for one seed."""
    package = folder / "local" / "relaunch_local" / "simulation"
    package.mkdir(parents=True)
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    (package / "options.py").write_text(OPTIONS)
    (package / "run.py").write_text(f"TRACE, LONGER = {trace!r}, {longer}{RUN}")
    return folder


def test_the_same_traces_do_not_differ(tmp_path: Path) -> None:
    old, new = (make_tree(tmp_path / name, ["a job is accepted"]) for name in ("old", "new"))

    assert compare(old, new, range(3), renames={}) == []


def test_the_seed_that_differs_is_found_and_shown(tmp_path: Path) -> None:
    old = make_tree(tmp_path / "old", ["a", "b"])
    new = make_tree(tmp_path / "new", ["a", "b"], longer=1)
    reported: list[str] = []

    assert compare(old, new, range(3), renames={}, report=reported.append) == [1]
    assert reported == ["seed 1, line 3:\n  a\n  b\n- (the end)\n+ 1"]


def test_whole_words_that_were_renamed_are_the_same(tmp_path: Path) -> None:
    old = make_tree(tmp_path / "old", ["task-lost: lost task-lost-again"])
    new = make_tree(tmp_path / "new", ["host-lost: lost task-lost-again"])

    assert compare(old, new, [0], renames={"task-lost": "host-lost"}) == []
    assert compare(old, new, [0], renames={"task": "host"}, report=lambda _text: None) == [0]


def test_a_tree_that_does_not_run_is_no_tree_without_a_difference(tmp_path: Path) -> None:
    old, new = make_tree(tmp_path / "old", ["a"]), make_tree(tmp_path / "new", ["a"])
    (new / "local" / "relaunch_local" / "simulation" / "run.py").write_text("raise SystemExit(3)")

    with pytest.raises(subprocess.CalledProcessError):
        compare(old, new, [0], renames={})


def test_a_difference_is_shown_after_the_lines_before_it() -> None:
    old = [str(number) for number in range(9)]

    shown = describe_difference(7, old, [*old[:5], "other", *old[6:]])

    assert shown.splitlines() == ["seed 7, line 6:", "  2", "  3", "  4", "- 5", "+ other"]
