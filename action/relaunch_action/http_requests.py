"""HTTP requests, with a time-out and without redirects; the proxy is that of the runner's variables."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

TIMEOUT_SECONDS = 30.0
"""As long as job_api may take."""
_LONGEST_ANSWER = 1_048_576


@dataclass(frozen=True)
class Request:
    """A request; without a body it is a GET."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def method(self) -> str:
        """Return the method."""
        return "GET" if self.body is None else "POST"


@dataclass(frozen=True)
class Response:
    """A response, whatever its status."""

    status: int
    body: bytes


class NoResponseError(Exception):
    """There was no response; whether the request had an effect is not known."""


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
            if response.length:
                raise NoResponseError("the response is cut off")
            return Response(response.status, body)
    except urllib.error.HTTPError as error:
        with error:
            return Response(error.code, _read_error(error))
    except (OSError, http.client.HTTPException) as error:
        raise NoResponseError(str(error) or type(error).__name__) from error


def _read_error(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_LONGEST_ANSWER)
    except (OSError, http.client.HTTPException):
        return b""
