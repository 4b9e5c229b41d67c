"""GitHub's numbers of a repository: by gh, else by its API, else not known."""

import stat
from pathlib import Path

import pytest

from relaunch_cli.deployment import github_repository
from relaunch_cli.deployment.github_repository import RepositoryIds, find_repository_ids

ANSWER = '{"id": 22, "name": "vision", "owner": {"id": 11}}'


def install_gh(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gh = folder / "gh"
    gh.write_text(f"#!/bin/sh\n{script}\n")
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture(autouse=True)
def no_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens there."""
    monkeypatch.setattr(github_repository, "_API", "http://127.0.0.1:9")


def test_gh_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_gh(tmp_path, f"[ \"$*\" = 'api repos/acme/vision' ] && printf '%s' '{ANSWER}'", monkeypatch)

    assert find_repository_ids("acme/vision") == RepositoryIds("11", "22")


@pytest.mark.parametrize(
    "script", ["exit 1", "printf '%s' 'not json'", "printf '%s' '{\"id\": 22}'", "printf '%s' '[]'"]
)
def test_what_gh_does_not_know_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    install_gh(tmp_path, script, monkeypatch)

    assert find_repository_ids("acme/vision") is None


def test_without_gh_the_api_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = tmp_path / "repos" / "acme"
    folder.mkdir(parents=True)
    (folder / "vision").write_text(ANSWER)
    monkeypatch.setattr(github_repository, "_API", tmp_path.as_uri())

    assert find_repository_ids("acme/vision") == RepositoryIds("11", "22")


def test_its_name_and_its_branch_are_those_that_github_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"id": 22, "full_name": "Acme/Vision", "default_branch": "master", "owner": {"id": 11}}'
    install_gh(tmp_path, f"printf '%s' '{answer}'", monkeypatch)

    found = find_repository_ids("acme/vision")

    assert found == RepositoryIds("11", "22", "Acme/Vision", "master")


@pytest.mark.parametrize(
    ("ids", "ref", "parameters"),
    [
        (RepositoryIds("11", "22"), "", {}),
        (RepositoryIds("11", "22", "acme/vision", "main"), "", {}),
        (RepositoryIds("11", "22", "Acme/Vision", "main"), "", {"GitHubRepository": "Acme/Vision"}),
        (RepositoryIds("11", "22", "acme/vision", "master"), "", {"GitHubRef": "refs/heads/master"}),
        (RepositoryIds("11", "22", "acme/vision", "master"), "refs/heads/release", {}),
    ],
)
def test_each_parameter_that_is_not_as_it_was_named_is_said(
    ids: RepositoryIds, ref: str, parameters: dict[str, str]
) -> None:
    found, notes = ids.parameters_of("acme/vision", ref)

    assert found == {"GitHubOwnerId": "11", "GitHubRepositoryId": "22", **parameters}
    assert len(notes) == len(parameters)


def test_without_either_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_repository_ids("acme/vision") is None
