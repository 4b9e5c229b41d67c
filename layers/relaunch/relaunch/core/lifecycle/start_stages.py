"""How a task came to start, stage by stage: from the request of its machine until its program runs.

Nothing is guessed: a stage whose end nobody says is one with those that follow, up to the next known moment. The clocks
of several computers are compared: a moment that seems to be before the last one counts as the same. Only
`relaunch explain --machine` needs this.

A machine of our own reports its boot in an attribute of its container instance, `relaunch.boot`: when its kernel
started, in seconds of the Unix epoch, and the seconds from then until user data began, until it ended, and until
nothing kept the ECS agent from its start, with colons between them. What it does not know is `-`. Whoever is root there
may write anything.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from relaunch.core.jobs.attempt import Attempt, PlacementState
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.machines.living import BECAME_READY, REGISTERED
from relaunch.core.machines.machine import Machine, MachineState, machine_id_of
from relaunch.core.machines.starts import CLAIMED
from relaunch.core.records import dataclass


class Part(StrEnum):
    """What a start consists of, in the order of time; docs/machines.md says what each is."""

    REQUEST = "request"
    LAUNCH = "launch"
    BOOT = "boot"
    USER_DATA = "user data"
    DRIVER = "driver"
    AGENT = "agent"
    READY = "ready"
    PLACEMENT = "placement"
    PROVIDER = "provider"
    NODE = "node"
    HAND_OVER = "hand-over"
    PULL = "pull"
    START = "start"


class StartState(StrEnum):
    """How a start came out."""

    STARTED = "started"
    STARTING = "starting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a start, or several in a row whose ends nobody says; `ended_at` is None for one that is not over.

    `ended_by` says what ended it, and who says so.
    """

    parts: tuple[Part, ...]
    began_at: datetime
    ended_at: datetime | None = None
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class StartRecord:
    """What is stored of a start: the number of its attempt, the attempt once it is placed, and its machine of our own.

    Both may be missing: an attempt that waits for its machine is not stored, and capacity providers have their own.
    """

    number: int
    attempt: Attempt | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """A start: its stages without a gap, and at `until` it was there, had stopped for a `reason`, or goes on."""

    record: StartRecord
    state: StartState
    stages: tuple[Stage, ...]
    until: datetime
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def began_at(self) -> datetime:
        """Return when its first stage began."""
        return self.stages[0].began_at if self.stages else self.until

    def duration(self, stage: Stage) -> timedelta:
        """Return how long a stage took, or has taken until now or until the start stopped."""
        return (stage.ended_at or self.until) - stage.began_at


@dataclass(frozen=True, slots=True)
class _Mark:
    """The end of a part. `is_reported`: it is known as soon as it is there, so without it the part is not over."""

    part: Part
    at: datetime | None = None
    by: str = ""
    is_reported: bool = True


def machine_of_start(attempt: Attempt, job: Job) -> str:
    """Return the ID of the machine whose start is that of an attempt, empty for a capacity provider's.

    Of several nodes it is the first that was requested for the attempt: others may have been kept from the last one.
    """
    requested = _requested_ids(job, attempt.number)
    ids = [each.machine_id for each in attempt.placement.ranks]
    return next((each for each in ids if each in requested), ids[0])


def find_start(record: StartRecord, job: Job, timeline: Sequence[TimelineEntry], now: datetime) -> Start:
    """Return the stages of a start of the job.

    Raises:
        ValueError: the record has neither an attempt nor a machine.
    """
    began_at, marks, notes = _marks(record, job, timeline)
    state, until, reason = _outcome(record, timeline, now)
    stages = _stages(began_at, marks)
    last = stages[-1].ended_at or stages[-1].began_at
    return Start(record, state, stages, max(until, last), reason, notes)


def _stages(began_at: datetime, marks: Sequence[_Mark]) -> tuple[Stage, ...]:
    """Return the stages; the last part is reported, so that without its end one of them goes on."""
    stages: list[Stage] = []
    open_parts: list[Part] = []
    at = began_at
    for mark in marks:
        if mark.at is not None:
            ended_at = max(mark.at, at)
            stages.append(Stage((*open_parts, mark.part), at, ended_at, mark.by))
            at = ended_at
            open_parts = []
        else:
            open_parts.append(mark.part)
    if open_parts:
        first = next(each.part for each in marks if each.part in open_parts and each.is_reported)
        stages.append(Stage(tuple(open_parts[: open_parts.index(first) + 1]), at))
    return tuple(stages)


def _outcome(record: StartRecord, timeline: Sequence[TimelineEntry], now: datetime) -> tuple[StartState, datetime, str]:
    attempt = record.attempt
    machine = record.machine
    if attempt is not None and attempt.started_at is not None:
        return StartState.STARTED, attempt.started_at, ""
    if attempt is not None and attempt.stop is not None:
        reason = "; ".join(part for part in (attempt.stop.kind.value, attempt.stop.stopped_reason) if part)
        return StartState.STOPPED, attempt.stop.at, reason
    if attempt is not None and attempt.placement.state is PlacementState.CLOSED:
        entries = [each.at for each in timeline if each.attempt_number == attempt.number]
        return StartState.STOPPED, max(entries, default=now), attempt.placement.outcome
    is_placed = attempt is not None and attempt.placement.state is PlacementState.PLACED
    if machine is not None and not machine.state.is_usable and not is_placed:
        # Later entries say no more than that its instance is terminated.
        ended = ((each.at, each.detail) for each in machine.timeline if not each.state.is_usable)
        stopped_at, reason = next(ended, (machine.state_since or now, machine.reason))
        return StartState.STOPPED, stopped_at, reason
    return StartState.STARTING, now, ""


def _marks(
    record: StartRecord, job: Job, timeline: Sequence[TimelineEntry]
) -> tuple[datetime, tuple[_Mark, ...], tuple[str, ...]]:
    """Return when a start began, what ended its parts, and its notes."""
    attempt = record.attempt
    machine = record.machine
    if machine is not None:
        began_at, marks, notes = _machine_marks(record, machine, job)
        return began_at, (*marks, *_task_marks(attempt, ())), notes
    if attempt is None:
        raise ValueError(f"attempt {record.number} of {job.job_id} has neither a task nor a machine")
    began_at = attempt.placement.requested_at
    if job.definition.target.capabilities.runs_pods:
        note = "its cluster says neither when the node was there nor when the image was pulled"
        return began_at, _pod_marks(attempt), (note,)
    if attempt.placement.machine_id:
        note = f"the record of machine {attempt.placement.machine_id} is not kept any more: what it did is not known"
        return began_at, _task_marks(attempt, ()), (note,)
    note = "how a machine of a capacity provider boots is not known: its group launches it, and it reports nothing"
    pending = (each.at for each in timeline if _is_pending(each, attempt))
    found = _Mark(Part.PROVIDER, next(pending, None), "the task has an instance, by the cluster")
    return began_at, _task_marks(attempt, (found,)), (note,)


def _is_pending(entry: TimelineEntry, attempt: Attempt) -> bool:
    """Return whether ECS has assigned the task of the attempt's placement to an instance."""
    is_its = entry.attempt_number == attempt.number and entry.at >= attempt.placement.requested_at
    return is_its and entry.event == "task PENDING"


def _task_marks(attempt: Attempt | None, provider: tuple[_Mark, ...]) -> tuple[_Mark, ...]:
    pull_began_at, pull_ended_at = (attempt.pulled if attempt is not None else None) or (None, None)
    return (
        _Mark(Part.PLACEMENT, attempt.placement.placed_at if attempt else None, "the answer to its launch"),
        *provider,
        # ECS says both with the state of the task that follows ("Amazon ECS task state change events").
        _Mark(Part.HAND_OVER, pull_began_at, "the pull begins, by the cluster", is_reported=False),
        _Mark(Part.PULL, pull_ended_at, "the pull ends, by the cluster", is_reported=False),
        _Mark(Part.START, attempt.started_at if attempt else None, "its program starts, by the cluster"),
    )


def _pod_marks(attempt: Attempt) -> tuple[_Mark, ...]:
    return (
        _Mark(Part.PLACEMENT, attempt.placement.placed_at, "the answer to its launch"),
        _Mark(Part.NODE, is_reported=False),
        _Mark(Part.PULL, is_reported=False),
        _Mark(Part.START, attempt.started_at, "its program starts, by the cluster"),
    )


def _machine_marks(
    record: StartRecord, machine: Machine, job: Job
) -> tuple[datetime, tuple[_Mark, ...], tuple[str, ...]]:
    ready_at = _ready_at(machine)
    notes = []
    if machine.machine_id not in _requested_ids(job, record.number):
        joined_at = _joined_at(record, machine, job)
        known_at = ready_at or machine.registered_at
        if known_at is not None and joined_at >= known_at:
            note = f"the machine was there already, ready since {known_at:%Y-%m-%d %H:%M:%S} UTC"
            return joined_at, (), (note,)
        notes = [f"another attempt had requested the machine; this one joined it at {joined_at:%H:%M:%S}"]
    registered_at, registered_by = _registered(machine)
    moments, note = _boot_moments(machine, registered_at)
    marks = (
        _Mark(Part.REQUEST, machine.launched_at, "EC2's answer to CreateFleet"),
        *(
            _Mark(part, at, f"{end}, by the machine", is_reported=False)
            for (part, end), at in zip(_REPORTED, moments, strict=True)
        ),
        _Mark(Part.AGENT, registered_at, registered_by),
        _Mark(Part.READY, ready_at, "Relaunch sees all accelerators, and the agent connected"),
    )
    return machine.created_at, marks, (*notes, *((note,) if note else ()))


def _requested_ids(job: Job, number: int) -> frozenset[str]:
    """Return the IDs of the machines that were requested for an attempt."""
    requests = range(1, job.machines.requested + 1)
    return frozenset(machine_id_of(job.job_id, number, request) for request in requests)


def _joined_at(record: StartRecord, machine: Machine, job: Job) -> datetime:
    """Return when the job claimed a machine that was not requested for this attempt."""
    claims = [each.since for each in machine.claims if each.job_id == job.job_id]
    claims += [each.at for each in machine.timeline if (each.event, each.detail) == (CLAIMED, job.job_id)]
    if record.attempt is not None:
        placed_at = record.attempt.placement.requested_at
        return max((each for each in claims if each <= placed_at), default=placed_at)
    return max(claims, default=machine.created_at)


def _ready_at(machine: Machine) -> datetime | None:
    ready = (each.at for each in reversed(machine.timeline) if each.event == BECAME_READY)
    # Of its timeline only the latest entries are kept.
    return next(ready, machine.state_since if machine.state is MachineState.READY else None)


def _registered(machine: Machine) -> tuple[datetime | None, str]:
    if machine.registered_at is not None:
        return machine.registered_at, "it registers, by the cluster"
    seen = (each.at for each in machine.timeline if each.event == REGISTERED)
    return next(seen, None), "Relaunch sees it registered"


_SECONDS = r"[0-9]{1,11}(?:\.[0-9]{1,6})?"
_BOOT = re.compile(rf"({_SECONDS})((?::(?:{_SECONDS}|-)){{3}})")
# The clocks of EC2's instances are right within milliseconds once they are set; the kernel's start is rounded.
_CLOCKS_DIFFER = timedelta(seconds=5)
_REPORTED = (
    (Part.LAUNCH, "its kernel starts"),
    (Part.BOOT, "user data begins"),
    (Part.USER_DATA, "user data ends"),
    (Part.DRIVER, "the agent may start"),
)
Moments = tuple[datetime | None, datetime | None, datetime | None, datetime | None]
_UNKNOWN: Moments = (None, None, None, None)


def _boot_moments(machine: Machine, registered_at: datetime | None) -> tuple[Moments, str]:
    """Return when its kernel started, user data began and ended, and the agent could start, and a note on that."""
    if registered_at is None or machine.launched_at is None:
        return _UNKNOWN, ""
    if not machine.boot:
        return _UNKNOWN, "the machine reported nothing of its boot, as user data of earlier versions does not"
    moments = read_boot(machine.boot)
    known = [each for each in moments if each is not None]
    earliest = machine.created_at - _CLOCKS_DIFFER
    latest = registered_at + _CLOCKS_DIFFER
    if not known or known != sorted(known) or known[0] < earliest or known[-1] > latest:
        return _UNKNOWN, f"what the machine reported of its boot cannot be: {machine.boot}"
    return moments, ""


def read_boot(text: str) -> Moments:
    """Return the moments of `relaunch.boot`: None for each that is not known, or all if the text has another form."""
    found = _BOOT.fullmatch(text)
    if found is None:
        return _UNKNOWN
    started_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(found[1]))
    began, ended, agent = (
        None if each == "-" else started_at + timedelta(seconds=float(each)) for each in found[2][1:].split(":")
    )
    return started_at, began, ended, agent
