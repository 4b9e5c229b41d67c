"""Lists of jobs in the jobs table, by their summaries; `relaunch ps` imports no more of the table than this."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter

from relaunch.adapters.aws.dynamodb.formats import newer_if_invalid
from relaunch.adapters.aws.dynamodb.table import Item, JobsTable, key, text
from relaunch.core.jobs.state import JobSummary
from relaunch.late import made_late
from relaunch.ports import PermanentError

LISTING = "JOBS"
OPEN = "OPEN"
"""The key in the index `due` of jobs that are not over."""
UNSENT = "UNSENT"
"""The key in it of jobs that are over, and have changes that EventBridge does not have."""

_SUMMARY = made_late(lambda: TypeAdapter(JobSummary))


class DynamoDbJobListing:
    """Implements JobListing."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def list_jobs(self, limit: int, cursor: str | None = None) -> tuple[list[JobSummary], str | None]:
        # One more item than `limit` shows whether there is a next page.
        found = list(
            self._table.query(
                "listing = :listing",
                {":listing": text(LISTING)},
                index="listing",
                limit=limit + 1,
                newest_first=True,
                start=_read_cursor(cursor) if cursor else None,
                ProjectionExpression="pk, sk, accepted_at, summary",
            )
        )
        page = found[:limit]
        return [read_summary(item) for item in page], _cursor(page[-1]) if len(found) > limit else None

    def load_open(self, limit: int) -> list[str]:
        return job_ids(self._table.query("due = :due", {":due": text(OPEN)}, index="due", limit=limit))


def job_id_of(value: str) -> str:
    """Return the job id of a key."""
    return value.removeprefix("JOB#")


def job_ids(found: Iterable[Item]) -> list[str]:
    """Return the ids of the jobs whose items were found."""
    return [job_id_of(item["pk"]["S"]) for item in found]


def summary_text(summary: JobSummary) -> dict[str, Any]:
    """Return a summary as an attribute of a JOB item."""
    return text(_SUMMARY.dump_json(summary).decode())


def read_summary(item: Mapping[str, Any]) -> JobSummary:
    """Return the summary of a JOB item."""
    with newer_if_invalid(item):
        return _SUMMARY.validate_json(item["summary"]["S"])


def _cursor(item: Item) -> str:
    position = [item["pk"]["S"], item["accepted_at"]["S"]]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _read_cursor(cursor: str) -> Item:
    try:
        pk, accepted_at = json.loads(base64.urlsafe_b64decode(cursor))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise PermanentError(f"{cursor!r} is no cursor of a list of jobs") from error
    return key(str(pk), "JOB") | {"listing": text(LISTING), "accepted_at": text(str(accepted_at))}
