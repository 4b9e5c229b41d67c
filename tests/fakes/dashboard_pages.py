"""Pages of the dashboard, as a browser that was let in is answered, and the text that it shows."""

from html import unescape
from re import sub
from typing import Any

from relaunch_cli.dashboard.application import Dashboard
from relaunch_cli.dashboard.guard import Guard
from relaunch_cli.dashboard.http_messages import Request, Response

HOSTILE = "<script>alert(1)</script>\x1b[2J"
"""A name that would be a script in a page, and a command to a terminal."""


class Pages:
    """The pages of a connection."""

    def __init__(self, connection: Any) -> None:
        self._guard = Guard(8300)
        self._dashboard = Dashboard(connection, self._guard, "relaunch")

    def answer(self, target: str) -> Response:
        """Return what a page answers."""
        headers = (("host", "127.0.0.1:8300"), ("cookie", self._guard.cookie.partition(";")[0]))
        return self._dashboard.answer(Request("GET", target, headers))

    def html(self, target: str) -> str:
        """Return a page that is there."""
        response = self.answer(target)
        html = response.body.decode()
        assert response.status == 200, text_of(html)
        return html

    def text(self, target: str) -> str:
        """Return what a page shows."""
        return text_of(self.html(target))


def text_of(html: str) -> str:
    """Return the text of the content of a page, without its elements, with one space between words."""
    main = html.partition("<main")[2].partition("</main>")[0]
    words = " ".join(unescape(sub("<[^>]*>", " ", f"<main{main}")).split())
    return sub(r" ([,;])", r"\1", words)
