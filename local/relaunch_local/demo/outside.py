"""GitHub and an endpoint of notices, which know nothing of Relaunch: what they have of the jobs is read from them."""

import http.client
import json
import secrets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from relaunch_local.demo.delivery import PUSH, TIMEOUT_SECONDS
from relaunch_local.internet.github import GITHUB, GithubHost
from relaunch_local.internet.internet import Internet, running_internet
from relaunch_local.internet.notice_endpoint import ENDPOINT, NoticeEndpoint

Status = Mapping[str, Any]


@dataclass(frozen=True)
class Outside:
    """GitHub and the endpoint, as they are served, and the commit of the push."""

    internet: Internet
    github: GithubHost
    endpoint: NoticeEndpoint
    repository: str
    sha: str

    def read_statuses(self) -> Sequence[Status]:
        """Return the statuses of the commit, the oldest first, as GitHub's API lists them."""
        trusted = ssl.create_default_context(cadata=self.internet.authority.certificate)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.internet.port, timeout=TIMEOUT_SECONDS, context=trusted
        )
        headers = {"Host": GITHUB, "Authorization": f"Bearer {self.github.token}"}
        try:
            connection.request("GET", f"/repos/{self.repository}/commits/{self.sha}/statuses", headers=headers)
            listed: list[Status] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return listed[::-1]


@contextmanager
def running_outside() -> Iterator[Outside]:
    """Serve GitHub, with the repository of the push, and the endpoint."""
    push = json.loads(PUSH.read_text())
    repository = push["repository"]["full_name"]
    github = GithubHost(f"github_pat_{secrets.token_hex(16)}", [repository])
    endpoint = NoticeEndpoint(secrets.token_bytes(32))
    with running_internet({GITHUB: github, ENDPOINT: endpoint}) as internet:
        yield Outside(internet, github, endpoint, repository, push["after"])
