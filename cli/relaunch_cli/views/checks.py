"""Output of `relaunch doctor`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.checks import Check, Verdict
from relaunch_cli.views.table import PlainTable

_STYLES = {Verdict.OK: "green", Verdict.PROBLEM: "red", Verdict.UNKNOWN: "yellow"}


def render_checks(checks: Sequence[Check]) -> RenderableType:
    """Return the checks, then what to do about those that are not ok, then their numbers."""
    table = PlainTable("CHECK", "", "FOUND", prose="wrapped")
    for check in checks:
        table.add_row(Text(check.name), Text(check.verdict, _STYLES[check.verdict]), Text(check.text))
    to_do = [check for check in checks if check.to_do and check.verdict is not Verdict.OK]
    parts: list[RenderableType] = [table]
    for check in to_do:
        parts += [Text(""), Text(f"{check.name}:"), _indented(check.to_do)]
    return Group(*parts, Text(""), Text(summarize(checks)))


def _indented(to_do: str) -> Text:
    # Lines are whole: they have commands, which are copied.
    return Text("\n".join(f"  {line}" for line in to_do.splitlines()), no_wrap=True, overflow="ignore")


def summarize(checks: Sequence[Check]) -> str:
    """Return how many checks found what, in one line."""
    counts = Counter(check.verdict for check in checks)
    problems = counts[Verdict.PROBLEM]
    found = f"{problems} problem{'' if problems == 1 else 's'}" if problems else "no problem"
    asides = f", {counts[Verdict.UNKNOWN]} not known" if counts[Verdict.UNKNOWN] else ""
    return f"{found} in {len(checks)} checks{asides}"


def checks_json(checks: Sequence[Check]) -> Mapping[str, Any]:
    """Return the checks as JSON."""
    rows = [
        {"name": each.name, "verdict": str(each.verdict), "text": each.text, "to_do": each.to_do or None}
        for each in checks
    ]
    return {"checks": rows, "problems": sum(each.verdict is Verdict.PROBLEM for each in checks)}
