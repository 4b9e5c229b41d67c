"""Checks that what schedules, the event bus and topics sent became the jobs that the triggers of definitions owe.

A time, event or message owes a job to a definition whose trigger selects it if that trigger was registered from when it
came until a function had handled it. Where the trigger was added or removed meanwhile, either is right.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    JobDefinition,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
    schedule_key,
)
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.jobs.job import Job
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.applying import Applying, Registration
from relaunch_local.simulation.aws.scheduler import cron_times, rate_of
from relaunch_local.simulation.checks.trigger_starts import Lookup

_SOURCES = frozenset({"schedule", "eventbridge", "sns"})
_SKIPPED_AFTER = timedelta(hours=1)
_MOST_BEFORE = 5
# Functions' clocks differ from the simulation's by three seconds.
_CLOCK_SKEW = timedelta(seconds=4)
# A function that has read the definitions creates the job within its time-out.
_LONGEST_FUNCTION = timedelta(minutes=3)
_RETRIED = re.compile(r"retry of ([a-z0-9-]+)")
_TRIES = 7


@dataclass(frozen=True, slots=True)
class _Start:
    """What may start a job: a time, an event or a message, when it came, and whether it may at all."""

    identity: str
    lookup: Lookup
    at: datetime
    is_valid: bool = True
    scheduled_at: datetime | None = None


class TriggerJobs:
    """Checks a run in which nothing happens any more."""

    def __init__(self, account: SimulatedAccount, applying: Applying) -> None:
        """Check this run."""
        self._account = account
        self._applying = applying
        self._check = account.invariants.check
        self._jobs = account.invariants.jobs
        self._definitions = {each.name: each for each in account.scenario.every_definition}
        self._sent = {(each.name, each.at): each for each in account.scheduler.sent}
        self._by_start: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in self._jobs.values():
            if job.trigger.source in _SOURCES:
                self._by_start[job.definition.name, job.trigger.identity].append(job)

    def check(self) -> int:
        """Check everything once; return how many jobs were started by these triggers."""
        if self._account.scenario.other_triggers is not None:
            known: dict[tuple[str, str], list[tuple[Registration, _Start]]] = defaultdict(list)
            for registration in self._applying.registrations:
                self._check_times(registration)
                for start in self._starts_of(registration):
                    known[registration.definition, start.identity].append((registration, start))
                    self._check_start(registration, start)
            for (definition, identity), jobs in self._by_start.items():
                for job in jobs:
                    self._check_job(job, known[definition, identity])
            self._applying.check_schedules(self._account.stores.definitions.list_definitions())
        return sum(map(len, self._by_start.values()))

    def _check_times(self, registration: Registration) -> None:
        """Check that Scheduler sends every time of a schedule while its trigger is registered."""
        trigger = registration.trigger
        since = registration.sure_from
        if not isinstance(trigger, ScheduleTrigger) or since is None:
            return
        until = registration.unsure_from or self._account.clock.now()
        key = schedule_key(trigger)
        interval = rate_of(trigger.expression)
        if interval is None:
            times = list(cron_times(trigger.expression, trigger.time_zone, since, until))
            missing = [each for each in times if (key, each) not in self._sent]
        else:
            times = sorted(at for name, at in self._sent if name == key and since <= at <= until)
            ends = (since, *times, until)
            missing = [late for late, at in zip(ends[1:], ends, strict=False) if late - at > interval + _CLOCK_SKEW]
        message = f"{registration.definition}: {trigger.expression} {trigger.time_zone}: {missing}"
        self._check("Scheduler sends every time of a schedule", not missing, message)

    def _starts_of(self, registration: Registration) -> Iterator[_Start]:
        trigger = registration.trigger
        definition = self._definitions[registration.definition]
        if isinstance(trigger, ScheduleTrigger):
            yield from self._times_of(trigger)
        if isinstance(trigger, EventBridgeTrigger):
            yield from self._events_of(definition, trigger)
        if isinstance(trigger, SnsTrigger):
            for each in self._account.starts.messages:
                if each.topic == trigger.topic:
                    is_valid = _is_size(definition, trigger, each.attributes.get("size"))
                    yield _Start(each.identity, ("sns", each.topic, each.message_id), each.at, is_valid)

    def _times_of(self, trigger: ScheduleTrigger) -> Iterator[_Start]:
        key = schedule_key(trigger)
        for (name, at), sent in self._sent.items():
            if name == key and sent.arrives_at is not None:
                time = f"{at:%Y-%m-%dT%H:%M:%SZ}"
                yield _Start(f"schedule:{time}", ("schedule", key, time), at, scheduled_at=at)

    def _events_of(self, definition: JobDefinition, trigger: EventBridgeTrigger) -> Iterator[_Start]:
        key = pattern_key(trigger.pattern)
        for identity, published in self._account.starts.published.items():
            event = published.event
            if _is_selected(json.loads(trigger.pattern), event):
                upstream = self._jobs.get(str(event["detail"].get("job_id")))
                is_valid = _is_size(definition, trigger, event["detail"].get("size"))
                if upstream is not None:
                    is_valid = is_valid and self._depth(upstream) + 1 <= _MOST_BEFORE
                yield _Start(identity, ("eventbridge", key, identity), published.at, is_valid)

    def _depth(self, job: Job) -> int:
        """Return how many jobs came before one in its chain."""
        if job.trigger.source == "direct":
            retried = _RETRIED.match(job.trigger.summary)
            return self._depth(self._jobs[retried[1]]) if retried is not None else 0
        published = self._account.starts.published.get(job.trigger.identity)
        upstream = self._jobs.get(str(published.event["detail"].get("job_id"))) if published is not None else None
        return self._depth(upstream) + 1 if upstream is not None else 0

    def _check_start(self, registration: Registration, start: _Start) -> None:
        name = registration.definition
        if not registration.is_sure(start.at, start.at):
            return
        handled = self._account.starts.handled.get(start.lookup)
        is_handled = handled is not None or self._is_given_up(start)
        self._check("what starts jobs is handled", is_handled, f"{name}: {start.lookup}")
        if handled is None or not registration.is_sure(start.at, handled[1]):
            return
        late = handled[0] - start.scheduled_at if start.scheduled_at is not None else timedelta(0)
        is_skipped = isinstance(registration.trigger, ScheduleTrigger) and not registration.trigger.catches_up
        if is_skipped and late > _SKIPPED_AFTER - _CLOCK_SKEW:
            return
        count = len(self._by_start.get((name, start.identity), ()))
        message = f"{name}: {count} jobs of {start.identity}, handled {late} late"
        if start.is_valid:
            self._check("what a trigger selects becomes exactly one job", count == 1, message)
        else:
            self._check("an event with wrong inputs, or of a chain that is too long, starts no job", not count, message)

    def _is_given_up(self, start: _Start) -> bool:
        """Return whether functions died of the message, or its queue's sender gave it up."""
        tokens = [start.lookup[-1], *([start.lookup[1]] if start.lookup[0] == "schedule" else [])]
        tokens = [start.identity.rpartition(":")[2] if start.lookup[0] == "eventbridge" else each for each in tokens]
        dead = self._account.queues.dead_letters
        return any(
            all(token in each.body for token in tokens) and (each.deaths >= _TRIES or each.queue.endswith(":given-up"))
            for each in dead
        )

    def _check_job(self, job: Job, known: Sequence[tuple[Registration, _Start]]) -> None:
        is_selected = any(_may_start(registration, start, job.accepted_at) for registration, start in known)
        message = f"{job.job_id} by {job.trigger.identity} at {job.accepted_at}"
        self._check("nothing starts a job that no trigger selects", is_selected, message)
        depth = self._depth(job)
        given = job.trigger.environment.get("RELAUNCH_CHAIN_DEPTH", "0")
        self._check("a job knows how many came before it in its chain", given == str(depth), f"{message}: {given}")


def _may_start(registration: Registration, start: _Start, accepted_at: datetime) -> bool:
    trigger: Trigger = registration.trigger
    is_there = registration.begun_at <= accepted_at + _CLOCK_SKEW
    is_gone = registration.gone_at is not None and accepted_at > registration.gone_at + _LONGEST_FUNCTION
    late = accepted_at - start.scheduled_at if start.scheduled_at is not None else timedelta(0)
    is_skipped = isinstance(trigger, ScheduleTrigger) and not trigger.catches_up and late > _SKIPPED_AFTER + _CLOCK_SKEW
    return start.is_valid and is_there and not is_gone and not is_skipped


def _is_size(definition: JobDefinition, trigger: EventBridgeTrigger | SnsTrigger, size: object) -> bool:
    """Return whether the input that a trigger gives is right; without one it has its default."""
    return not trigger.inputs or not definition.inputs or size is None or re.fullmatch("[0-9]+", str(size)) is not None


def _is_selected(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Return whether a pattern of a seed selects an event: those of rows, and those of the ends of jobs."""
    if event["source"] not in pattern["source"] or event["detail-type"] not in pattern["detail-type"]:
        return False
    wanted = pattern["detail"]
    detail = event["detail"]
    if "rows" in wanted:
        return bool(detail["rows"] > wanted["rows"][0]["numeric"][1])
    return all(detail[name] in values for name, values in wanted.items())
