"""GitHub's REST API with the workflow's own token: files of a repository, and comments of a pull request.

Sources: "REST API endpoints for repository contents", "… for Git commits", "… for issue comments", "Rate limits for
the REST API" and "Best practices for using the REST API", GitHub Docs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable
from urllib.parse import quote, urlencode

from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.http_requests import NoResponseError, Request, Response, Send, TooLongError
from relaunch_action.retries import Patience

BOT = "github-actions[bot]"
"""Whose comments those of a workflow's own token are."""
MAX_PAGES = 10
"""A pull request with more than 1,000 comments gets no other one of ours."""
LONGEST_WAIT_SECONDS = 90.0
"""A limit that asks for a longer wait is not waited for: the runner is paid by the minute."""
_PAGE = 100
_LEAST_WAIT_SECONDS = 60.0
_NOT_FOUND = 404
_FORBIDDEN = 403
_TOO_MANY_REQUESTS = 429
_LOWEST_SERVER_ERROR = 500
_LOWEST_REFUSAL = 300
_LONGEST_MESSAGE = 200
_JSON = "application/vnd.github+json"
_RAW = "application/vnd.github.raw+json"


class GithubRefusedError(ActionError):
    """GitHub refuses the request, and would again."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _LimitedError(GithubRefusedError):
    """A limit of requests is reached; GitHub asks to wait so long."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class Comment:
    """A comment of a pull request, and the login of who wrote it."""

    number: int
    author: str
    body: str


@dataclass(frozen=True)
class Github:
    """Calls the API for one repository; `clock` tells the seconds since 1970, as limits do."""

    url: str
    repository: str
    token: str
    send: Send
    patience: Patience
    clock: Callable[[], float] = time.time

    def read_file(self, path: str, ref: str) -> str | None:
        """Return the text of a file at a commit, None if it is not there.

        Raises:
            ActionError: GitHub refuses, or the file is no text, or longer than a definition file may be.
            UnavailableError: GitHub does not answer.
        """
        place = f"contents/{quote(path, safe='/')}?{urlencode({'ref': ref})}"
        try:
            response = self.patience.insist(lambda: self._call(f"reading {path}", place, accept=_RAW))
        except GithubRefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        if response.headers.get("content-type", "").startswith("application/json"):
            raise ActionError(f"{path} is a folder or a submodule, and no definition file")
        try:
            return response.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ActionError(f"{path} is no text in UTF-8: {error}") from error

    def find_parents(self, sha: str) -> list[str]:
        """Return the parents of a commit, of a merge the base first."""
        response = self.patience.insist(lambda: self._call("reading the commit", f"git/commits/{sha}"))
        parents = _read_json(response).get("parents")
        found = [each.get("sha") for each in parents if isinstance(each, dict)] if isinstance(parents, list) else []
        return [each for each in found if isinstance(each, str)]

    def keep_comment(self, issue: int, marker: str, body: str, *, is_new_wanted: bool = True) -> str:
        """Have one comment that begins with the marker say this; return what was done.

        A comment that was made is found again, also where its answer was lost; of several, which two runs made at the
        same time, the oldest is kept. Comments of others that begin with the marker are left alone. Without
        `is_new_wanted` none is made.

        Raises:
            ActionError: GitHub refuses, or there are too many comments to find ours among.
            UnavailableError: GitHub does not answer.
        """
        return self.patience.insist(lambda: self._keep_comment(issue, marker, body, is_new_wanted=is_new_wanted))

    def _keep_comment(self, issue: int, marker: str, body: str, *, is_new_wanted: bool) -> str:
        comments, is_complete = self._list_comments(issue)
        ours = [each for each in comments if each.author == BOT and each.body.startswith(marker)]
        if not ours and not is_complete:
            raise ActionError(f"the pull request has {MAX_PAGES * _PAGE} comments or more: no other one is made")
        if not ours:
            if not is_new_wanted:
                return "there is no comment to update"
            self._call("commenting", f"issues/{issue}/comments", {"body": body})
            return "commented on the pull request"
        kept, *others = ours
        for each in others:
            self._call("deleting a comment", f"issues/comments/{each.number}", verb="DELETE")
        if kept.body == body:
            return "the comment says so already"
        self._call("updating the comment", f"issues/comments/{kept.number}", {"body": body}, verb="PATCH")
        return "updated the comment on the pull request"

    def _list_comments(self, issue: int) -> tuple[list[Comment], bool]:
        """Return the comments, the oldest first, and whether these are all."""
        found: list[Comment] = []
        for page in range(1, MAX_PAGES + 1):
            place = f"issues/{issue}/comments?per_page={_PAGE}&page={page}"
            listed = _read_list(self._call("listing the comments", place))
            found += [comment for each in listed if (comment := _read_comment(each)) is not None]
            if len(listed) < _PAGE:
                return found, True
        return found, False

    def _call(
        self, doing: str, place: str, content: Mapping[str, Any] | None = None, verb: str = "", accept: str = _JSON
    ) -> Response:
        """Send a request; wait for a limit once, if it is short."""
        try:
            return self._call_once(doing, place, content, verb, accept)
        except _LimitedError as error:
            if error.seconds > LONGEST_WAIT_SECONDS:
                raise
            self.patience.pause(error.seconds)
            return self._call_once(doing, place, content, verb, accept)

    def _call_once(self, doing: str, place: str, content: Mapping[str, Any] | None, verb: str, accept: str) -> Response:
        headers = {
            "accept": accept,
            "authorization": f"Bearer {self.token}",
            "user-agent": "relaunch-action",
            "x-github-api-version": "2022-11-28",
        }
        body = None if content is None else json.dumps(content).encode()
        headers.update({} if body is None else {"content-type": "application/json"})
        request = Request(f"{self.url}/repos/{quote(self.repository, safe='/')}/{place}", headers, body, verb)
        try:
            response = self.send(request)
        except TooLongError as error:
            raise ActionError(f"{doing} at GitHub: {error}") from error
        except NoResponseError as error:
            raise UnavailableError(f"{doing} at GitHub: no answer: {error}") from error
        self._check(response, doing)
        return response

    def _check(self, response: Response, doing: str) -> None:
        status = response.status
        if status < _LOWEST_REFUSAL:
            return
        message = _read_message(response)
        text = f"{doing} at GitHub: status {status}" + (f": {message}" if message else "")
        if status in (_FORBIDDEN, _TOO_MANY_REQUESTS) and _is_limit(response, message):
            raise _LimitedError(text, self._wait_of(response))
        if status >= _LOWEST_SERVER_ERROR:
            raise UnavailableError(text)
        raise GithubRefusedError(text, status)

    def _wait_of(self, response: Response) -> float:
        """Return how long a limit asks to wait: `retry-after`, else until it is reset, else a minute."""
        headers = response.headers
        if (seconds := headers.get("retry-after", "")).isdecimal():
            return float(seconds)
        if headers.get("x-ratelimit-remaining") == "0" and (reset := headers.get("x-ratelimit-reset", "")).isdecimal():
            return max(0.0, float(reset) - self.clock())
        return _LEAST_WAIT_SECONDS


def _is_limit(response: Response, message: str) -> bool:
    headers = response.headers
    return (
        response.status == _TOO_MANY_REQUESTS
        or "retry-after" in headers
        or headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in message.lower()
    )


def _read_message(response: Response) -> str:
    """Return GitHub's own message, empty without one, as from a proxy."""
    try:
        message = json.loads(response.body)["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return str(message)[:_LONGEST_MESSAGE]


def _read_json(response: Response) -> Mapping[str, Any]:
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _read_list(response: Response) -> list[Any]:
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise UnavailableError("GitHub's list of comments is no list")
    return found


def _read_comment(value: Any) -> Comment | None:
    if not isinstance(value, dict) or not isinstance(value.get("id"), int):
        return None
    user = value.get("user")
    author = user.get("login") if isinstance(user, dict) else None
    body = value.get("body")
    return Comment(value["id"], author if isinstance(author, str) else "", body if isinstance(body, str) else "")
