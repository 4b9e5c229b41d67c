"""Jobs in the jobs table, saved by one transaction and loaded by one Query (keys: table.py)."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from relaunch.adapters.aws.dynamodb import groups
from relaunch.adapters.aws.dynamodb import job_items as items
from relaunch.adapters.aws.dynamodb.job_listing import OPEN, UNSENT, DynamoDbJobListing, job_id_of, job_ids
from relaunch.adapters.aws.dynamodb.machines import refusal, save_machines
from relaunch.adapters.aws.dynamodb.slots import full_cap, release_slots, take_slots
from relaunch.adapters.aws.dynamodb.table import MAX_ACTIONS, Action, CancelledError, Item, number, put, stamp, text
from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import BudgetExceededError, JobHistory, SlotsFullError, StaleWriteError, TransientError

T = TypeVar("T")

_READ_ATTEMPTS = 4


class DynamoDbJobs(DynamoDbJobListing):
    """Implements JobStore."""

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding | None = None) -> bool:
        write_id = str(uuid.uuid4())
        created = replace(job, version=1)
        actions = [put(items.job_item(created, write_id), "attribute_not_exists(pk)")]
        actions += [put(item) for item in items.written_items(Decision(job, tuple(timeline)), created)]
        if job.image:
            actions.append(put(items.image_item(job, job.image)))
        actions += groups.enter(job, standing)
        try:
            self._table.transact(actions, write_id, f"creating job {job.job_id}")
        except CancelledError as error:
            if 0 not in error.failed:
                raise StaleWriteError(f"{job.group.after or 'none'} is not the newest job of the group") from error
            return error.is_own(write_id)
        return True

    def load_group(self, slot: str) -> GroupStanding:
        return groups.load(self._table, slot)

    def release_group(self, slot: str, job_id: str) -> None:
        groups.release(self._table, slot, job_id)

    def load_job(self, job_id: str) -> Job | None:
        # JOB sorts after ATTEMPT#…: in reverse order these are the job and its newest attempt.
        values = {":pk": text(items.job_pk(job_id)), ":first": text("ATTEMPT#"), ":last": text("JOB")}

        def read() -> list[Item]:
            found = self._table.query("pk = :pk AND sk BETWEEN :first AND :last", values, limit=2, newest_first=True)
            return list(found)

        def parse(found: list[Item]) -> Job:
            return items.read_job(found[0], found[1] if len(found) > 1 else None, self._table.read)

        return _read_whole(job_id, read, parse)

    def save_job(self, decision: Decision) -> Job:
        write_id = str(uuid.uuid4())
        job = replace(decision.job, version=decision.job.version + 1)
        slots = take_slots(decision)
        group = groups.change(decision)
        budgets = _changed_budgets(decision)
        actions = [
            put(items.job_item(job, write_id), "version = :version", {":version": number(decision.job.version)}),
            *slots,
            *group,
            *budgets,
            *save_machines(decision.machines, write_id),
            *release_slots(decision),
            *(put(item) for item in items.written_items(decision, job)),
            *_additions(decision),
        ]
        if job.state.is_final:
            self._let_expire(job)
        try:
            self._table.transact(actions, write_id, f"saving job {job.job_id}")
        except CancelledError as error:
            # A call that took effect and timed out was retried: the other write is this one.
            if error.is_own(write_id):
                return job
            if 0 in error.failed:
                raise StaleWriteError(f"job {job.job_id} is no longer at version {decision.job.version}") from error
            if min(error.failed) <= len(slots):
                raise full_cap(decision, error) from error
            if min(error.failed) <= len(slots) + len(group):
                raise SlotsFullError("group", 1) from error
            if min(error.failed) <= len(slots) + len(group) + len(budgets):
                raise _budget_error(decision, error, 1 + len(slots) + len(group)) from error
            raise refusal(decision.machines, error, 1 + len(slots) + len(group) + len(budgets)) from error
        return job

    def _let_expire(self, job: Job) -> None:
        """Set the expiry of all items of a finished job.

        This precedes saving the job; if that fails, both are repeated before the items expire. The items of the job
        itself are saved with an expiry of their own; a filter may not leave them out by their key.
        """
        keys = self._table.query(
            "pk = :pk",
            {":pk": text(items.job_pk(job.job_id))},
            FilterExpression="attribute_not_exists(expires_at)",
            ProjectionExpression="pk, sk",
        )
        values = {":expires_at": items.expiry(job)}
        updates: list[Action] = [
            {
                "Update": {
                    "Key": {"pk": each["pk"], "sk": each["sk"]},
                    "UpdateExpression": "SET expires_at = :expires_at",
                    "ExpressionAttributeValues": values,
                }
            }
            for each in keys
            if not each["sk"]["S"].startswith("JOB")
        ]
        for start in range(0, len(updates), MAX_ACTIONS):
            part = updates[start : start + MAX_ACTIONS]
            self._table.transact(part, str(uuid.uuid4()), f"ending job {job.job_id}")

    def load_history(self, job_id: str) -> JobHistory | None:
        values = {":pk": text(items.job_pk(job_id))}
        return _read_whole(job_id, lambda: list(self._table.query("pk = :pk", values)), _history)

    def load_due(self, now: datetime, limit: int) -> list[str]:
        found = self._due(OPEN, now, limit)
        # What waits for EventBridge may be many, and keeps no open job waiting.
        return found + self._due(UNSENT, now, limit - len(found)) if len(found) < limit else found

    def _due(self, due: str, now: datetime, limit: int) -> list[str]:
        values = {":due": text(due), ":now": text(stamp(now))}
        return job_ids(self._table.query("due = :due AND wake_at <= :now", values, index="due", limit=limit))

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        return self._in_slot(slot, limit)

    def load_waiting_for_image(self, repository: str, tag: str) -> list[str]:
        return self._linked_jobs(items.image_pk(repository, tag))

    def load_slot_holders(self, limit: int) -> list[str]:
        return self._in_slot(items.HELD, limit)

    def _in_slot(self, slot: str, limit: int) -> list[str]:
        return job_ids(self._table.query("slot = :slot", {":slot": text(slot)}, index="slots", limit=limit))

    def load_on_instance(self, instance_id: str) -> list[str]:
        return self._linked_jobs(items.instance_pk(instance_id))

    def save_warning(self, instance_id: str, at: datetime) -> None:
        self._table.put(items.warning_item(instance_id, at))

    def load_warning(self, instance_id: str) -> datetime | None:
        item = self._table.get(items.warning_pk(instance_id), items.WARNING)
        return None if item is None else datetime.fromisoformat(item["at"]["S"])

    def _linked_jobs(self, pk: str) -> list[str]:
        linked = f"attribute_not_exists({items.UNLINKED})"
        found = self._table.query("pk = :pk", {":pk": text(pk)}, FilterExpression=linked)
        return [job_id_of(item["sk"]["S"]) for item in found]


def _changed_budgets(decision: Decision) -> list[Action]:
    if not decision.budgets:
        return []
    from relaunch.adapters.aws.dynamodb.budgets import change_budgets  # noqa: PLC0415 - most stacks have none

    return change_budgets(decision)


def _budget_error(decision: Decision, error: CancelledError, first: int) -> BudgetExceededError:
    from relaunch.adapters.aws.dynamodb.budgets import exceeded  # noqa: PLC0415 - most stacks have none

    return exceeded(decision, error, first)


def _additions(decision: Decision) -> list[Action]:
    if not decision.costs:
        return []
    from relaunch.adapters.aws.dynamodb.costs import add_costs  # noqa: PLC0415 - of what has ended only

    return add_costs(decision.costs)


def _read_whole(job_id: str, read: Callable[[], list[Item]], parse: Callable[[list[Item]], T]) -> T | None:
    """Read the items of a job until they are of one write; None if there is no job.

    DynamoDB deletes each expired item by itself, in no order: a job is gone when one of its two main items is.

    Raises:
        TransientError: others wrote the job each time it was read.
    """
    found = list[Item]()
    for _ in range(_READ_ATTEMPTS):
        found = read()
        if not any(item["sk"]["S"] == "JOB" for item in found):
            return None
        try:
            return parse(found)
        except items.TornReadError:
            continue
    if items.has_lost_attempt(found):
        return None
    raise TransientError(f"job {job_id} was written by others each time it was read")


def _history(found: Sequence[Item]) -> JobHistory:
    parts: dict[str, list[Item]] = {"JOB": [], "ATTEMPT": [], "TIMELINE": [], "SELECTION": []}
    for item in found:
        parts[item["sk"]["S"].partition("#")[0]].append(item)
    newest = parts["ATTEMPT"][-1] if parts["ATTEMPT"] else None
    return JobHistory(
        items.read_job(parts["JOB"][0], newest),
        tuple(items.read_attempt(item) for item in parts["ATTEMPT"]),
        tuple(items.read_timeline_entry(item) for item in parts["TIMELINE"]),
        tuple(items.read_selection(item) for item in parts["SELECTION"]),
    )
