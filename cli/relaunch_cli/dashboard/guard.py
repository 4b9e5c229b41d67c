"""Which requests the dashboard takes: those of the page that it served itself, to whoever has the token of the run.

Any page in the same browser can reach a loopback port, and so can any program of any user of the machine. A cookie
alone would not do: browsers send those of 127.0.0.1 to every port of it. So the page must also be the one that asks
(Fetch Metadata Request Headers and Origin, which no script can set), and a form has a secret of its own.
"""

import hmac
import secrets
from dataclasses import dataclass, field

from relaunch_cli.dashboard.http_messages import Request

_OWN_PAGE = frozenset({"", "none", "same-origin"})
FORM_FIELD = "form-token"
"""The field of each form that has the secret of forms."""


class RefusedError(Exception):
    """The request is refused, with a sentence that says why."""


@dataclass(frozen=True)
class Guard:
    """Takes requests to a port on loopback that come from its own pages, from whoever was given the token."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def url(self) -> str:
        """Return the address that lets a browser in."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Return the cookie of a browser that was let in: no script reads it, and no other site sends it."""
        return f"{self._cookie_name}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    @property
    def _cookie_name(self) -> str:
        return f"relaunch-dashboard-{self.port}"

    @property
    def _hosts(self) -> tuple[str, ...]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def is_entry(self, request: Request) -> bool:
        """Return whether a browser opens the address with the token, which may be a link anywhere.

        Raises:
            RefusedError: it is not to this server, or the token is another.
        """
        self._check_host(request)
        token = request.parameter("token")
        if request.method != "GET" or request.path or not token:
            return False
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise RefusedError("the token is of another run: open the address that `relaunch dashboard` printed last")
        return True

    def check(self, request: Request) -> None:
        """Check a request that is no entry.

        Raises:
            RefusedError: it is not from a page of this server, or its browser was not let in.
        """
        self._check_host(request)
        if request.header("sec-fetch-site") not in _OWN_PAGE or self._names_other_origin(request):
            raise RefusedError("only pages of this server may ask it")
        cookies = (each.strip().partition("=") for each in request.header("cookie").split(";"))
        given = next((value for name, _, value in cookies if name == self._cookie_name), "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise RefusedError("open the address that `relaunch dashboard` printed: it has the token of this run")
        if request.method == "POST" and not self._is_own_form(request):
            raise RefusedError("the form is of another run: load the page again")

    def _check_host(self, request: Request) -> None:
        # A name that is rebound to a loopback address comes as Host.
        if request.header("host").lower() not in self._hosts:
            raise RefusedError(f"this server is called {' or '.join(self._hosts)} only")

    def _names_other_origin(self, request: Request) -> bool:
        has_origin = any(name == "origin" for name, _ in request.headers)
        return has_origin and request.header("origin") != f"http://{request.header('host').lower()}"

    def _is_own_form(self, request: Request) -> bool:
        return hmac.compare_digest(request.field(FORM_FIELD).encode(), self.form_token.encode())
