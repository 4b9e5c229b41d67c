"""The words of a notice, plain: each receiver puts them into the form of its service."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from relaunch.core.definitions.durations import write_minutes
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import cut
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.change_events import EventCost, EventMachine
from relaunch.core.notices.notice import Notice

_MAX_REASON = 600
_MINUTE = timedelta(minutes=1)
_OUTCOMES = {
    JobState.SUCCEEDED: "has finished",
    JobState.CANCELLED: "was cancelled",
    JobState.FAILED: "has failed",
    JobState.TIMED_OUT: "ran out of time",
}


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A notice in words. Nothing in it is markup: what somebody wrote may look like it."""

    title: str
    """What happened to which job: one line."""
    reason: str
    facts: tuple[tuple[str, str], ...]
    """Names and values, of what is known."""
    command: str
    """What to type to learn more."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines below the title."""
        facts = tuple(f"{name}: {value}" for name, value in self.facts)
        return (*((self.reason,) if self.reason else ()), *facts, self.command)

    @property
    def plain(self) -> str:
        """Return all of it, the title first."""
        return "\n".join((self.title, *self.lines))


def write_text(notice: Notice) -> NoticeText:
    """Return the words of a notice."""
    event = notice.event
    facts = [
        ("Definition", event.definition),
        ("Attempt", str(event.attempt) if event.attempt else ""),
        ("Machine", _machine(event.machine)),
        ("Resumed from", _progress(notice)),
        ("Interruptions", str(notice.all_interruptions) if notice.all_interruptions else ""),
        ("Cost so far", _cost(event.cost)),
        ("Since its first event", _lasted(notice)),
        ("At", write_time(event.time)),
    ]
    title = f"{event.job_id} {_what(notice)}"
    return NoticeText(
        title=f"Test: {title}" if notice.is_test else title,
        reason=cut(" ".join(notice.reason.split()), _MAX_REASON),
        facts=tuple((name, value) for name, value in facts if value),
        command=f"relaunch explain {event.job_id}",
    )


def write_time(at: datetime) -> str:
    """Return a time as people read it, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _what(notice: Notice) -> str:
    event = notice.event
    match notice.kind:
        case NoticeKind.STARTED:
            return f"runs again{_interrupted(notice)}" if (event.attempt or 1) > 1 else "has started"
        case NoticeKind.INTERRUPTED:
            return "was interrupted" if len(notice.interruptions) < 2 else f"was{_interrupted(notice).lstrip(',')}"
        case NoticeKind.WAITS_TOO_LONG:
            return f"has waited since {write_time(event.time)}"
        case NoticeKind.BUDGET:
            return "is over its budget"
        case NoticeKind.STALE_CHECKPOINT:
            return "has saved nothing for long"
        case _:
            return _OUTCOMES.get(event.state, f"is {event.state.value}")


def _interrupted(notice: Notice) -> str:
    if len(notice.interruptions) < 2:
        return ""
    since = min(each.at for each in notice.interruptions)
    return f", interrupted {len(notice.interruptions)} times since {write_time(since)}"


def _machine(machine: EventMachine | None) -> str:
    if machine is None:
        return ""
    parts = (machine.instance_type, machine.purchase, machine.zone, machine.instance_id or machine.node)
    return ", ".join(each for each in parts if each)


def _progress(notice: Notice) -> str:
    progress = notice.event.progress
    if progress is None:
        return ""
    of_all = f" of {progress.total_steps}" if progress.total_steps else ""
    return f"step {progress.step}{of_all}"


def _cost(cost: EventCost) -> str:
    usd = f"{cost.usd:.2f} USD"
    if cost.basis is CostBasis.LIMIT:
        return f"at most {usd}"
    return f"{usd}, and what has no known price" if cost.basis is CostBasis.UNKNOWN else usd


def _lasted(notice: Notice) -> str:
    if notice.first_at is None or notice.event.time - notice.first_at < _MINUTE:
        return ""
    return write_minutes(notice.event.time - notice.first_at)
