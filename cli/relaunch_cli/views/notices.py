"""Output of `relaunch notices`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_cli.views.table import PlainTable


@dataclass(frozen=True, slots=True)
class ReceiverRow:
    """A receiver, without its address and its secrets; `problem` is why it cannot be used, empty if it can."""

    name: str
    kind: str = ""
    notices: tuple[str, ...] = ()
    is_for_all: bool = True
    problem: str = ""

    def to_json(self) -> Mapping[str, Any]:
        """Return the row as JSON."""
        return {
            "name": self.name,
            "kind": self.kind or None,
            "notices": list(self.notices),
            "is_for_all": self.is_for_all,
            "problem": self.problem or None,
        }


@dataclass(frozen=True, slots=True)
class TestRow:
    """A notice that was sent to try a receiver out: `outcome` is `delivered`, `postponed` or `refused`."""

    __test__ = False

    notice: str
    outcome: str
    answer: str

    def to_json(self) -> Mapping[str, Any]:
        """Return the row as JSON."""
        return {"notice": self.notice, "outcome": self.outcome, "answer": self.answer or None}


def render_receivers(rows: Sequence[ReceiverRow]) -> PlainTable:
    """Return the table of `list`."""
    table = PlainTable("RECEIVER", "KIND", "OF", "NOTICES")
    for row in rows:
        of = "all definitions" if row.is_for_all else "those that name it"
        table.add_row(row.name, row.kind or "-", of, row.problem or ", ".join(row.notices))
    return table


def render_tests(rows: Sequence[TestRow]) -> PlainTable:
    """Return the table of `test`."""
    table = PlainTable("NOTICE", "OUTCOME", "ANSWER")
    for row in rows:
        table.add_row(row.notice, row.outcome, row.answer or "-")
    return table
