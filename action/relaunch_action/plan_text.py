"""What a pull request changes of a definition file, and its plans, as HTML for a comment and the summary of a run.

The file is a stranger's: every text that comes of it is escaped and stands in `<code>` on the one line of its block,
where GitHub looks for no Markdown, mentions, references or links ("Basic writing and formatting syntax", GitHub Docs;
GFM's HTML blocks end at an empty line, and none is written).
"""

from __future__ import annotations

import hashlib
import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_action.amounts import write_usd
from relaunch_action.workflow_commands import plain

LONGEST_COMMENT = 60_000
"""Below what GitHub takes: 65,536 characters ("body is too long")."""
LONGEST_SUMMARY = 900_000
"""Below what a step may write: 1 MiB ("Workflow commands for GitHub Actions", step isolation and limits)."""
_MOST_OFFERINGS = 5
_KINDS = ("added", "changed", "removed", "unchanged")
_COLUMNS = (
    ("offering", "machine"),
    ("price_usd_per_hour", "USD per hour"),
    ("expected_cost_usd", "expected cost (USD)"),
)


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
    problems = _texts(comparison.get("problems"))
    compared = f"<p>At {_code(file.sha[:12])}, compared with {_code(file.base_sha[:12])} of the base branch. "
    if problems:
        yield f"<h3>Relaunch: {_code(file.path)} is invalid</h3>\n"
        yield f"{compared}No job of it was planned, and <code>relaunch apply</code> would refuse it:</p>\n"
        yield f"<ul>{''.join(f'<li>{_quoting(each)}</li>' for each in problems)}</ul>\n"
        return
    definitions = _objects(comparison.get("definitions"))
    yield f"<h3>Relaunch: what {_code(file.path)} would run</h3>\n"
    yield f"<p>{_count_kinds(definitions)}</p>\n"
    yield (
        f"{compared}Nothing was registered or started: after the merge, "
        f"<code>relaunch apply {_escape(file.path)}</code> registers it.</p>\n"
    )
    if base_problem := _text(comparison.get("base_problem")):
        yield f"<p>All are shown as new, for the file of the base branch is invalid: {_quoting(base_problem)}</p>\n"
    unchanged = [_text(each.get("definition")) for each in definitions if each.get("kind") == "unchanged"]
    for each in definitions:
        if each.get("kind") != "unchanged":
            yield from _render_definition(each)
    if unchanged:
        yield f"<p>Unchanged: {', '.join(map(_code, unchanged))}.</p>\n"
    if comparison.get("left_out"):
        yield f"<p>{_code(_text(comparison['left_out']))} other definitions are left out.</p>\n"


def _count_kinds(definitions: Sequence[Mapping[str, Any]]) -> str:
    """Return what becomes of how many definitions, and which have jobs that cannot run, or would wait."""
    counts = Counter(_text(each.get("kind")) for each in definitions)
    counted = ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS if counts[kind])
    text = f"Definitions of jobs: {counted or 'none'}."
    for member, consequence in (("problem", "cannot run"), ("rejection", "would wait")):
        names = [_text(each.get("definition")) for each in definitions if _plan_of(each).get(member)]
        text += f" <b>Jobs of {', '.join(map(_code, names))} {consequence}.</b>" if names else ""
    return text


def _render_definition(found: Mapping[str, Any]) -> Iterator[str]:
    name = _text(found.get("definition"))
    plan = _plan_of(found)
    yield f"<h4>{_code(name)}: {_escape(_text(found.get('kind')))}</h4>\n"
    if found.get("kind") == "removed":
        yield (
            "<p>It stays registered, and its triggers start jobs, until "
            f"<code>relaunch definitions delete {_escape(name)}</code> or "
            "<code>relaunch apply FILE --prune</code>.</p>\n"
        )
    yield from _render_outcome(plan)
    rows = [[_text(each.get(name)) for name in ("key", "before", "after")] for each in _objects(found.get("changes"))]
    if found.get("kind") == "added":
        yield from _table(("key", "value"), [[key, after] for key, _, after in rows])
    else:
        yield from _table(("key", "before", "after"), rows)
    if found.get("left_out"):
        yield f"<p>{_code(_text(found['left_out']))} other keys are left out.</p>\n"
    if plan:
        yield from _render_plan(plan)
    elif found.get("kind") != "removed":
        yield "<p>Not planned: a file is planned for its first definitions only.</p>\n"


def _render_outcome(plan: Mapping[str, Any]) -> Iterator[str]:
    """Write what would become of a job now: what a reader wants to know first."""
    if problem := _text(plan.get("problem")):
        yield f"<p><b>Its jobs cannot run:</b> {_quoting(problem)}</p>\n"
    elif rejection := _text(plan.get("rejection")):
        yield f"<p><b>Its jobs would wait:</b> {_quoting(rejection)}</p>\n"
    elif offerings := _objects(plan.get("offerings")):
        yield f"<p>A job would run on {_describe_offering(offerings[0])} now.</p>\n"


def _render_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    offerings = _objects(plan.get("offerings"))[:_MOST_OFFERINGS]
    if offerings:
        columns = [each for each in _COLUMNS if any(offering.get(each[0]) is not None for offering in offerings)]
        rows = [[write_usd(each.get(name)) for name, _ in columns] for each in offerings]
        table = "".join(_table([title for _, title in columns], rows))
        count = _code(_text(plan.get("kept")))
        # In one piece: what follows a text that was cut off here would be folded too.
        yield f"<details><summary>Machines that fit: {count}, the best first</summary>\n{table}</details>\n"
    if revision := _text(plan.get("revision_arn")):
        yield f"<p>Task definition: {_code(revision)}</p>\n"
    for notice in _texts(plan.get("notices")):
        yield f"<p><b>Note:</b> {_quoting(notice)}</p>\n"


def _plan_of(found: Mapping[str, Any]) -> Mapping[str, Any]:
    plan = found.get("plan")
    return plan if isinstance(plan, dict) else {}


def _describe_offering(offering: Mapping[str, Any]) -> str:
    price = write_usd(offering.get("price_usd_per_hour"))
    cost = write_usd(offering.get("expected_cost_usd"))
    text = _code(_text(offering.get("offering")))
    text += f" for {_code(price)} USD per hour" if price else ""
    return text + (f", about {_code(cost)} USD until it has finished" if cost else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        lines = ["".join(f"<td>{_code(cell)}</td>" for cell in row) for row in rows]
        heads = "".join(f"<th>{name}</th>" for name in head)
        yield f"<table><tr>{heads}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>\n"


def _quoting(text: str) -> str:
    """Return a text of our own that quotes the file in backticks, which would be seen within code."""
    return _code(text.replace("`", "'"))


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
