"""Concurrency groups in the jobs table: which job of a group is the newest one, and which one holds it.

Both change in transactions with their jobs. A group that nobody uses for a year expires.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.adapters.aws.dynamodb.table import Action, Item, JobsTable, count_in, epoch, key, stamp, text
from relaunch.core.jobs.groups import GroupChange, GroupStanding
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.groups import slot_of

_PK = "GROUP"
# After the longest run of its newest job: nobody holds a group then, nor is an older event delivered.
_KEPT_UNUSED = timedelta(days=365)


def enter(job: Job, standing: GroupStanding | None) -> list[Action]:
    """Return the action that makes a new job the newest one of its group, if it is to be."""
    if standing is None:
        return []
    values = {
        ":newest": text(standing.newest),
        ":event_at": text(stamp(standing.event_at or job.accepted_at)),
        ":accepted_at": text(stamp(standing.accepted_at or job.accepted_at)),
        ":cancels": {"BOOL": standing.cancels},
        ":expires_at": _expiry(job),
    }
    expression = "SET " + ", ".join(f"{name[1:]} = {name}" for name in values)
    condition = "attribute_not_exists(newest)"
    if job.group.after:
        values[":after"] = text(job.group.after)
        condition = "newest = :after"
    return [count_in(key(_PK, slot_of(job)), expression, values, condition)]


def change(decision: Decision) -> list[Action]:
    """Return the action that takes or releases the group of a job, if any."""
    job = decision.job
    item_key = key(_PK, slot_of(job))
    match decision.group_change:
        case GroupChange.TAKE:
            values = {":job": text(job.job_id)}
            is_newest = "(attribute_not_exists(newest) OR newest = :job)"
            is_free = "(attribute_not_exists(holder) OR holder = :job)"
            return [count_in(item_key, "REMOVE expires_at SET holder = :job", values, f"{is_newest} AND {is_free}")]
        case GroupChange.RELEASE:
            return [count_in(item_key, "REMOVE holder SET expires_at = :expires_at", {":expires_at": _expiry(job)})]
        case None:
            return []


def _expiry(job: Job) -> dict[str, str]:
    return epoch((job.ended_at or job.accepted_at) + job.definition.max_runtime + _KEPT_UNUSED)


def load(table: JobsTable, slot: str) -> GroupStanding:
    """Load what is stored of a group."""
    item = table.get(_PK, slot)
    return GroupStanding() if item is None else _read(item)


def release(table: JobsTable, slot: str, job_id: str) -> None:
    """Let nobody hold a group, if this job does."""
    table.update(count_in(key(_PK, slot), "REMOVE holder", {":job": text(job_id)}, "holder = :job"))


def _read(item: Item) -> GroupStanding:
    times = {name: datetime.fromisoformat(item[name]["S"]) for name in ("event_at", "accepted_at") if name in item}
    return GroupStanding(
        newest=item.get("newest", {}).get("S", ""),
        event_at=times.get("event_at"),
        accepted_at=times.get("accepted_at"),
        cancels=item.get("cancels", {}).get("BOOL", False),
        holder=item.get("holder", {}).get("S", ""),
    )


def put_groups(table: JobsTable, jobs: Iterable[Job]) -> None:
    """Replace what is stored of all groups by what their open jobs have of them; these are all open jobs.

    A group without open jobs keeps its newest one, and nobody holds it.
    """
    found: dict[str, GroupStanding] = {}
    for job in jobs:
        if slot := slot_of(job):
            found[slot] = _with_job(found.get(slot, GroupStanding()), job)
    for item in list(table.query("pk = :pk", {":pk": text(_PK)})):
        if item["sk"]["S"] not in found:
            table.put({name: value for name, value in item.items() if name != "holder"})
    for slot, standing in found.items():
        table.put(key(_PK, slot) | _attributes(standing))


def _with_job(standing: GroupStanding, job: Job) -> GroupStanding:
    holder = job.job_id if job.group.is_holder else standing.holder
    at = job.group.event_at or job.accepted_at
    if standing.is_newer_than(at, job.accepted_at, job.job_id):
        return replace(standing, holder=holder)
    policy = job.definition.concurrency
    cancels = policy is not None and policy.cancel_in_progress
    return GroupStanding(job.job_id, at, job.accepted_at, cancels, holder)


def _attributes(standing: GroupStanding) -> Item:
    at = {"event_at": standing.event_at, "accepted_at": standing.accepted_at}
    names = {"newest": standing.newest, "holder": standing.holder}
    texts = {**{name: stamp(time) for name, time in at.items() if time is not None}, **names}
    return {name: text(value) for name, value in texts.items() if value} | {"cancels": {"BOOL": standing.cancels}}
