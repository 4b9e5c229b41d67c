"""The application's stores in memory, for tests and the simulation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from relaunch.core.offerings.capacity_memory import remember, reopened, sound
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, OfferingKey
from relaunch.core.offerings.spot_runs import GangRuns, Observed, SpotPool, SpotRun, SpotRuns, first_day, unknown_pool
from relaunch.core.selection.rates import RateRecord
from relaunch.core.triggers.dispatch_rate import DispatchStarts
from relaunch.ports import EventRecord, FoundRevision, RevisionMaintenance
from relaunch_local.in_memory.budgets import InMemoryBudgets
from relaunch_local.in_memory.definitions import InMemoryDefinitions
from relaunch_local.in_memory.jobs import InMemoryJobs
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.in_memory.notices import InMemoryNotices


class InMemoryCapacity:
    """Implements CapacityStore."""

    def __init__(self) -> None:
        self._failures: dict[OfferingKey, CapacityFailure] = {}
        self._runs: dict[tuple[date, OfferingKey], tuple[SpotRuns, str]] = {}
        self._pools: dict[tuple[OfferingKey, int], SpotPool] = {}

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        return {key: failure for key, failure in self._failures.items() if failure.until > now}

    def load_capacity(self, now: datetime) -> tuple[CapacityMemory, Sequence[SpotRuns], Sequence[SpotPool]]:
        runs = [runs for (day, _), (runs, _last) in sorted(self._runs.items(), key=str) if day >= first_day(now)]
        pools = [pool for _, pool in sorted(self._pools.items(), key=str) if pool.forgotten_at > now]
        return self.load_capacity_memory(now), runs, pools

    def remember(self, failure: CapacityFailure) -> None:
        self._failures[failure.key] = remember(self._failures.get(failure.key), failure)

    def reopen(self, failure: CapacityFailure, at: datetime) -> None:
        stored = self._failures.get(failure.key)
        if stored is not None and stored.until == failure.until:
            self._failures[failure.key] = reopened(failure, at)

    def forget_unready(self, offerings: Sequence[OfferingKey], at: datetime) -> None:
        for offering in offerings:
            failure = self._failures.get(offering)
            if failure is not None and failure.is_unready and failure.consecutive_failures:
                self._failures[offering] = sound(failure, at)

    def count_run(self, run: SpotRun) -> None:
        day = run.at.astimezone(UTC).date()
        this = f"{run.run_id} {run.what}"
        before, last = self._runs.get((day, run.offering), (SpotRuns(run.offering, day), ""))
        if last == this:
            return
        after = replace(before, hours=before.hours + run.hours, interruptions=before.interruptions + run.interruptions)
        if run.nodes > 1:
            after = replace(after, gangs=_with_gang(before.gangs, run))
        if run.what is Observed.INTERRUPTION:
            after = replace(after, interrupted_at=run.at, interrupted_in_a_row=before.interrupted_in_a_row + 1)
        elif run.what is Observed.START:
            after = replace(after, started_at=run.at, interrupted_in_a_row=0)
        self._runs[day, run.offering] = (after, this)

    def load_pool(self, offering: OfferingKey, nodes: int = 1) -> SpotPool:
        return self._pools.get((offering, nodes), unknown_pool(offering, nodes))

    def save_pool(self, pool: SpotPool) -> bool:
        if self.load_pool(pool.offering, pool.nodes).version != pool.version:
            return False
        self._pools[pool.offering, pool.nodes] = replace(pool, version=pool.version + 1)
        return True


def _with_gang(gangs: Sequence[GangRuns], run: SpotRun) -> tuple[GangRuns, ...]:
    before = next((each for each in gangs if each.nodes == run.nodes), GangRuns(run.nodes, 0.0, 0.0))
    hours = before.hours + run.lasted_hours
    added = replace(before, hours=hours, interruptions=before.interruptions + run.interruptions)
    others = (each for each in gangs if each.nodes != run.nodes)
    return tuple(sorted((*others, added), key=lambda each: each.nodes))


class InMemoryRates:
    """Implements RateStore."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], RateRecord] = {}

    def load_rates(self, definition: str) -> Sequence[RateRecord]:
        return [record for (name, _), record in sorted(self._records.items()) if name == definition]

    def load_rate(self, definition: str, accelerators: str) -> RateRecord:
        return self._records.get((definition, accelerators), RateRecord(definition, accelerators))

    def save_rate(self, record: RateRecord) -> bool:
        if self.load_rate(record.definition, record.accelerators).version != record.version:
            return False
        self._records[record.definition, record.accelerators] = replace(record, version=record.version + 1)
        return True


class InMemoryMaintenance:
    """Implements MaintenanceStore."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._maintenance: RevisionMaintenance | None = None
        self._revisions: dict[str, FoundRevision] = {}

    def load_revision(self, derivation_id: str) -> FoundRevision | None:
        return self._revisions.get(derivation_id)

    def save_revision(self, derivation_id: str, found: FoundRevision) -> None:
        self._revisions[derivation_id] = found

    def take_turn(self, name: str) -> int:
        self._turns[name] = self._turns.get(name, -1) + 1
        return self._turns[name]

    def load_maintenance(self) -> RevisionMaintenance | None:
        return self._maintenance

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        if (self._maintenance.version if self._maintenance else 0) != maintenance.version:
            return False
        self._maintenance = replace(maintenance, version=maintenance.version + 1)
        return True


class InMemoryEvents:
    """Implements EventStore."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self._starts: dict[str, DispatchStarts] = {}
        self._last_tries: dict[str, datetime] = {}

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        self.records.append(EventRecord(identity, source, outcome, tuple(job_ids), at))

    def list_events(self, now: datetime, limit: int) -> list[EventRecord]:
        recent = [record for record in self.records if record.at > now - timedelta(days=8)]
        return sorted(recent, key=lambda record: record.at, reverse=True)[:limit]

    def load_dispatch_starts(self, body_sha256: str) -> DispatchStarts:
        return self._starts.get(body_sha256, DispatchStarts(body_sha256))

    def save_dispatch_starts(self, starts: DispatchStarts) -> bool:
        stored = self._starts.get(starts.body_sha256)
        if (stored.version if stored else 0) != starts.version:
            return False
        self._starts[starts.body_sha256] = replace(starts, version=starts.version + 1)
        return True

    def begin_last_try(self, message_id: str, at: datetime) -> bool:
        return self._last_tries.setdefault(message_id, at) == at


@dataclass
class InMemoryStores:
    """One store per port; `machines` and `budgets` are those that are saved with `jobs`."""

    jobs: InMemoryJobs = field(default_factory=InMemoryJobs)
    machines: InMemoryMachines = field(init=False)
    budgets: InMemoryBudgets = field(init=False)
    definitions: InMemoryDefinitions = field(default_factory=InMemoryDefinitions)
    capacity: InMemoryCapacity = field(default_factory=InMemoryCapacity)
    rates: InMemoryRates = field(default_factory=InMemoryRates)
    events: InMemoryEvents = field(default_factory=InMemoryEvents)
    maintenance: InMemoryMaintenance = field(default_factory=InMemoryMaintenance)
    notice_records: InMemoryNotices = field(default_factory=InMemoryNotices)

    def __post_init__(self) -> None:
        """Share the machines and the budgets with the jobs."""
        self.machines = self.jobs.machines
        self.budgets = self.jobs.budgets
