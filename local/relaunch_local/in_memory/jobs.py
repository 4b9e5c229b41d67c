"""Jobs in memory, with versions, slots and stale writes as in DynamoDB; the contract tests compare the two."""

from collections import Counter, defaultdict
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice
from threading import Lock

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.cost import CostEntry, CostKey, summarize_job
from relaunch.core.jobs.groups import GroupChange, GroupStanding
from relaunch.core.jobs.job import (
    Job,
    TimelineEntry,
    due_at,
    is_over,
    may_have_instance,
    selected_placement,
    waited_slot,
)
from relaunch.core.jobs.runs import JobRuns, Run, RunContainer, RunDefinition, RunJob, RunRevision, RunStop
from relaunch.core.jobs.state import JobSummary
from relaunch.core.lifecycle.decision import Decision, linked_instances
from relaunch.core.lifecycle.groups import slot_of
from relaunch.core.machines.charges import DayCost
from relaunch.core.selection.selection import explain_rows
from relaunch.ports import JobHistory, PermanentError, SlotsFullError, StaleWriteError, StoredSelection
from relaunch_local.in_memory.budgets import InMemoryBudgets
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.in_memory.write_faults import WriteFaults

STACK_SLOT = "*"


@dataclass
class _Record:
    job: Job
    attempts: dict[int, Attempt] = field(default_factory=dict)
    timeline: list[TimelineEntry] = field(default_factory=list)
    selections: dict[tuple[int, int], StoredSelection] = field(default_factory=dict)


class InMemoryJobs(WriteFaults):
    """Implements JobStore; `machines` and `budgets` are those that are saved with jobs.

    `fail_next` makes the next writes fail before or after they take effect.
    """

    # Of all stores, and so no part of a copy of one.
    _transaction = Lock()

    def __init__(self, machines: InMemoryMachines | None = None) -> None:
        super().__init__()
        self.machines = machines or InMemoryMachines()
        self.budgets = InMemoryBudgets()
        self.slots: Counter[str] = Counter()
        self.costs: list[CostEntry] = []
        self.decisions: MutableSequence[Decision] = []
        self._records: dict[str, _Record] = {}
        self._open: dict[str, None] = {}
        self._groups: dict[str, GroupStanding] = defaultdict(GroupStanding)
        self._warnings: dict[str, datetime] = {}
        self._links: dict[str, dict[str, None]] = defaultdict(dict)
        self._image_waits: dict[tuple[str, str], list[str]] = defaultdict(list)

    def job(self, job_id: str) -> Job:
        """Return a job that must be there."""
        return self._records[job_id].job

    def events_of(self, job_id: str) -> list[str]:
        """Return the names of the events in a job's timeline."""
        return [entry.event for entry in self._records[job_id].timeline]

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding | None = None) -> bool:
        due_at(job)
        late_error = self._fault()
        is_new = job.job_id not in self._records
        slot = slot_of(job)
        if is_new and standing is not None:
            if self._groups[slot].newest != job.group.after:
                raise StaleWriteError(f"{job.group.after or 'none'} is not the newest job of the group")
            self._groups[slot] = replace(standing, holder=self._groups[slot].holder)
        if is_new:
            self._store(replace(job, version=1), timeline)
            if job.image:
                self._image_waits[job.image].append(job.job_id)
        if late_error:
            raise late_error
        return is_new

    def load_group(self, slot: str) -> GroupStanding:
        return self._groups[slot]

    def release_group(self, slot: str, job_id: str) -> None:
        if self._groups[slot].holder == job_id:
            self._groups[slot] = replace(self._groups[slot], holder="")

    def load_job(self, job_id: str) -> Job | None:
        record = self._records.get(job_id)
        return record.job if record else None

    def save_job(self, decision: Decision) -> Job:
        # A transaction is whole, whatever threads save at once.
        with self._transaction:
            return self._save(decision)

    def _save(self, decision: Decision) -> Job:
        due_at(decision.job)
        late_error = self._fault()
        job = decision.job
        record = self._records.get(job.job_id)
        if record is None or record.job.version != job.version:
            raise StaleWriteError(f"job {job.job_id} is no longer at version {job.version}")
        self._check_slots(decision)
        self._check_group(decision)
        self.budgets.check(decision.budgets)
        self.machines.check(decision.machines)
        self._move_slots(decision)
        self._move_group(decision)
        self.budgets.change(decision.budgets)
        self.machines.write(decision.machines)
        saved = replace(job, version=job.version + 1)
        self._store(saved, decision.timeline)
        if decision.selection is not None and decision.selected_at is not None:
            number, placement_number = selected_placement(job, is_placed=bool(decision.selection.kept))
            rows = explain_rows(decision.selection)
            record.selections[number, placement_number] = StoredSelection(
                number, placement_number, decision.selected_at, rows, decision.selection.filter_counts
            )
        for instance_id in linked_instances(job) if decision.link_instance else ():
            self._links[instance_id][job.job_id] = None
        for instance_id in decision.unlinked_instances:
            self._links[instance_id].pop(job.job_id, None)
        self.costs.extend(decision.costs)
        self.decisions.append(decision)
        if late_error:
            raise late_error
        return saved

    def _store(self, job: Job, timeline: Sequence[TimelineEntry]) -> None:
        record = self._records.setdefault(job.job_id, _Record(job))
        record.job = job
        if job.attempt:
            record.attempts[job.attempt.number] = job.attempt
        record.timeline.extend(timeline)
        if is_over(job):
            self._open.pop(job.job_id, None)
        else:
            self._open[job.job_id] = None

    def _check_slots(self, decision: Decision) -> None:
        caps = (("definition", decision.job.definition.name), ("stack", STACK_SLOT))
        for (cap, name), limit in zip(caps, decision.take_slot_limits or (), strict=False):
            if self.slots[name] >= limit:
                raise SlotsFullError(cap, limit)

    def _check_group(self, decision: Decision) -> None:
        job_id = decision.job.job_id
        standing = self._groups[slot_of(decision.job)]
        is_mine = {standing.newest, standing.holder} <= {"", job_id}
        if decision.group_change is GroupChange.TAKE and not is_mine:
            raise SlotsFullError("group", 1)

    def _move_group(self, decision: Decision) -> None:
        slot = slot_of(decision.job)
        if decision.group_change is not None:
            holder = decision.job.job_id if decision.group_change is GroupChange.TAKE else ""
            self._groups[slot] = replace(self._groups[slot], holder=holder)

    def _move_slots(self, decision: Decision) -> None:
        names = (decision.job.definition.name, STACK_SLOT)
        if decision.take_slot_limits:
            self.slots.update(names)
        if decision.release_slot:
            self.slots.subtract(names)

    def load_history(self, job_id: str) -> JobHistory | None:
        record = self._records.get(job_id)
        if record is None:
            return None
        return JobHistory(
            record.job,
            tuple(attempt for _, attempt in sorted(record.attempts.items())),
            tuple(record.timeline),
            tuple(selection for _, selection in sorted(record.selections.items())),
        )

    def load_due(self, now: datetime, limit: int) -> list[str]:
        due = [(is_over(job), at, job.job_id) for job in self._jobs() if (at := due_at(job)) and at <= now]
        return [job_id for *_, job_id in sorted(due)][:limit]

    def load_open(self, limit: int) -> list[str]:
        return list(islice(self._open, limit))

    def load_runs(self, job_id: str) -> JobRuns | None:
        history = self.load_history(job_id)
        if history is None:
            return None
        job = history.job
        definition = RunDefinition(job.definition.target, job.definition.container, job.definition.nodes)
        revision = RunRevision(job.revision.arn, tuple(RunContainer(each.name) for each in job.revision.containers))
        runs = (
            Run(each.number, each.task_ids, RunStop(each.stop.at) if each.stop else None) for each in history.attempts
        )
        return JobRuns(RunJob(job_id, job.state, definition, revision, job.ended_at), tuple(runs))

    def load_costs(self, first: date, last: date) -> list[CostEntry]:
        found: dict[tuple[CostKey, str], dict[date, DayCost]] = defaultdict(dict)
        for entry in self.costs:
            for cost in entry.days:
                if first <= cost.day <= last:
                    days = found[entry.key, f"{cost.day:%Y-%m}"]
                    days[cost.day] = _sum(days[cost.day], cost) if cost.day in days else cost
        return [CostEntry(key, tuple(days[day] for day in sorted(days))) for (key, _), days in found.items()]

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        waiting = [job for job in self._jobs() if waited_slot(job) == slot]
        return [job.job_id for job in sorted(waiting, key=lambda job: job.accepted_at)][:limit]

    def load_waiting_for_image(self, repository: str, tag: str) -> list[str]:
        return list(self._image_waits[repository, tag])

    def load_slot_holders(self, limit: int) -> list[str]:
        held = [job for job in self._jobs() if may_have_instance(job)]
        return [job.job_id for job in sorted(held, key=lambda job: job.accepted_at)][:limit]

    def save_warning(self, instance_id: str, at: datetime) -> None:
        self._warnings[instance_id] = at

    def load_warning(self, instance_id: str) -> datetime | None:
        return self._warnings.get(instance_id)

    def load_on_instance(self, instance_id: str) -> list[str]:
        return sorted(self._links[instance_id])

    def list_jobs(self, limit: int, cursor: str | None = None) -> tuple[list[JobSummary], str | None]:
        if cursor is not None and not cursor.isdigit():
            raise PermanentError(f"{cursor!r} is no cursor of a list of jobs")
        start = int(cursor or 0)
        newest = sorted(self._jobs(), key=lambda job: job.accepted_at, reverse=True)
        page = [summarize_job(job) for job in newest[start : start + limit]]
        return page, str(start + limit) if len(newest) > start + limit else None

    def _jobs(self) -> list[Job]:
        return [record.job for record in self._records.values()]


def _sum(one: DayCost, other: DayCost) -> DayCost:
    return DayCost(
        one.day,
        one.usd + other.usd,
        one.on_demand_usd + other.on_demand_usd,
        one.hours + other.hours,
        one.unpriced_hours + other.unpriced_hours,
    )
