"""HTTP requests, with a time-out and without redirects; the proxy is that of the runner's variables."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

TIMEOUT_SECONDS = 30.0
"""As long as job_api may take."""
_LONGEST_ANSWER = 1_048_576


@dataclass(frozen=True)
class Request:
    """A request; without a body and a verb it is a GET, with a body a POST."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    verb: str = ""

    @property
    def method(self) -> str:
        """Return the method."""
        return self.verb or ("GET" if self.body is None else "POST")


@dataclass(frozen=True)
class Response:
    """A response, whatever its status; the names of its headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


class NoResponseError(Exception):
    """There was no response; whether the request had an effect is not known."""


class TooLongError(NoResponseError):
    """The response is longer than any that is read."""


Send = Callable[[Request], Response]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect a response: the signature of a request is for its URL."""

    def redirect_request(self, *_: Any) -> None:
        return None


def send(request: Request) -> Response:
    """Send a request.

    Raises:
        NoResponseError: there was no response, or not all of it.
    """
    made = urllib.request.Request(  # noqa: S310 - the inputs allow https only, and http on loopback
        request.url, data=request.body, headers=dict(request.headers), method=request.method
    )
    try:
        with urllib.request.build_opener(_NoRedirects).open(made, timeout=TIMEOUT_SECONDS) as response:
            body = response.read(_LONGEST_ANSWER)
            # Reading part of a body does not notice that its connection has ended.
            if len(body) == _LONGEST_ANSWER and response.read(1):
                raise TooLongError(f"the response is longer than {_LONGEST_ANSWER:,} bytes")
            if response.length:
                raise NoResponseError("the response is cut off")
            return Response(response.status, body, _lower(response.headers.items()))
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, _read_error(error), _lower(error.headers.items() if error.headers else ()))
    except (OSError, http.client.HTTPException) as error:
        raise NoResponseError(str(error) or type(error).__name__) from error


def _lower(headers: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in headers}


def _read_error(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_LONGEST_ANSWER)
    except (OSError, http.client.HTTPException):
        return b""
