"""What a pull request changes of a definition file, and its plans, as HTML for a comment and the summary of a run.

The file is a stranger's: every text that comes of it is escaped and stands in `<code>` on the one line of its block,
where GitHub looks for no Markdown, mentions, references or links ("Basic writing and formatting syntax", GitHub Docs;
GFM's HTML blocks end at an empty line, and none is written).
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_action.workflow_commands import plain

LONGEST_COMMENT = 60_000
"""Below what GitHub takes: 65,536 characters ("body is too long")."""
LONGEST_SUMMARY = 900_000
"""Below what a step may write: 1 MiB ("Workflow commands for GitHub Actions", step isolation and limits)."""
_MOST_OFFERINGS = 5


@dataclass(frozen=True)
class PlannedFile:
    """A definition file, the commits that it is compared at, and the page of the workflow run."""

    path: str
    sha: str
    base_sha: str
    run_url: str


def marker_of(repository: str, path: str, url: str) -> str:
    """Return what our comment on a file begins with, which GitHub does not show."""
    digest = hashlib.sha256("\n".join((repository, path, url)).encode()).hexdigest()
    return f"<!-- relaunch-plan:{digest[:16]} -->"


def render_comparison(comparison: Mapping[str, Any], file: PlannedFile, longest: int, marker: str = "") -> str:
    """Return the text of a comparison, its last parts left out where it would be longer."""
    text = f"{marker}\n" if marker else ""
    rest = (
        f'<p>The rest is in the summary of <a href="{_escape(file.run_url)}">the workflow run</a>.</p>\n'
        if marker
        else "<p>The rest is left out: it is too long.</p>\n"
    )
    for block in _render(comparison, file):
        if len(text.encode()) + len(block.encode()) + len(rest.encode()) > longest:
            return text + rest
        text += block
    return text


def render_fork(path: str) -> str:
    """Return the text for a pull request that gets no plan, because its branch is in another repository."""
    return (
        f"<h3>Relaunch: no plan of {_code(path)}</h3>\n"
        "<p>The pull request comes from a fork. GitHub gives its workflow neither a token for AWS nor one that may "
        f"comment, so nothing was planned. <code>relaunch plan {_escape(path)}</code> plans it for whoever reviews it, "
        "and so does a pull request from a branch of this repository.</p>\n"
    )


def _render(comparison: Mapping[str, Any], file: PlannedFile) -> Iterator[str]:
    yield f"<h3>Relaunch: what {_code(file.path)} would run</h3>\n"
    yield (
        f"<p>At {_code(file.sha[:12])}, compared with {_code(file.base_sha[:12])} of the base branch. Nothing was "
        "registered or started.</p>\n"
    )
    problems = _texts(comparison.get("problems"))
    if problems:
        yield "<p>The file is invalid:</p>\n"
        yield f"<ul>{''.join(f'<li>{_code(each)}</li>' for each in problems)}</ul>\n"
        return
    if base_problem := _text(comparison.get("base_problem")):
        yield f"<p>All are shown as new, for the file of the base branch is invalid: {_code(base_problem)}</p>\n"
    definitions = _objects(comparison.get("definitions"))
    unchanged = [_text(each.get("definition")) for each in definitions if each.get("kind") == "unchanged"]
    for each in definitions:
        if each.get("kind") != "unchanged":
            yield from _render_definition(each)
    if unchanged:
        yield f"<p>Unchanged: {', '.join(map(_code, unchanged))}.</p>\n"
    if comparison.get("left_out"):
        yield f"<p>{_code(_text(comparison['left_out']))} other definitions are left out.</p>\n"


def _render_definition(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h4>{_code(_text(found.get('definition')))}: {_escape(_text(found.get('kind')))}</h4>\n"
    rows = [[_text(each.get(name)) for name in ("key", "before", "after")] for each in _objects(found.get("changes"))]
    if found.get("kind") == "added":
        yield from _table(("key", "value"), [[key, after] for key, _, after in rows])
    else:
        yield from _table(("key", "before", "after"), rows)
    if found.get("left_out"):
        yield f"<p>{_code(_text(found['left_out']))} other keys are left out.</p>\n"
    plan = found.get("plan")
    if isinstance(plan, dict):
        yield from _render_plan(plan)
    elif found.get("kind") != "removed":
        yield "<p>Not planned: a file is planned for its first definitions only.</p>\n"


def _render_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    if problem := _text(plan.get("problem")):
        yield f"<p><b>Its jobs can not run:</b> {_code(problem)}</p>\n"
    elif rejection := _text(plan.get("rejection")):
        yield f"<p><b>Its jobs would wait:</b> {_code(rejection)}</p>\n"
    offerings = _objects(plan.get("offerings"))[:_MOST_OFFERINGS]
    if offerings:
        yield f"<p>A job would run on {_describe_offering(offerings[0])} now.</p>\n"
        names = ("offering", "price_usd_per_hour", "expected_cost_usd")
        rows = [[_text(each.get(name)) for name in names] for each in offerings]
        yield from _table(("offering", "USD per hour", "expected cost (USD)"), rows)
        yield f"<p>{_code(_text(plan.get('kept')))} offerings satisfy it; the best come first.</p>\n"
    if revision := _text(plan.get("revision_arn")):
        yield f"<p>Task definition: {_code(revision)}</p>\n"
    for notice in _texts(plan.get("notices")):
        yield f"<p>{_code(notice)}</p>\n"


def _describe_offering(offering: Mapping[str, Any]) -> str:
    price = offering.get("price_usd_per_hour")
    cost = offering.get("expected_cost_usd")
    text = _code(_text(offering.get("offering")))
    text += "" if price is None else f" for {_code(_text(price))} USD per hour"
    return text + ("" if cost is None else f", about {_code(_text(cost))} USD until it has finished")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        lines = ["".join(f"<td>{_code(cell)}</td>" for cell in row) for row in rows]
        heads = "".join(f"<th>{name}</th>" for name in head)
        yield f"<table><tr>{heads}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>\n"


def _code(text: str) -> str:
    return f"<code>{_escape(text)}</code>" if text else ""


def _escape(text: str) -> str:
    return html.escape(plain(text))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _texts(value: object) -> list[str]:
    return [_text(each) for each in value] if isinstance(value, list) else []


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
