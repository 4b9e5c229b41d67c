"""How many steps per second jobs of a definition do on each kind of accelerators, as their checkpoints have shown.

What compares is work of one definition with the same command, environment, container and family of task definition. A
new image or revision, inputs, and the number of steps do not part it: what they change of a step is forgotten as
newer jobs come, of which only so many count, older ones less. Each attempt is one observation, which a later checkpoint
of it replaces: noted twice or in any order, it counts once.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate

from relaunch.core.definitions.accelerator import Accelerators, read_accelerators
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.records import dataclass
from relaunch.core.selection.speeds import LearnedRate, Rates

KEPT_ATTEMPTS = 12
"""How many attempts count of a definition on one kind of accelerators: the newest."""
KEPT_FOR = timedelta(days=60)
"""How long one counts after its newest checkpoint."""
_HALF_LIFE = timedelta(days=14)
_LOW = 0.1
_HIGH = 0.9
ENOUGH_JOBS = 3
"""With fewer jobs than that nobody knows how far the next one may be off."""
_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class ObservedRate:
    """The steps per second of an attempt until a step, which was saved at `at`; `save_seconds` is what a save takes.

    `work` says what a step of it is (`work_of`).
    """

    job_id: str
    attempt: int
    step: int
    at: datetime
    steps_per_second: float
    work: str
    save_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RateRecord:
    """The newest attempts of a definition on one kind of accelerators, and the version of the item."""

    definition: str
    accelerators: str
    observed: tuple[ObservedRate, ...] = ()
    version: int = 0

    @property
    def forgotten_at(self) -> datetime:
        """Return when nothing of it counts any more, of what was observed."""
        return max(each.at for each in self.observed) + KEPT_FOR


def work_of(definition: JobDefinition) -> str:
    """Return what is the same for two definitions of one name whose steps are the same work, as far as they say."""
    said = [
        definition.task_definition,
        definition.container,
        list(definition.command),
        sorted(definition.environment.items()),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def with_rate(record: RateRecord, rate: ObservedRate) -> RateRecord:
    """Return the record with an observation; the same record if it has that, or a later one of the attempt."""
    others = [each for each in record.observed if (each.job_id, each.attempt) != (rate.job_id, rate.attempt)]
    known = next((each for each in record.observed if each not in others), None)
    if known is not None and known.step >= rate.step:
        return record
    newest = sorted([*others, rate], key=lambda each: (each.at, each.job_id, each.attempt))[-KEPT_ATTEMPTS:]
    return replace(record, observed=tuple(newest)) if rate in newest else record


def learned_rates(records: Iterable[RateRecord], definition: JobDefinition, now: datetime) -> Rates:
    """Return what the records say about the work of a definition."""
    work = work_of(definition)
    found: dict[Accelerators, LearnedRate] = {}
    for record in records:
        counted = [each for each in record.observed if each.work == work and each.at + KEPT_FOR > now]
        if counted:
            found[read_accelerators(record.accelerators)] = _learned(counted, now)
    return found


def _learned(counted: Sequence[ObservedRate], now: datetime) -> LearnedRate:
    rates = [(each.steps_per_second, 0.5 ** (max(now - each.at, timedelta(0)) / _HALF_LIFE)) for each in counted]
    jobs = len({each.job_id for each in counted})
    margin = 1 if jobs >= ENOUGH_JOBS else 1 + _MARGIN
    saves = [(each.save_seconds, 1.0) for each in counted if each.save_seconds is not None]
    return LearnedRate(
        slow=quantile(rates, _LOW) / margin,
        middle=quantile(rates, 0.5),
        fast=quantile(rates, _HIGH) * margin,
        jobs=jobs,
        save_seconds=quantile(saves, 0.5) if saves else None,
    )


def quantile(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """Return the least of the values up to which there is this share of all weight; the values are some."""
    ordered = sorted(weighted)
    until = list(accumulate(weight for _, weight in ordered))
    return next(value for (value, _), weight in zip(ordered, until, strict=True) if weight >= share * until[-1])
