"""The summary of a step as HTML, in which no text of a job or a plan is markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relaunch_action.amounts import write_usd
from relaunch_action.job_api import JobStatus
from relaunch_action.workflow_commands import plain


def summarize_job(job: JobStatus) -> str:
    """Return the summary of a job."""
    rows = [
        ("state", job.state),
        ("reason", job.reason),
        ("attempt", "" if job.attempt is None else str(job.attempt)),
        ("offering", job.offering),
        ("interruptions", str(job.interruptions)),
        ("failures", str(job.failures)),
        ("cost so far (USD)", job.cost),
        ("task definition", job.revision_arn),
    ]
    return _title(f"Relaunch: job {job.job_id}") + _table((), [row for row in rows if row[1]])


def summarize_plan(plan: Mapping[str, Any]) -> str:
    """Return the summary of a plan."""
    parts = [_title(f"Relaunch: plan of {_text(plan.get('definition'))}, nothing was started")]
    parts += [_paragraph(f"It cannot run: {_text(plan['problem'])}")] if plan.get("problem") else []
    parts += [_paragraph(f"It would wait: {_text(plan['rejection'])}")] if plan.get("rejection") else []
    if offerings := _objects(plan.get("offerings")):
        names = ("offering", "price_usd_per_hour", "expected_cost_usd")
        rows = [[write_usd(each.get(name)) for name in names] for each in offerings]
        parts.append(_table(("offering", "USD per hour", "expected cost (USD)"), rows))
        parts.append(_paragraph(f"{_text(plan.get('kept'))} offerings satisfy it; the best come first."))
    if rejections := _objects(plan.get("rejections")):
        rows = [[_text(each.get(name)) for name in ("filter", "rejected")] for each in rejections]
        parts.append(_table(("filter", "rejected offerings"), rows))
    notices = plan.get("notices")
    parts += [_paragraph(_text(each)) for each in notices] if isinstance(notices, list) else []
    parts.append(_paragraph(f"Task definition: {_text(plan.get('revision_arn')) or 'none'}"))
    return "".join(parts)


def _title(text: str) -> str:
    return f"<h3>{_escape(text)}</h3>\n"


def _paragraph(text: str) -> str:
    return f"<p>{_escape(text)}</p>\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row("th", head)] if head else []
    lines += [_row("td", row) for row in rows]
    return f"<table>{''.join(lines)}</table>\n"


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _escape(text: str) -> str:
    """Return a text that is neither HTML nor, without a line of its own, Markdown."""
    return html.escape(plain(text))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
