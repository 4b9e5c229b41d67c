"""Whose the definitions of a file are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from relaunch.core.definitions.ownership import Owner
from relaunch_cli.definition_files import find_owner, read_file
from relaunch_cli.errors import CommandError

ADA = "arn:aws:iam::111122223333:user/ada"


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Return a function that calls git in a new repository, whatever the user's own configuration is."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    command = shutil.which("git")
    assert command is not None
    (tmp_path / "repository" / "train").mkdir(parents=True)

    def call(*arguments: str) -> None:
        subprocess.run([command, "-C", str(tmp_path / "repository"), *arguments], check=True, capture_output=True)

    call("init")
    return call


@pytest.fixture
def file(tmp_path):
    return tmp_path / "repository" / "train" / "relaunch.yaml"


def test_a_file_in_a_repository_is_known_by_the_remote_and_its_path(git, file, monkeypatch):
    git("remote", "add", "origin", "https://ada:token@github.com/Acme/vision.git")
    owner = Owner("github.com/acme/vision", "train/relaunch.yaml", ADA)

    assert find_owner(file, ADA) == owner
    monkeypatch.chdir(file.parent)
    assert find_owner(Path("relaunch.yaml"), ADA) == owner


def test_a_link_is_the_file_it_leads_to(git, file, tmp_path):
    git("remote", "add", "origin", "git@github.com:acme/vision.git")
    file.touch()
    link = tmp_path / "link.yaml"
    link.symlink_to(file)

    assert find_owner(link, ADA) == Owner("github.com/acme/vision", "train/relaunch.yaml", ADA)


@pytest.mark.parametrize("remote", [None, "/srv/git/vision.git"])
def test_without_a_remote_that_others_know_a_file_is_known_by_its_name(git, file, remote):
    if remote:
        git("remote", "add", "origin", remote)

    assert find_owner(file, ADA) == Owner("", "relaunch.yaml", ADA)


@pytest.mark.usefixtures("git")
def test_outside_of_a_repository_and_without_git_a_file_is_known_by_its_name(file, tmp_path, monkeypatch):
    assert find_owner(tmp_path / "relaunch.yaml", ADA) == Owner("", "relaunch.yaml", ADA)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_owner(file, ADA) == Owner("", "relaunch.yaml", ADA)


def test_a_pipe_is_known_by_the_name_that_it_was_given_by():
    assert find_owner(Path("/dev/stdin"), ADA) == Owner("", "stdin", ADA)


def test_a_file_at_the_top_of_a_repository_is_known_by_its_name_there(git, file):
    git("remote", "add", "origin", "ssh://git@git.acme.example:2222/ml/vision.git")

    assert find_owner(file.parent.parent / "a.yaml", ADA) == Owner("git.acme.example/ml/vision", "a.yaml", ADA)


def test_names_of_any_bytes_become_text_that_can_be_stored(git, file):
    git("remote", "add", "origin", "git@github.com:acme/vision.git")
    odd = file.with_name(os.fsdecode(b"re\xfflaunch.yaml"))
    odd.touch()

    assert find_owner(odd, ADA).file == "train/re\\xfflaunch.yaml"


def test_a_file_is_read_no_further_than_a_definition_file_can_be(tmp_path):
    with pytest.raises(CommandError, match="/dev/zero is larger than 1,000,000 bytes: it is no definition file"):
        read_file(Path("/dev/zero"))
    (tmp_path / "a.yaml").write_bytes(b"jobs:\r\n" + b"#" * 999_993)
    assert read_file(tmp_path / "a.yaml").startswith("jobs:\n#")
