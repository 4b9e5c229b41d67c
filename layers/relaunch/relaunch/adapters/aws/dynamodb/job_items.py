"""Conversion of jobs to items of the jobs table and back."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.dynamodb.job_body import JobBody, write_job_body
from relaunch.adapters.aws.dynamodb.job_listing import LISTING, OPEN, UNSENT
from relaunch.adapters.aws.dynamodb.table import (
    READ_UNIT_BYTES,
    Item,
    body_attribute,
    epoch,
    key,
    number,
    read_item,
    stamp,
    text,
)
from relaunch.adapters.aws.dynamodb.unknown_fields import Body
from relaunch.adapters.stored_type import StoredType
from relaunch.core.jobs.attempt import Attempt, Placement
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.job import (
    Job,
    TimelineEntry,
    due_at,
    is_over,
    may_have_instance,
    selected_placement,
    waited_slot,
)
from relaunch.core.jobs.state import JobSummary
from relaunch.core.lifecycle.decision import Decision, linked_instances
from relaunch.core.selection.selection import Selection, explain_rows
from relaunch.late import made_late
from relaunch.ports import StoredSelection

KEPT_AFTER_END = timedelta(days=90)
# After this time a job is found only by its `wake_at`.
KEPT_AFTER_LIMIT = timedelta(days=2)

WARNING = "WARNING"
WARNING_KEPT = timedelta(days=1)
HELD = "#HELD"
"""The key in the index `slots` of jobs that have a slot and may use an instance; other keys are what jobs wait for."""

_JOB = JobBody()
_SUMMARY = StoredType(JobSummary)
_OF_CHARGES = {"machines_usd", "machines_on_demand_usd", "own_tasks_usd", "trained_usd", "open_charges"}
_ATTEMPT = StoredType(Attempt)
_RARE_FIELDS = (
    *("ended_first", "held_since", "held", "program_ended_at", "pulled"),
    *("refused_since", "suspended_since", "cluster", "live_ranks", "lost_instances"),
    *("last_host_ended_at", "leaves_survivors", "missing_ranks", "stop_sent_at"),
)
_OF_GANGS = ("followers", "master_address", "placed_ids")
_TIMELINE_ENTRY = StoredType(TimelineEntry)
_SELECTION = made_late(lambda: StoredType(StoredSelection))


class TornReadError(Exception):
    """The job and its attempt were read from different writes: read again."""


def job_pk(job_id: str) -> str:
    """Return the partition key of the items of a job."""
    return f"JOB#{job_id}"


def expiry(job: Job) -> dict[str, Any] | None:
    """Return when a finished job and its items may be deleted; None for an open job."""
    if not job.state.is_final:
        return None
    return epoch((job.ended_at or job.state_since or job.accepted_at) + KEPT_AFTER_END)


def job_item(job: Job, write_id: str) -> Item:
    """Return the JOB item, without the attempt, which has its own item.

    Raises:
        ValueError: the job is open and has no `wake_at`.
    """
    item = key(job_pk(job.job_id), "JOB") | {
        "version": number(job.version),
        "write_id": text(write_id),
        "listing": text(LISTING),
        "accepted_at": text(stamp(job.accepted_at)),
        "summary": _summary(job),
        "body": text(write_job_body(replace(job, attempt=None))),
    }
    if job.attempt:
        item["attempt_number"] = number(job.attempt.number)
    if wake_at := due_at(job):
        item |= {"due": text(UNSENT if is_over(job) else OPEN), "wake_at": text(stamp(wake_at))}
    if slot := HELD if may_have_instance(job) else waited_slot(job):
        item["slot"] = text(slot)
    return _expiring(item, job)


def attempt_item(job: Job, attempt: Attempt) -> Item:
    """Return the ATTEMPT item; its body is compressed if it does not fit into one read unit."""
    item = key(job_pk(job.job_id), f"ATTEMPT#{attempt.number:04d}") | {"version": number(job.version)}
    # 128 bytes are enough for keys, version and expiry, besides the job id.
    room = READ_UNIT_BYTES - len(job.job_id) - 128
    return _expiring(item | body_attribute(_ATTEMPT.dump_json(attempt, exclude=_empty(attempt)), room), job)


def timeline_items(job: Job, entries: Iterable[TimelineEntry]) -> list[Item]:
    """Return the TIMELINE items of this version of a job."""
    return [
        _expiring(
            key(job_pk(job.job_id), f"TIMELINE#{job.version:06d}#{position:02d}")
            | {"body": _dump(_TIMELINE_ENTRY, entry)},
            job,
        )
        for position, entry in enumerate(entries)
    ]


def selection_item(job: Job, selection: Selection, selected_at: datetime) -> Item:
    """Return the SELECTION item of a placement, compressed.

    While a job waits for its next placement, every selection replaces that of the next placement.
    """
    attempt_number, placement_number = selected_placement(job, is_placed=bool(selection.kept))
    stored = StoredSelection(
        attempt_number, placement_number, selected_at, explain_rows(selection), selection.filter_counts
    )
    packed = zlib.compress(_SELECTION.dump_json(stored), 9)
    item = key(job_pk(job.job_id), f"SELECTION#{attempt_number:04d}#{placement_number:02d}")
    return _expiring(item | {"packed": {"B": packed}}, job)


def image_item(job: Job, image: tuple[str, str]) -> Item:
    """Return the item that links an awaited image to the job."""
    until = job.waiting.until if job.waiting and job.waiting.until else job.accepted_at
    item = key(image_pk(*image), job_pk(job.job_id))
    return item | {"expires_at": epoch(until + KEPT_AFTER_LIMIT)}


def image_pk(repository: str, tag: str) -> str:
    """Return the partition key of the jobs that wait for an image."""
    return f"IMAGE#{repository}#{tag}"


UNLINKED = "unlinked"
"""The attribute of a link that holds no more: its job has left the instance."""


def instance_item(job: Job, attempt: Attempt, instance_id: str) -> Item:
    """Return the item that links an instance to the job; it expires after the maximum running time of the job."""
    item = key(instance_pk(instance_id), job_pk(job.job_id))
    limit = attempt.placement.requested_at + job.definition.max_runtime
    return item | {"expires_at": epoch(limit + KEPT_AFTER_LIMIT)}


def instance_pk(instance_id: str) -> str:
    """Return the partition key of the jobs on an instance."""
    return f"INSTANCE#{instance_id}"


def warning_item(instance_id: str, at: datetime) -> Item:
    """Return the item of the spot interruption warning of an instance."""
    item = key(warning_pk(instance_id), WARNING)
    return item | {"at": text(stamp(at)), "expires_at": epoch(at + WARNING_KEPT)}


def warning_pk(instance_id: str) -> str:
    """Return the partition key of the warning of an instance."""
    return f"WARNING#{instance_id}"


def written_items(decision: Decision, job: Job) -> list[Item]:
    """Return the items of a decision besides the JOB item; `job` has its new version."""
    items = timeline_items(job, decision.timeline)
    if job.attempt:
        items.append(attempt_item(job, job.attempt))
        if decision.link_instance:
            items += (instance_item(job, job.attempt, each) for each in linked_instances(job))
        for each in decision.unlinked_instances:
            # In place of the link: no function may delete items.
            items.append(instance_item(job, job.attempt, each) | {UNLINKED: {"BOOL": True}})
    if decision.selection is not None and decision.selected_at is not None:
        items.append(selection_item(job, decision.selection, decision.selected_at))
    return items


def read_job(item: Item, attempt: Item | None, read: Callable[[Item, Body[Any]], Any] = read_item) -> Job:
    """Return the job of a JOB item and its newest ATTEMPT item; `read` returns what the body of an item has.

    A Query is not a transaction: it may read the job and the attempt from different writes.

    Raises:
        TornReadError: the items are from different writes.
        TransientError: this release cannot read them.
    """
    if "attempt_number" in item and (attempt is None or attempt["version"] != item["version"]):
        raise TornReadError
    job: Job = read(item, _JOB)
    return replace(job, attempt=read(attempt, _ATTEMPT)) if attempt and "attempt_number" in item else job


def has_lost_attempt(found: Iterable[Item]) -> bool:
    """Return whether a job that is over, by its JOB item among these, has lost its newest ATTEMPT item."""
    by_key = {item["sk"]["S"]: item for item in found}
    job = by_key["JOB"]
    return "expires_at" in job and f"ATTEMPT#{int(job['attempt_number']['N']):04d}" not in by_key


def read_attempt(item: Mapping[str, Any]) -> Attempt:
    """Return the attempt of an ATTEMPT item."""
    return read_item(item, _ATTEMPT)


def read_timeline_entry(item: Mapping[str, Any]) -> TimelineEntry:
    """Return the timeline entry of a TIMELINE item."""
    return read_item(item, _TIMELINE_ENTRY)


def read_selection(item: Mapping[str, Any]) -> StoredSelection:
    """Return the selection of a SELECTION item."""
    return read_item(item, _SELECTION)


def _dump(adapter: StoredType[Any], value: object) -> dict[str, Any]:
    return text(adapter.dump_json(value).decode())


def _summary(job: Job) -> dict[str, Any]:
    """Return the summary, without charges of machines and progress if there are none: as before there were these."""
    summary = summarize_job(job)
    unused = dict.fromkeys(_OF_CHARGES if job.charges == Charges() else (), True)
    noted = {} if job.noted else {"noted": True}
    rare = ("machine_id", "others")
    running = {"running": {each for each in rare if summary.running and not getattr(summary.running, each)}}
    return text(_SUMMARY.dump_json(summary, exclude={**unused, **noted, **running}).decode())


def _empty(attempt: Attempt) -> dict[str, Any]:
    """Return the fields that not every attempt has: written without a value they would cost a second write unit."""
    rare: dict[str, Any] = {name: True for name in _RARE_FIELDS if not getattr(attempt, name)}
    closed = {at: _unused(each) for at, each in enumerate(attempt.closed_placements)}
    return rare | {"placement": _unused(attempt.placement), "closed_placements": closed}


def _unused(placement: Placement) -> set[str]:
    """Return the fields of jobs with several nodes that a placement does not have."""
    return {name for name in _OF_GANGS if not getattr(placement, name)}


def _expiring(item: Item, job: Job) -> Item:
    expires_at = expiry(job)
    return item | {"expires_at": expires_at} if expires_at else item
