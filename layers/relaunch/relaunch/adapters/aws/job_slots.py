"""Slots: who counts against the caps on running jobs, as sets of job ids.

A set makes both ways harmless when done twice. There is one of each definition and one of the whole stack.
"""

from relaunch.adapters.aws.jobs_table import Action, CancelledError, JobsTable, key, number, text
from relaunch.ports import JobWrite, SlotsFullError

_PK = "SLOTS"
STACK = "*"
# The job's own action comes first in its transaction, then those of `take_slots`, in this order.
_CAPS = ("definition", "stack")


def take_slots(write: JobWrite) -> list[Action]:
    """Return the actions that take a slot in both caps, or none."""
    if write.take_slot_limits is None:
        return []
    caps = zip(_names(write), write.take_slot_limits, strict=True)
    return [_take(name, write.job.job_id, limit) for name, limit in caps]


def release_slots(write: JobWrite) -> list[Action]:
    """Return the actions that give back the slots, or none."""
    if not write.release_slot:
        return []
    job = {":job": {"SS": [write.job.job_id]}}
    return [
        {
            "Update": {
                "Key": key(_PK, name),
                "UpdateExpression": "DELETE jobs :job",
                "ExpressionAttributeValues": job,
            }
        }
        for name in _names(write)
    ]


def read_slots(table: JobsTable) -> list[str]:
    """Return the ids of the jobs that have a slot of the whole stack."""
    item = table.get(_PK, STACK) or {}
    return sorted(item.get("jobs", {}).get("SS", ()))


def full_cap(write: JobWrite, error: CancelledError) -> SlotsFullError:
    """Return which cap cancelled a transaction in which slots were to be taken."""
    position = min(error.failed) - 1
    limits = write.take_slot_limits or (0, 0)
    return SlotsFullError(_CAPS[position], limits[position])


def _names(write: JobWrite) -> tuple[str, str]:
    return write.job.definition.name, STACK


def _take(name: str, job_id: str, limit: int) -> Action:
    values = {":jobs": {"SS": [job_id]}, ":job": text(job_id)}
    condition = "contains(jobs, :job)"
    if limit > 0:
        condition += " OR attribute_not_exists(jobs) OR size(jobs) < :limit"
        values[":limit"] = number(limit)
    return {
        "Update": {
            "Key": key(_PK, name),
            "UpdateExpression": "ADD jobs :jobs",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }
    }
