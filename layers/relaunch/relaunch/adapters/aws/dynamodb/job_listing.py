"""Lists of jobs in the jobs table, by their summaries; `relaunch ps` imports no more of the table than this."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from relaunch.adapters.aws.dynamodb.formats import newer_if_invalid
from relaunch.adapters.aws.dynamodb.table import Item, JobsTable, key, text
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import (
    CostBasis,
    JobState,
    JobSummary,
    NotedProgress,
    OpenCharge,
    RunningTask,
    Waiting,
    WaitReason,
)
from relaunch.core.offerings.offering_key import OfferingKey
from relaunch.ports import PermanentError

if TYPE_CHECKING:
    from relaunch.core.jobs.cost import CostEntry
    from relaunch.core.jobs.runs import JobRuns

LISTING = "JOBS"
OPEN = "OPEN"
"""The key in the index `due` of jobs that are not over."""
UNSENT = "UNSENT"
"""The key in it of jobs that are over, and have changes that EventBridge does not have."""

T = TypeVar("T")


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

    def load_costs(self, first: date, last: date) -> "list[CostEntry]":
        from relaunch.adapters.aws.dynamodb.costs import load_costs  # noqa: PLC0415 - of costs only

        return load_costs(self._table, first, last)

    def load_runs(self, job_id: str) -> "JobRuns | None":
        from relaunch.adapters.aws.dynamodb.job_runs import read_runs  # noqa: PLC0415 - of logs only

        # JOB sorts after ATTEMPT#…, and before SELECTION#… and TIMELINE#…, of which logs need nothing. Of a write in
        # between the newest attempt is read or not, and either is right.
        values = {":pk": text(f"JOB#{job_id}"), ":first": text("ATTEMPT#"), ":last": text("JOB")}
        found = list(self._table.query("pk = :pk AND sk BETWEEN :first AND :last", values))
        return read_runs(found) if found and found[-1]["sk"]["S"] == "JOB" else None


def job_id_of(value: str) -> str:
    """Return the job id of a key."""
    return value.removeprefix("JOB#")


def job_ids(found: Iterable[Item]) -> list[str]:
    """Return the ids of the jobs whose items were found."""
    return [job_id_of(item["pk"]["S"]) for item in found]


def read_summary(item: Mapping[str, Any]) -> JobSummary:
    """Return the summary of a JOB item, without pydantic, whose import takes longer than a list of jobs.

    Raises:
        TransientError: this release cannot read it.
    """
    with newer_if_invalid(item):
        try:
            return _read(JobSummary, json.loads(item["summary"]["S"]))
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _read(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return a record with the fields of it that are given, each of its type; unknown ones are left out."""
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]  # all of them are dataclasses
    return kind(**{name: _READERS[kind].get(name, _as_it_is)(value) for name, value in given.items() if name in known})


def _as_it_is(value: Any) -> Any:
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{value!r} is neither text nor number")
    return value


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_time = datetime.fromisoformat
_READERS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    JobSummary: {
        "state": JobState,
        "accepted_at": _time,
        "waiting": _optional(partial(_read, Waiting)),
        "offering": _optional(partial(_read, OfferingKey)),
        "ended_at": _optional(_time),
        "cost_basis": CostBasis,
        "running": _optional(partial(_read, RunningTask)),
        "open_charges": lambda given: tuple(_read(OpenCharge, each) for each in given),
        "state_since": _optional(_time),
        "noted": _optional(partial(_read, NotedProgress)),
    },
    Waiting: {"reason": WaitReason, "since": _time, "until": _optional(_time)},
    OfferingKey: {"purchase": PurchaseOption},
    RunningTask: {"since": _time, "basis": CostBasis},
    NotedProgress: {
        "at": _time,
        "finishes_at": _optional(_time),
        "stalled_since": _optional(_time),
        "gaps_seconds": lambda given: tuple(float(each) for each in given),
    },
    OpenCharge: {"at": _time, "until": _optional(_time)},
}
"""How the fields of each record are read that are neither text nor number."""


def _cursor(item: Item) -> str:
    position = [item["pk"]["S"], item["accepted_at"]["S"]]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _read_cursor(cursor: str) -> Item:
    try:
        pk, accepted_at = json.loads(base64.urlsafe_b64decode(cursor))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise PermanentError(f"{cursor!r} is no cursor of a list of jobs") from error
    return key(str(pk), "JOB") | {"listing": text(LISTING), "accepted_at": text(str(accepted_at))}
