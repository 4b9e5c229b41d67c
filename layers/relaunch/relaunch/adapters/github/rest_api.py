"""Requests to GitHub's REST API with a token that a person stored, as all its clients here make them.

"Getting started with the REST API", "Rate limits for the REST API" and "Best practices for using the REST API", GitHub
Docs. Redirects, as of a repository that was renamed, are not followed: the token goes to no other host.
"""

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import IO
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from relaunch.core.records import dataclass
from relaunch.ports import PermanentError, TransientError
from relaunch.ports.deliveries import TokenRefusedError

_TIMEOUT_SECONDS = 10
# A page of deliveries is some 40 KB.
_MAX_BYTES = 4 << 20
_MAX_MESSAGE = 200
_TOKEN_AT_FAULT = (401, 403, 404)
# Seconds since 1970 have ten digits until 2286.
_NUMBER = re.compile("[0-9]{1,10}")


class _FieldError(BaseModel, defer_build=True):
    message: str = ""


class _Error(BaseModel, defer_build=True):
    """An error; of its fields GitHub writes objects, or texts."""

    message: str = ""
    errors: list[_FieldError | str] = []


_ERROR = TypeAdapter(_Error)


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow no redirect: urllib would send the token along, to whatever host."""
        del req, fp, code, msg, headers, newurl


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """An answer of GitHub, or of a proxy before it."""

    status: int
    content: bytes = b""
    headers: Message = field(default_factory=Message)

    @property
    def is_taken(self) -> bool:
        """Return whether the request was taken."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """Return GitHub's message of an error with those of its fields, empty without one, as from a proxy."""
        try:
            error = _ERROR.validate_json(self.content)
        except ValidationError:
            return ""
        texts = [error.message, *(each.message for each in error.errors if isinstance(each, _FieldError))]
        return ": ".join(filter(None, texts))[:_MAX_MESSAGE]

    @property
    def is_limited(self) -> bool:
        """Return whether the rate of requests is limited."""
        says_so = (
            "Retry-After" in self.headers
            or self.headers.get("X-RateLimit-Remaining") == "0"
            or "rate limit" in self.message.lower()
        )
        return self.status == 429 or (self.status == 403 and says_so)

    @property
    def may_pass(self) -> bool:
        """Return whether the same request may be taken later: GitHub limits the rate, or has an error."""
        return self.status >= 500 or self.status == 408 or self.is_limited

    def retry_at(self, now: datetime) -> datetime | None:
        """Return when GitHub asks for the next request, None if it does not say: then in a minute at the soonest."""
        after = self.headers.get("Retry-After", "").strip()
        if _NUMBER.fullmatch(after):
            return now + timedelta(seconds=int(after))
        reset = self.headers.get("X-RateLimit-Reset", "").strip()
        if self.headers.get("X-RateLimit-Remaining") == "0" and _NUMBER.fullmatch(reset):
            return datetime.fromtimestamp(int(reset), UTC)
        return None

    @property
    def token_expires_at(self) -> datetime | None:
        """Return when the token expires, None if it never does, or GitHub does not say.

        Written as `2027-01-31 09:00:00 UTC`, or with an offset ("Managing your personal access tokens", GitHub Docs;
        https://github.com/google/go-github/issues/3708 has it with one, and the time of the answer in it).
        """
        text = self.headers.get("GitHub-Authentication-Token-Expiration", "").strip().replace(" UTC", " +0000")
        try:
            return datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)
        except ValueError:
            return None


class GithubRestApi:
    """Sends requests to one host.

    `api_url` is https://api.github.com, or https://HOST/api/v3 of a GitHub Enterprise Server. `read_token` is called
    before the first request, and again after one for which another token may be taken; `parameter` is the stack's
    parameter that names its secret.
    """

    def __init__(self, api_url: str, read_token: Callable[[], str], parameter: str) -> None:
        self._api_url = api_url.rstrip("/")
        self._read_token = read_token
        self._parameter = parameter
        self._token = ""
        self._opener = urllib.request.build_opener(_Unfollowed())

    def send(self, method: str, path: str, doing: str, body: Mapping[str, object] | None = None) -> RestAnswer:
        """Send a request to a path below the API's URL; return the answer, whatever its status.

        Raises:
            TransientError: there is no answer, after which the request may have been taken; or the secret cannot be
                read now.
            TokenRefusedError: there is no secret, it may not be read, or it is no token.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers() if body is None else {**self._headers(), "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._api_url}/{path}", content, headers, method=method)  # noqa: S310 - the template allows https only
        try:
            answer = self._exchange(request)
        except (OSError, http.client.HTTPException) as error:
            raise TransientError(f"{doing}: no answer from {urlsplit(self._api_url).netloc}: {error!r}") from error
        if answer.status in _TOKEN_AT_FAULT:
            self._token = ""
        return answer

    def _exchange(self, request: urllib.request.Request) -> RestAnswer:
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return RestAnswer(answer.status, answer.read(_MAX_BYTES), answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return RestAnswer(error.code, _read_error(error), error.headers)

    def _headers(self) -> Mapping[str, str]:
        if not self._token:
            try:
                self._token = self._read_token().strip()
            except PermanentError as error:
                raise TokenRefusedError(str(error)) from error
        if not self._token or not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise TokenRefusedError(f"the secret of {self._parameter} is no token: store the token alone, as text")
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": "relaunch",
        }


def _read_error(error: urllib.error.HTTPError) -> bytes:
    """Return the body of an error, empty if it breaks off: the status says enough."""
    try:
        return error.read(_MAX_BYTES)
    except (OSError, http.client.HTTPException):
        return b""
