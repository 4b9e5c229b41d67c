"""A request as it came, and what is answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from urllib.parse import parse_qs, unquote

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
_MOST_FIELDS = 200
# Nothing but this server's own files, and no other page may frame it ("Content Security Policy Level 3", W3C).
_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        # No other site learns an address. With "no-referrer" the Origin of a form would be "null", also to this server
        # (Fetch standard, "append a request `Origin` header").
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)


@dataclass(frozen=True)
class Request:
    """A request; names of headers are in lower case, and a header that came twice has both values."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the value of a header; empty unless there is exactly one."""
        values = [value for each, value in self.headers if each == name]
        return values[0] if len(values) == 1 else ""

    @cached_property
    def path(self) -> tuple[str, ...]:
        """Return the parts of the path, decoded: an encoded slash divides none of them."""
        # urlsplit raises errors for targets such as `//[`.
        path = self.target.partition("?")[0].partition("#")[0]
        return tuple(unquote(part) for part in path.split("/") if part)

    @cached_property
    def query(self) -> Mapping[str, Sequence[str]]:
        """Return the parameters of the query."""
        return _parse(self.target.partition("?")[2])

    @cached_property
    def form(self) -> Mapping[str, Sequence[str]]:
        """Return the fields of a form; one that was left empty is a field too."""
        return _parse(self.body.decode("utf-8", "replace"), keeps_empty=True)

    def parameter(self, name: str) -> str:
        """Return the first value of a parameter of the query, without spaces around it; empty if there is none."""
        return self.query.get(name, [""])[0].strip()

    def field(self, name: str) -> str:
        """Return the first value of a field of the form; empty if there is none."""
        return self.form.get(name, [""])[0]


def _parse(text: str, *, keeps_empty: bool = False) -> Mapping[str, Sequence[str]]:
    try:
        return parse_qs(text, keeps_empty, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError:
        return {}


@dataclass(frozen=True)
class Response:
    """An answer; the headers of every answer are added when it is sent."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> Mapping[str, str]:
        """Return the headers that are sent."""
        return {**_HEADERS, "Content-Type": self.content_type, **self.headers}
