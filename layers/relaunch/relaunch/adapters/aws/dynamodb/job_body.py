"""The body of a job's item: one JSON object with the fields of the job and of its records, all side by side."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, make_dataclass
from operator import attrgetter
from typing import Any

from relaunch.adapters.aws.dynamodb.later_fields import left_out, left_out_of_revision
from relaunch.adapters.stored_type import StoredType
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.effects import CountRun
from relaunch.core.jobs.groups import GroupPlace
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import Reserved

STORED_NAMES: Mapping[str, str] = {
    "job_id": "job_id",
    "definition": "definition",
    "trigger": "trigger",
    "revision": "revision",
    "accepted_at": "accepted_at",
    "inputs": "inputs",
    "state": "state",
    "state_since": "state_since",
    "reason": "reason",
    "waiting": "waiting",
    "image": "image",
    "images": "images",
    "wake_at": "wake_at",
    "attempt": "attempt",
    "has_slot": "has_slot",
    "failures": "totals.failures",
    "interruptions": "totals.interruptions",
    "first_started_at": "totals.first_started_at",
    "run_seconds": "totals.run_seconds",
    "cost_usd": "totals.cost_usd",
    "cost_basis": "totals.cost_basis",
    "cancel_requested": "cancel_requested",
    "pending": "pending",
    "ended_at": "ended_at",
    "interrupted_at": "interrupted_at",
    "failed_starts": "faults.failed_starts",
    "own_failures": "faults.own_failures",
    "held_back_seconds": "waits.held_back_seconds",
    "held_back_before_seconds": "waits.held_back_before_seconds",
    "queued_seconds": "waits.queued_seconds",
    "queued_before_seconds": "waits.queued_before_seconds",
    "machine_id": "machine_id",
    "follower_ids": "follower_ids",
    "machine_requests": "machines.requested",
    "failed_machines": "machines.failed",
    "refused_since": "machines.refused_since",
    "refusals": "refusals",
    "useless_machines_at": "machines.useless_at",
    "useless_machines_usd": "machines.useless_usd",
    "machines_usd": "charges.machines_usd",
    "machines_on_demand_usd": "charges.on_demand_usd",
    "own_tasks_usd": "charges.own_tasks_usd",
    "trained_usd": "charges.trained_usd",
    "machines_basis": "charges.basis",
    "charged_by": "charges.latest",
    "open_charges": "charges.open",
    "reserved_usd": "reserved.usd",
    "reserved_in": "reserved.month",
    "ran_on": "machines.ran_on",
    "resume_from": "resume_from",
    "first_step": "progress.first_step",
    "kept_seconds": "progress.kept_seconds",
    "measured_starts": "measured.starts",
    "start_seconds": "measured.start_seconds",
    "checkpoint_seconds": "measured.checkpoint_seconds",
    "asked_at": "machines.asked_at",
    "market_reason": "market.reason",
    "early_failures": "faults.early_failures",
    "faulty_machines": "faults.faulty_machines",
    "judged_attempt": "progress.judged_attempt",
    "attempts_without_progress": "progress.attempts_without_progress",
    "saving_seconds": "progress.saving_seconds",
    "accelerators": "progress.accelerators",
    "moved_at": "market.moved_at",
    "wait_told_at": "waits.told_at",
    "concurrency_group": "group.name",
    "group_event_at": "group.event_at",
    "group_after": "group.after",
    "holds_group": "group.is_holder",
    "noted_progress": "noted",
    "event_sequence": "outbox.sequence",
    "unsent_events": "outbox.unsent",
    "resend_events_at": "outbox.resend_at",
    "version": "version",
}
"""The name of each field in the body, and where the job has it.

The versions of a deployment and its rollback read each other's bodies: a name stays. A new field needs a default, with
which a body without it is read.
"""

# A job in no group, without progress, accelerators or budgets, or that no machine charges is stored as before these.
_OF_LATER = tuple(
    (record, empty, frozenset(name for name, place in STORED_NAMES.items() if place.startswith(f"{record}.")))
    for record, empty in (("group", GroupPlace()), ("charges", Charges()), ("reserved", Reserved()))
)
_KINDS: Mapping[str, Any] = {each.name: each.type for each in fields(Job)}


def _stored_fields() -> Iterator[tuple[str, Any, Any]]:
    for name, place in STORED_NAMES.items():
        record, _, attribute = place.rpartition(".")
        (found,) = (each for each in fields(_KINDS[record] if record else Job) if each.name == attribute)
        yield name, found.type, field(default=found.default, default_factory=found.default_factory)


# Its name is what the errors of pydantic say.
_StoredJob = make_dataclass("Job", _stored_fields(), eq=False, repr=False)
_BODY: StoredType[Any] = StoredType(_StoredJob)


def write_job_body(job: Job) -> str:
    """Return the JSON of a job."""
    stored = _StoredJob(*(attrgetter(place)(job) for place in STORED_NAMES.values()))
    unused: dict[str, Any] = {
        name: True for record, empty, names in _OF_LATER if getattr(job, record) == empty for name in names
    }
    if job.noted is None:
        unused["noted_progress"] = True
    if not job.follower_ids:
        unused["follower_ids"] = True
    if not job.progress.accelerators:
        unused["accelerators"] = True
    unused["pending"] = {
        at: {"run": {"nodes"}}
        for at, each in enumerate(job.pending)
        if isinstance(each, CountRun) and each.run.nodes == 1
    }
    unused["unsent_events"] = {at: {"noted"} for at, each in enumerate(job.outbox.unsent) if each.noted is None}
    unused["revision"] = left_out_of_revision(job.revision)
    return _BODY.dump_json(stored, exclude={"definition": left_out(job.definition), **unused}).decode()


def read_job_body(body: str | bytes) -> Job:
    """Return the job of a body; members that have no name here are left out (table.py keeps them).

    Raises:
        pydantic_core.ValidationError: the body has another format.
    """
    stored = _BODY.validate_json(body)
    values: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for name, place in STORED_NAMES.items():
        record, _, attribute = place.rpartition(".")
        values[record][attribute] = getattr(stored, name)
    own = values.pop("")
    return Job(**own, **{record: _KINDS[record](**given) for record, given in values.items()})


class JobBody:
    """The body of a job as the table reads it."""

    def validate_json(self, data: str | bytes) -> Job:
        """Return the job of a body."""
        return read_job_body(data)

    def dump_json(self, value: Job) -> bytes:
        """Return the JSON of a job."""
        return write_job_body(value).encode()
