import os
import subprocess
from pathlib import Path

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.git_repository import find_commit, find_repository, github_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def add_origin(folder: Path, url: str) -> None:
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", url], check=True)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@github.com:acme/vision.git", "acme/vision"),
        ("https://github.com/acme/vision", "acme/vision"),
        ("https://token@github.com/acme/big.vision.git", "acme/big.vision"),
        ("ssh://git@github.com/acme/vision.git", "acme/vision"),
        ("ssh://git@ssh.github.com:443/acme/vision.git", "acme/vision"),
        ("org-1@github.com:acme/vision.git", "acme/vision"),
        ("https://www.GitHub.com/acme/vision", "acme/vision"),
        ("https://gitlab.com/acme/vision.git", ""),
        ("https://github.com.evil.example/acme/vision", ""),
        # Names that GitHub gives no repository, and that would be more than a name where they are written.
        ("https://github.com/acme/x,event:push}#", ""),
        ("https://github.com/acme/..", ""),
        ("https://github.com/acme/.", ""),
        ("https://github.com/acme/x?per_page=1", ""),
        ("git@github.com:-acme/vision", ""),
        ("https://github.com/acme/vision/..", ""),
        ("../vision", ""),
        ("", ""),
    ],
)
def test_a_repository_at_github_is_known_by_its_remote(url, name):
    assert github_name(url) == name


def test_the_repository_is_found_from_below(folder: Path):
    add_origin(folder, "git@github.com:acme/vision.git")
    subprocess.run(["git", "-C", folder, "symbolic-ref", "HEAD", "refs/heads/try/me"], check=True)
    (folder / "src").mkdir()

    found = find_repository(folder / "src")

    assert found.root.resolve() == folder.resolve()
    assert (found.github, found.branch) == ("acme/vision", "try/me")


def test_outside_of_a_repository_it_says_so(tmp_path: Path):
    with pytest.raises(CommandError, match="is in no git repository that can be used: fatal: not a git repository"):
        find_repository(tmp_path)


def test_a_clone_at_github_has_a_commit(folder: Path):
    assert find_commit(folder) == ("", "")
    add_origin(folder, "git@github.com:acme/relaunch.git")
    assert find_commit(folder) == ("", "")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", folder, *identity, "commit", "--quiet", "--allow-empty", "-m", "first"], check=True)

    github, commit = find_commit(folder)

    assert (github, len(commit)) == ("acme/relaunch", 40)


def test_a_remote_of_any_bytes_is_no_name(folder: Path):
    subprocess.run(
        [b"git", b"-C", os.fsencode(folder), b"remote", b"add", b"origin", b"git@github.com:a/\xff"], check=True
    )

    assert find_repository(folder).github == ""
