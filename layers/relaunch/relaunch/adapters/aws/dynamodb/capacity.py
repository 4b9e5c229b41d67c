"""The capacity memory, the runs on spot and the records of spot pools in the jobs table."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

from relaunch.adapters.aws.dynamodb.table import Item, JobsTable, count_in, epoch, key, number, stamp, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord
from relaunch.core.offerings.capacity_memory import forgotten_at, remember, reopened, sound
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, OfferingKey
from relaunch.core.offerings.spot_runs import (
    KEPT_FOR,
    GangRuns,
    Observed,
    SpotPool,
    SpotRun,
    SpotRuns,
    first_day,
    unknown_pool,
)
from relaunch.late import made_late

_FAILURE = made_late(lambda: StoredType(CapacityFailure))
_RECORD = made_late(lambda: StoredType(PoolRecord))
_PK = "CAPACITY"
# Sort before the keys of failures, which begin with an instance type in lower case, so that one Query reads all.
# Records of pools sort before what earlier versions read, which cannot parse them, and those of several machines at
# once before those of one, for the same reason.
_GANGS = "GANG#"
_POOLS = "POOL#"
_RUNS = "RUNS#"
_AFTER_RUNS = "RUNS$"
# Of runs on several machines at once, each with their number at the end.
_GANG_HOURS = "gang_hours_"
_GANG_INTERRUPTIONS = "gang_interruptions_"
# `in_a_row` is the number of interruptions since the latest start.
_MORE = {
    Observed.START: ("", ", started_at = :at, in_a_row = :zero", {":zero": number(0)}),
    Observed.INTERRUPTION: (", in_a_row :one", ", interrupted_at = :at", {":one": number(1)}),
}
_DAY_AFTER = timedelta(days=1)


class DynamoDbCapacity:
    """Implements CapacityStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        memory, *_ = self._load(_AFTER_RUNS, now)
        return memory

    def load_capacity(self, now: datetime) -> tuple[CapacityMemory, Sequence[SpotRuns], Sequence[SpotPool]]:
        return self._load(_GANGS, now)

    def remember(self, failure: CapacityFailure) -> None:
        stored = self._table.get(_PK, _sk(failure.key))
        before = self._table.read(stored, _FAILURE) if stored else None
        after = remember(before, failure)
        if after == before:
            return
        # Of concurrent writes the longer avoidance is kept; at worst a consecutive failure is not counted.
        condition = "attribute_not_exists(avoided_until) OR avoided_until <= :until"
        self._table.put(_item(after), condition, {":until": text(stamp(after.until))})

    def reopen(self, failure: CapacityFailure, at: datetime) -> None:
        condition = "avoided_until = :until"
        values = {":until": text(stamp(failure.until))}
        item = _item(reopened(failure, at))
        if not self._table.put(item, condition, values) and failure.capacity_provider:
            # An earlier version stored it without the name of the provider in its key.
            self._table.put(item | key(_PK, _sk(failure.offering)), condition, values)

    def forget_unready(self, offerings: Sequence[OfferingKey], at: datetime) -> None:
        for offering in offerings:
            stored = self._table.get(_PK, _sk(offering))
            failure = self._table.read(stored, _FAILURE) if stored else None
            if failure is not None and failure.is_unready and failure.consecutive_failures:
                condition = "avoided_until = :until"
                until = text(stamp(failure.until))
                self._table.put(_item(sound(failure, at)), condition, {":until": until})

    def count_run(self, run: SpotRun) -> None:
        day = run.at.astimezone(UTC).date()
        values = {
            ":hours": {"N": repr(run.hours)},
            ":count": {"N": repr(run.interruptions)},
            ":run": text(f"{run.run_id} {run.what}"),
            ":expires": epoch(datetime.combine(day, time(), UTC) + KEPT_FOR + _DAY_AFTER),
        }
        expression = "ADD hours :hours, interruptions :count{added} SET last_run = :run, expires_at = :expires{set}"
        gang = ""
        if run.nodes > 1:
            gang = f", {_GANG_HOURS}{run.nodes} :gang_hours, {_GANG_INTERRUPTIONS}{run.nodes} :count"
            values[":gang_hours"] = {"N": repr(run.lasted_hours)}
        day_key = key(_PK, f"{_RUNS}{day}#{run.offering.instance_type}#{run.offering.zone or '*'}")
        added, values_set, more = _MORE.get(run.what, ("", "", {}))
        if more:
            values |= {":at": text(stamp(run.at)), **more}
        # A repetition by the SDK finds its own run, or counts it twice if another one was counted in those seconds.
        is_new = "(attribute_not_exists(last_run) OR last_run <> :run)"
        self._table.update(count_in(day_key, expression.format(added=added + gang, set=values_set), values, is_new))

    def load_pool(self, offering: OfferingKey, nodes: int = 1) -> SpotPool:
        stored = self._table.get(_PK, _pool_sk(offering, nodes))
        return self._spot_pool(stored) if stored else unknown_pool(offering, nodes)

    def save_pool(self, pool: SpotPool) -> bool:
        item = key(_PK, _pool_sk(pool.offering, pool.nodes)) | {
            "version": number(pool.version + 1),
            "expires_at": epoch(pool.forgotten_at),
            "body": text(_RECORD.dump_json(pool.record).decode()),
        }
        if pool.version == 0:
            return self._table.put(item, "attribute_not_exists(pk)")
        return self._table.put(item, "version = :version", {":version": number(pool.version)})

    def _load(self, first: str, now: datetime) -> tuple[CapacityMemory, Sequence[SpotRuns], Sequence[SpotPool]]:
        # Time to live deletes expired items only after days.
        items = self._table.query(
            "pk = :pk AND sk >= :first",
            {":pk": text(_PK), ":first": text(first), ":now": text(stamp(now))},
            FilterExpression="attribute_not_exists(avoided_until) OR avoided_until > :now",
        )
        memory: dict[OfferingKey, CapacityFailure] = {}
        runs: list[SpotRuns] = []
        pools: list[SpotPool] = []
        for item in items:
            if item["sk"]["S"].startswith(_RUNS):
                runs.append(_spot_runs(item))
            elif item["sk"]["S"].startswith((_POOLS, _GANGS)):
                pools.append(self._spot_pool(item))
            else:
                failure = self._table.read(item, _FAILURE)
                known = memory.get(failure.key)
                # An earlier version stored the failure of a provider under another key: both may be there.
                if known is None or known.until < failure.until:
                    memory[failure.key] = failure
        days_that_count = [each for each in runs if each.day >= first_day(now)]
        return memory, days_that_count, [pool for pool in pools if pool.forgotten_at > now]

    def _spot_pool(self, item: Item) -> SpotPool:
        _, instance_type, zone, *nodes = item["sk"]["S"].split("#")
        offering = OfferingKey(instance_type, None if zone == "*" else zone, PurchaseOption.SPOT)
        number_of = int(nodes[0]) if nodes else 1
        return SpotPool(offering, self._table.read(item, _RECORD), int(item["version"]["N"]), number_of)


def _item(failure: CapacityFailure) -> Item:
    return key(_PK, _sk(failure.key)) | {
        "avoided_until": text(stamp(failure.until)),
        # An earlier failure still counts if the offering fails again.
        "expires_at": epoch(forgotten_at(failure)),
        "body": text(_FAILURE.dump_json(failure).decode()),
    }


def _spot_runs(item: Item) -> SpotRuns:
    _, day, instance_type, zone = item["sk"]["S"].split("#")
    offering = OfferingKey(instance_type, None if zone == "*" else zone, PurchaseOption.SPOT)
    hours = float(item["hours"]["N"])
    interruptions = float(item["interruptions"]["N"])
    interrupted_at, started_at = (
        datetime.fromisoformat(item[name]["S"]) if name in item else None for name in ("interrupted_at", "started_at")
    )
    in_a_row = int(item["in_a_row"]["N"]) if "in_a_row" in item else 0
    times = interrupted_at, started_at, in_a_row
    return SpotRuns(offering, date.fromisoformat(day), hours, interruptions, *times, gangs=tuple(_gang_runs(item)))


def _gang_runs(item: Item) -> Iterator[GangRuns]:
    sizes = (int(name.removeprefix(_GANG_HOURS)) for name in item if name.startswith(_GANG_HOURS))
    for nodes in sorted(sizes):
        hours, interruptions = (float(item[f"{name}{nodes}"]["N"]) for name in (_GANG_HOURS, _GANG_INTERRUPTIONS))
        yield GangRuns(nodes, hours, interruptions)


def _pool_sk(offering: OfferingKey, nodes: int) -> str:
    place = f"{offering.instance_type}#{offering.zone or '*'}"
    return f"{_POOLS}{place}" if nodes == 1 else f"{_GANGS}{place}#{nodes}"


def _sk(offering: OfferingKey) -> str:
    return f"{offering.instance_type}#{offering.zone or '*'}#{offering.purchase}"
