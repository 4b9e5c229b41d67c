"""Output of `relaunch webhook`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.text import Text

from relaunch_cli.views.formatting import format_time
from relaunch_cli.views.table import PlainTable, key_values


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope, its URL, and until when its previous secret is accepted, None if none is."""

    scope: str
    url: str
    previous_until: datetime | None = None

    def to_json(self) -> Mapping[str, Any]:
        """Return the row as JSON."""
        until = self.previous_until.isoformat() if self.previous_until else None
        return {"scope": self.scope, "url": self.url, "previous_accepted_until": until}


def render_scopes(rows: Sequence[ScopeRow], now: datetime) -> PlainTable:
    """Return the table of `list`."""
    table = PlainTable("SCOPE", "PREVIOUS UNTIL (UTC)", "URL", optional=("PREVIOUS UNTIL (UTC)",))
    for row in rows:
        table.add_row(row.scope, format_time(row.previous_until, now) if row.previous_until else "-", Text(row.url))
    return table


def render_secret(row: ScopeRow, secret: str) -> PlainTable:
    """Return a new secret with what GitHub asks for."""
    table = key_values()
    table.add_row("Payload URL", Text(row.url))
    table.add_row("Secret", Text(secret))
    table.add_row("Content type", "application/json")
    return table
