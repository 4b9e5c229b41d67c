"""The client of GitHub's REST API over HTTP, on loopback, against the same fake as the client of webhooks."""

from collections.abc import Iterator

import pytest

from fakes.action_services import FakeTime
from fakes.github_api import TOKEN, GithubApi, serve_github
from fakes.github_repository import FakeRepository
from relaunch_action import http_requests
from relaunch_action.errors import ActionError
from relaunch_action.github import Github
from relaunch_local.simulation.github import GithubWebhooks

SHA = "c" * 40


@pytest.fixture
def api() -> Iterator[GithubApi]:
    webhooks = GithubWebhooks(lambda: pytest.fail("no webhook is asked about"), lambda *_: None)
    with serve_github(GithubApi(webhooks, repository=FakeRepository())) as served:
        yield served


@pytest.fixture
def github(api: GithubApi) -> Github:
    return Github(api.url, "acme/vision", TOKEN, http_requests.send, FakeTime().patience())


def repository_of(api: GithubApi) -> FakeRepository:
    assert api.repository is not None
    return api.repository


def test_a_file_is_read_at_a_commit(api: GithubApi, github: Github) -> None:
    repository_of(api).files[SHA, "train/été 1.yaml"] = "jobs: {}\n"

    assert github.read_file("train/été 1.yaml", SHA) == "jobs: {}\n"
    assert github.read_file("relaunch.yaml", SHA) is None
    ((method, path, headers), _) = api.requests
    assert (method, path) == ("GET", f"/api/v3/repos/acme/vision/contents/train/%C3%A9t%C3%A9%201.yaml?ref={SHA}")
    assert headers["Accept"] == "application/vnd.github.raw+json"
    assert headers["X-Github-Api-Version"] == "2022-11-28"


def test_a_comment_is_made_updated_and_left(api: GithubApi, github: Github) -> None:
    done = [github.keep_comment(7, "<!-- m -->", f"<!-- m -->\n{text}") for text in ("a", "b", "b")]

    assert done == [
        "commented on the pull request",
        "updated the comment on the pull request",
        "the comment says so already",
    ]
    assert [each["body"] for each in repository_of(api).comments] == ["<!-- m -->\nb"]


def test_a_folder_is_no_file(api: GithubApi, github: Github) -> None:
    api.refuse = lambda _method, _path: (200, {"Content-Type": "application/json; charset=utf-8"}, "[]")

    with pytest.raises(ActionError, match="a folder or a submodule"):
        github.read_file("train", SHA)


def test_bytes_that_are_no_text_are_no_file(github: Github) -> None:
    binary = Github(
        github.url, github.repository, TOKEN, lambda _: http_requests.Response(200, b"\xff\xfe\x00"), github.patience
    )

    with pytest.raises(ActionError, match="no text in UTF-8"):
        binary.read_file("relaunch.yaml", SHA)


def test_a_file_longer_than_any_answer_is_not_asked_for_again(api: GithubApi, github: Github) -> None:
    repository_of(api).files[SHA, "relaunch.yaml"] = "#" * 1_100_000

    with pytest.raises(ActionError, match="longer than 1,048,576 bytes"):
        github.read_file("relaunch.yaml", SHA)
    assert len(api.requests) == 1


@pytest.mark.parametrize("body", ["{}", "null", "[[1], {}]", "no JSON"])
def test_a_list_of_something_else_has_no_comments_of_ours(api: GithubApi, github: Github, body: str) -> None:
    api.refuse = lambda method, _path: (200, {}, body) if method == "GET" else None

    if body.startswith("["):
        assert github.keep_comment(7, "m", "m") == "commented on the pull request"
    else:
        with pytest.raises(ActionError, match="no list"):
            github.keep_comment(7, "m", "m")
