"""What functions of the local world reach of the internet, in a process of their own as the emulator starts one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.internet.answers import HostRequest
from relaunch_local.internet.github import GITHUB, GithubHost
from relaunch_local.internet.internet import Internet, running_internet
from relaunch_local.internet.notice_endpoint import ENDPOINT, NoticeEndpoint
from relaunch_local.internet.routes import FUNCTION_PATH_VARIABLE

SHA = "4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"
STATUS = f"repos/acme/vision/statuses/{SHA}"
SET_STATUS = f"""
import json, sys
from relaunch.adapters.github.rest_api import GithubRestApi
body = {{"state": "pending", "context": "relaunch/resnet", "description": "queued"}}
api = GithubRestApi("https://api.github.com", lambda: sys.argv[1], "P")
print(api.send("POST", {STATUS!r}, "setting", body).status)
"""
POST_NOTICE = """
import sys
from relaunch.adapters.notices.https_sender import HttpsSender
from relaunch.adapters.notices.standard_webhook import read_secret, sign
host, secret = sys.argv[1:]
for _ in range(2):
    signed = sign(read_secret(secret), "resnet-1:9:finished", 1, b"{}")
    try:
        print(HttpsSender([host]).post(f"https://{host}/relaunch", b"{}", signed).status)
    except Exception as error:
        print(error)
"""


@pytest.fixture
def github() -> GithubHost:
    return GithubHost("github_pat_1", ["acme/vision"])


@pytest.fixture
def endpoint() -> NoticeEndpoint:
    return NoticeEndpoint(bytes(range(32)))


@pytest.fixture
def internet(github: GithubHost, endpoint: NoticeEndpoint) -> Iterator[Internet]:
    with running_internet({GITHUB: github, ENDPOINT: endpoint}) as internet:
        yield internet


@pytest.fixture
def variables(internet: Internet, tmp_path: Path) -> dict[str, str]:
    return internet.environment(tmp_path / "internet")


def run_function(code: str, variables: Mapping[str, str], *arguments: str) -> list[str]:
    """Return the lines that a process prints which has what the emulator gives to functions."""
    path = os.pathsep.join([variables[FUNCTION_PATH_VARIABLE], *sys.path])
    environment = {**variables, "PYTHONPATH": path}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_function_sets_a_status_at_github_by_its_name(github: GithubHost, variables: dict[str, str]) -> None:
    assert run_function(SET_STATUS, variables, github.token) == ["201"]
    assert [each.state for shown in github.statuses.statuses.values() for each in shown] == ["pending"]


def test_github_refuses_another_token(github: GithubHost, variables: dict[str, str]) -> None:
    assert run_function(SET_STATUS, variables, "github_pat_2") == ["401"]
    assert github.statuses.statuses == {}


def test_a_notice_that_comes_twice_is_taken_once(endpoint: NoticeEndpoint, variables: dict[str, str]) -> None:
    assert run_function(POST_NOTICE, variables, ENDPOINT, endpoint.secret) == ["200", "200"]
    assert endpoint.taken == [{}]


def test_a_wrong_signature_is_refused(endpoint: NoticeEndpoint, variables: dict[str, str]) -> None:
    other = NoticeEndpoint(bytes(32)).secret

    assert run_function(POST_NOTICE, variables, ENDPOINT, other) == ["401", "401"]
    assert endpoint.taken == []


def test_who_does_not_trust_the_authority_sends_nothing(endpoint: NoticeEndpoint, variables: dict[str, str]) -> None:
    distrusting = {name: value for name, value in variables.items() if name != "SSL_CERT_FILE"}

    answers = run_function(POST_NOTICE, distrusting, ENDPOINT, endpoint.secret)
    assert answers == [f"no answer from {ENDPOINT}: SSLCertVerificationError"] * 2
    assert endpoint.taken == []


def test_loopback_stays_a_private_network(endpoint: NoticeEndpoint, variables: dict[str, str]) -> None:
    answers = run_function(POST_NOTICE, variables, "localhost", endpoint.secret)

    assert answers == ["localhost resolves to an address of a private network, or to none"] * 2


def test_a_host_that_is_not_served_was_misdirected(internet: Internet, variables: dict[str, str]) -> None:
    code = SET_STATUS.replace("https://api.github.com", f"https://127.0.0.1:{internet.port}")

    assert run_function(code, variables, "github_pat_1") == ["421"]


def test_github_lists_the_newest_status_first_and_nothing_of_other_repositories(github: GithubHost) -> None:
    for state in ("pending", "success"):
        body = {"state": state, "context": "relaunch/resnet", "description": state}
        ask(github, "POST", f"/{STATUS}", body)

    status, listed = ask(github, "GET", f"/repos/acme/vision/commits/{SHA}/statuses")
    assert (status, [each["state"] for each in listed]) == (200, ["success", "pending"])
    assert ask(github, "GET", f"/repos/acme/other/commits/{SHA}/statuses")[0] == 404


def ask(github: GithubHost, method: str, target: str, body: object = None) -> tuple[int, Any]:
    content = json.dumps(body).encode() if body else b""
    request = HostRequest(method, target, {"authorization": f"Bearer {github.token}"}, content)
    answer = github.answer(request)
    return answer.status, json.loads(answer.body)
