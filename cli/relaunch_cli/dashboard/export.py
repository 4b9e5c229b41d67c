"""One file that shows a page of the dashboard anywhere, from a disk too: it names no address, and loads nothing."""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from html.parser import HTMLParser

LEFT_OUT = "(address left out)"
"""What stands in the file for an address that a text of the page had."""
_ADDRESS = re.compile(r"(?:https?|wss?|ftp)://[^\s\"'<>]*", re.IGNORECASE)
_REFUSED_ELEMENTS = frozenset(
    {"applet", "base", "embed", "form", "frame", "iframe", "link", "meta", "object", "portal", "script", "style"}
)
_REFERENCES = frozenset(
    {
        *("action", "background", "cite", "classid", "codebase", "data", "formaction", "href", "longdesc", "manifest"),
        *("ping", "poster", "profile", "src", "srcdoc", "srcset", "usemap", "xlink:href"),
    }
)
_OTHER_URL = re.compile(r"url\(\s*['\"]?\s*(?!#)", re.IGNORECASE)


class ExportError(ValueError):
    """The page has something that a file which loads nothing cannot have."""


class _Check(HTMLParser):
    """Refuses what loads something, or leads elsewhere."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Refuse an element, or an attribute, that loads something or leads elsewhere."""
        if tag in _REFUSED_ELEMENTS:
            raise ExportError(f"the page has an element <{tag}>: leave it out of what is exported")
        for name, value in attrs:
            is_reference = name in _REFERENCES and not (value or "").startswith("#")
            if is_reference or name.startswith("on") or name == "style" or _OTHER_URL.search(value or ""):
                raise ExportError(f"<{tag}> has {name}={value!r}: leave it out of what is exported")


def export_page(body_html: str, styles: Sequence[str], title: str) -> str:
    """Return a page of HTML with these style sheets in it, that a browser shows without a server.

    Addresses in the texts of the body are left out. Styles and scripts within it are not executed.

    Raises:
        ExportError: the body or a style sheet refers to something outside the file.
    """
    check = _Check(convert_charrefs=True)
    # With what follows it: a tag that the body does not close ends there.
    check.feed(f"{body_html}\n</body>")
    check.close()
    style = "\n".join(styles)
    if _OTHER_URL.search(style) or re.search(r"@import|</|://", style, re.IGNORECASE):
        raise ExportError("a style sheet of the page refers to something outside of it: leave that out")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_without_addresses(escape(title))}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{_without_addresses(body_html)}\n</body>\n</html>\n"
    )


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub(LEFT_OUT, text)
