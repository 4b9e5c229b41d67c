from pathlib import Path

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.file_changes import read_text, write_files
from relaunch_cli.repository_setup.findings import FileChange


def test_files_are_written_whole_with_their_folders_and_keep_their_mode(tmp_path: Path):
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o755)

    write_files(
        tmp_path,
        [
            FileChange(".github/workflows/train.yml", None, "new\n"),
            FileChange("run.sh", "old", "new\n"),
            FileChange("same", "is not there", "is not there"),
        ],
    )

    assert (tmp_path / ".github" / "workflows" / "train.yml").read_text() == "new\n"
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == [".github", "run.sh"]


def test_a_file_that_was_changed_meanwhile_is_left_as_it_is(tmp_path: Path):
    (tmp_path / "relaunch.yaml").write_text("of somebody else")

    with pytest.raises(CommandError, match=r"relaunch.yaml was changed meanwhile"):
        write_files(tmp_path, [FileChange("relaunch.yaml", None, "ours")])

    assert (tmp_path / "relaunch.yaml").read_text() == "of somebody else"


def test_what_cannot_be_read_is_not_replaced(tmp_path: Path):
    (tmp_path / "relaunch.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "Dockerfile").mkdir()

    for name in ("relaunch.yaml", "Dockerfile"):
        with pytest.raises(CommandError, match=f"{name} cannot be read, and is not replaced"):
            read_text(tmp_path, name)
    assert read_text(tmp_path, "missing") is None


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path):
    too_long = f"{'x' * 250}.yml"

    with pytest.raises(CommandError, match=r"x.yml cannot be written: File name too long"):
        write_files(tmp_path, [FileChange("first.yml", None, "x"), FileChange(too_long, None, "x")])

    assert [path.name for path in tmp_path.iterdir()] == ["first.yml"]
