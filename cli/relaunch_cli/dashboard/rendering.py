"""Templates: every value is text, which is escaped (Jinja2's autoescape), and has no control characters."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from relaunch_cli.dashboard.export import export_page
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_cost, format_count, format_duration

ASSETS: Mapping[str, str] = {
    "style.css": "text/css; charset=utf-8",
    "drawings.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages load, and their types."""
_CODE = re.compile("`([^`]+)`")


def render(template: str, values: Mapping[str, object]) -> str:
    """Return a page."""
    return _environment().get_template(template).render(values)


def render_file(template: str, values: Mapping[str, object], title: str) -> str:
    """Return what a page shows as one file, which loads nothing and names no address."""
    styles = [read_asset(name).decode() for name in ASSETS if name.endswith(".css")]
    return export_page(f"<main>{render(template, values)}</main>", styles, title)


@cache
def read_asset(name: str) -> bytes:
    """Return a file of ASSETS."""
    return resources.files(__package__).joinpath("assets", name).read_bytes()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_one_line,
    )
    environment.filters |= {
        "duration": format_duration,
        "cost": format_cost,
        "count": format_count,
        "when": _when,
        "with_code": _with_code,
    }
    return environment


def _one_line(value: object) -> object:
    if value is None:
        return ""
    # Markup is a text too, of the templates themselves.
    return one_line(value) if type(value) is str else value


def _with_code(text: str) -> Markup:
    """Return a text whose words in backticks are code, as commands are."""
    parts = _CODE.split(one_line(text))
    shown = (Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts))
    return Markup("").join(shown)


def _when(at: datetime | None, now: datetime) -> str:
    """Return a time in UTC as an element of a page, with its date unless it is today's."""
    if at is None:
        return Markup("&ndash;")
    at = at.astimezone(UTC)
    shown = f"{at:%H:%M:%S}" if at.date() == now.astimezone(UTC).date() else f"{at:%Y-%m-%d %H:%M}"
    distance = f"in {format_duration(at - now)}" if at > now else f"{format_duration(max(now - at, timedelta(0)))} ago"
    return Markup('<time datetime="{0}" title="{0}, {2}">{1}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%SZ}", shown, distance
    )
