"""Checks that every change of a job is one event: none is missing in the end, and none comes again with other words.

What changed is computed from the jobs as they were saved, what was sent from what EventBridge took.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from jsonschema_rs import Draft202012Validator

from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.repository import REPOSITORY
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.record import Check

# How late EventBridge delivers, and so how far it changes the order.
_LATEST = 60.0
# docs/events.md: of more changes that wait the oldest are given up.
_MOST_WAITING = 100


class Seen(NamedTuple):
    """What a change of a job is a change of."""

    state: str
    waiting_for: str | None
    attempt: int | None
    warned_attempt: int | None
    """The attempt whose machine will be taken away."""
    is_stalled: bool
    """Its training saves nothing newer."""


# Compiled: by jsonschema, which interprets the schema, each event took a twentieth of all time.
@cache
def published_schema() -> Draft202012Validator:
    """Return the schema of docs/events.schema.json."""
    return Draft202012Validator(json.loads((REPOSITORY / "docs" / "events.schema.json").read_text(encoding="utf-8")))


def seen_of(job: Job) -> Seen:
    """Return what somebody sees of a job who watches it."""
    attempt = job.attempt
    number = attempt.number if attempt is not None else None
    is_warned = attempt is not None and attempt.warned_at is not None
    waiting_for = job.waiting.reason.value if job.waiting is not None else None
    is_stalled = job.noted is not None and job.noted.stalled_since is not None
    return Seen(job.state.value, waiting_for, number, number if is_warned else None, is_stalled)


def _is_change(before: Seen, after: Seen) -> bool:
    if before[:3] != after[:3] or before.is_stalled != after.is_stalled:
        return True
    return after.warned_attempt is not None and after.warned_attempt != before.warned_attempt


@dataclass(slots=True)
class JobEventChecks:
    """Knows the changes of each job, the events that were sent, and a receiver that honours `sequence`."""

    _clock: Clock
    _chance: Chance
    _check: Check
    _hosts: Callable[[], Iterable[Instance]]
    """All instances."""
    _targets: Mapping[str, str]
    """Of each definition."""
    changes: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    """By job: what it was after each change; the first is its creation."""
    _changed_at: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    taken: dict[str, str] = field(default_factory=dict)
    """By ID: the detail of each event that EventBridge took."""
    taken_at: dict[str, datetime] = field(default_factory=dict)
    """By ID: when EventBridge took it first."""
    on_taken: Callable[[Mapping[str, Any]], None] = lambda _entry: None
    """Called with each entry that EventBridge takes."""
    _saved: dict[str, Seen] = field(default_factory=dict)
    _received: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By job: the sequence and the state that the receiver knows."""

    def job_saved(self, job: Job) -> None:
        """Note what changed of a job that was created or saved."""
        now = seen_of(job)
        before = self._saved.get(job.job_id)
        self._saved[job.job_id] = now
        if before is None or _is_change(before, now):
            self.changes[job.job_id].append(now)
            self._changed_at[job.job_id].append(self._clock.now())

    def event_taken(self, entry: Mapping[str, Any]) -> None:
        """Check an event that EventBridge takes, and deliver it to the receiver."""
        event = json.loads(entry["Detail"])
        job_id = event["job_id"]
        sequence = event["sequence"]
        is_named = event["id"] == f"{job_id}:{sequence}" and event["time"].endswith("Z")
        self._check("an event is named by its job and its number", is_named, event["id"])
        problems = [each.message for each in published_schema().iter_errors(event)]
        self._check("an event keeps the published schema", not problems, f"{event['id']}: {problems[:1]}")
        self._check_names(event)
        known = self.taken.setdefault(event["id"], entry["Detail"])
        self._check("an event that is sent again is the same", known == entry["Detail"], event["id"])
        self.taken_at.setdefault(event["id"], self._clock.now())
        changes = self.changes[job_id]
        is_saved = 1 <= sequence <= len(changes)
        self._check("no event comes before its change is saved", is_saved, f"{event['id']} of {len(changes)} changes")
        if is_saved:
            self._check_content(event, changes)
        delay = self._chance.stream("job-event-latency").uniform(0.1, _LATEST)
        self._clock.call_later(delay, lambda: self._receive(job_id, sequence, event["state"]))
        self.on_taken(entry)

    def _check_content(self, event: Mapping[str, Any], changes: list[Seen]) -> None:
        sequence = event["sequence"]
        change = changes[sequence - 1]
        sent = (event["state"], event.get("waiting_for"), event.get("attempt"))
        self._check("an event says what the change was", sent == change[:3], f"{event['id']}: {sent}, not {change}")
        hangs = change.is_stalled and change.state == "RUNNING"
        says_stall = event.get("progress", {}).get("stalled_since") is not None
        self._check("an event says what hangs", says_stall == hangs, f"{event['id']}: {says_stall}")
        before = changes[sequence - 2].state if sequence > 1 else None
        is_same = event.get("state_before") == before
        self._check("an event says what was before", is_same, f"{event['id']}: {event.get('state_before')}, {before}")

    def _check_names(self, event: Mapping[str, Any]) -> None:
        """Check that the definition, the target and the instance of an event are those that there are."""
        is_defined = event["target"] == self._targets.get(event["definition"])
        self._check("an event names definition and target", is_defined, f"{event['id']}: {event['definition']}")
        machine = event.get("machine", {})
        hosts = [each for each in self._hosts() if each.instance_id == machine.get("instance_id")]
        for host in hosts:
            is_of_host = all(
                machine.get(name) in (None, value)
                for name, value in (("instance_type", host.instance_type), ("zone", host.zone))
            )
            self._check("an event names the machine as EC2 does", is_of_host, f"{event['id']}: {machine}")

    def _receive(self, job_id: str, sequence: int, state: str) -> None:
        known, _ = self._received.get(job_id, (0, ""))
        if sequence > known:
            self._received[job_id] = sequence, state

    def _may_be_given_up(self, job_id: str, number: int) -> bool:
        """Return whether as many later changes waited as may wait, and EventBridge took none of them meanwhile."""
        last = number + _MOST_WAITING
        if last > len(self.changes[job_id]):
            return False
        full_at = self._changed_at[job_id][last - 1]
        taken_at = (self.taken_at.get(f"{job_id}:{each}", full_at) for each in range(number, last))
        return min(taken_at) >= full_at

    def check_end(self) -> None:
        """Check that every change was sent, once there is nothing to do for anybody."""
        for job_id, changes in self.changes.items():
            every = (number for number in range(1, len(changes) + 1) if not self._may_be_given_up(job_id, number))
            missing = [number for number in every if f"{job_id}:{number}" not in self.taken]
            self._check("every change of a job is one event", not missing, f"{job_id}: {missing} of {len(changes)}")

    def check_received(self) -> None:
        """Check, once everything is delivered, that who honours `sequence` knows how each job ended."""
        for job_id, seen in self._saved.items():
            known = self._received.get(job_id, (0, ""))
            is_last = known == (len(self.changes[job_id]), seen.state)
            self._check("a receiver ends where the job ends", is_last, f"{job_id}: {known}, not {seen.state}")
