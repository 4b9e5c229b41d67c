import os
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository beside a folder that is none of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "bashrc").write_text("of the user")
    (tmp_path / "repository" / ".git" / "hooks").mkdir(parents=True)
    return tmp_path / "repository"


@pytest.mark.parametrize(
    ("link", "target", "path", "why"),
    [
        ("relaunch.yaml", "../outside/bashrc", "relaunch.yaml", "outside of the repository"),
        ("relaunch.yaml", "../outside/new", "relaunch.yaml", "outside of the repository"),
        ("relaunch.yaml", "/etc/hostname", "relaunch.yaml", "outside of the repository"),
        (".github", "../outside", ".github/workflows/train.yml", "outside of the repository"),
        ("Dockerfile", ".git/hooks/pre-commit", "Dockerfile", "one of git's own files"),
        ("Dockerfile", ".GIT/config", "Dockerfile", "one of git's own files"),
        ("relaunch.yaml", "relaunch.yaml", "relaunch.yaml", "."),
    ],
)
def test_a_link_out_of_the_repository_is_neither_read_nor_written_through(
    root: Path, link: str, target: str, path: str, why: str
):
    (root / link).symlink_to(target)

    with pytest.raises(CommandError, match=why):
        read_text(root, path)
    with pytest.raises(CommandError, match=why):
        write_files(root, [FileChange(path, None, "new")])

    assert [each.name for each in (root.parent / "outside").iterdir()] == ["bashrc"]
    assert (root.parent / "outside" / "bashrc").read_text() == "of the user"
    assert list((root / ".git").rglob("*")) == [root / ".git" / "hooks"]


def test_a_link_within_the_repository_is_followed_also_where_its_own_folder_is_a_link(root: Path):
    (root / "deploy").mkdir()
    (root / "relaunch.yaml").symlink_to("deploy/relaunch.yaml")
    (root.parent / "link").symlink_to(root)

    write_files(root.parent / "link", [FileChange("relaunch.yaml", None, "new")])

    assert (root / "deploy" / "relaunch.yaml").read_text() == "new"
    assert (root / "relaunch.yaml").is_symlink()


def test_what_never_ends_is_not_read_on(root: Path):
    os.mkfifo(root / "Dockerfile")
    (root / "relaunch.yaml").write_bytes(b"#" * 1_000_001)

    with pytest.raises(CommandError, match="Dockerfile cannot be read, and is not replaced: it is no file"):
        read_text(root, "Dockerfile")
    with pytest.raises(CommandError, match=r"relaunch.yaml cannot be read, .*: it is larger than 1,000,000 bytes"):
        read_text(root, "relaunch.yaml")


def test_a_file_is_the_same_whatever_its_line_ends(root: Path):
    (root / "relaunch.yaml").write_bytes(b"jobs:\r\n")

    assert read_text(root, "relaunch.yaml") == "jobs:\n"
