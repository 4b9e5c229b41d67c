"""The words of a notice, plain: each receiver puts them into the form of its service."""

from datetime import UTC, datetime, timedelta

from relaunch.core.definitions.durations import write_minutes
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import cut
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.change_events import EventCost, EventMachine
from relaunch.core.notices.notice import Notice
from relaunch.core.records import dataclass

_MAX_REASON = 600
_MAX_FACT = 200
_LEAST_USD = 0.005
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
    advice: str
    """What comes next by itself, or what to do; empty if there is nothing to say."""
    facts: tuple[tuple[str, str], ...]
    """Names and values, of what is known."""
    page_url: str
    """The job's page, empty if there is none."""
    commands: tuple[str, ...]
    """What to type to learn more, and to start the job again where it failed."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines between the title and what leads further: the page and the commands."""
        facts = tuple(f"{name}: {value}" for name, value in self.facts)
        return (*(each for each in (self.reason, self.advice) if each), *facts)

    @property
    def plain(self) -> str:
        """Return all of it, the title first."""
        page = (self.page_url,) if self.page_url else ()
        return "\n".join((self.title, *self.lines, *page, *self.commands))


def write_text(notice: Notice) -> NoticeText:
    """Return the words of a notice."""
    event = notice.event
    facts = [
        ("Definition", event.definition),
        ("Started by", event.trigger.summary),
        ("Attempt", str(event.attempt) if event.attempt else ""),
        ("Machine", _machine(event.machine)),
        ("Resumed from", _progress(notice)),
        ("Saved", _saved(notice)),
        ("Interruptions", str(notice.all_interruptions) if notice.all_interruptions else ""),
        ("Cost so far", _cost(event.cost)),
        ("Time so far", _lasted(notice)),
        ("Checkpoints and results", event.checkpoints or "" if event.state.is_final else ""),
        ("At", write_time(event.time)),
    ]
    title = f"{event.job_id} {_what(notice)}"
    return NoticeText(
        title=f"Test: {title}" if notice.is_test else title,
        reason=cut(" ".join(notice.reason.split()), _MAX_REASON),
        advice=_advise(notice),
        facts=tuple((name, cut(" ".join(value.split()), _MAX_FACT)) for name, value in facts if value),
        page_url=notice.page_url,
        commands=tuple(f"relaunch {each} {event.job_id}" for each in _commands(notice)),
    )


def write_usd(usd: float) -> str:
    """Return an amount as people read it: what costs something is not shown as nothing."""
    return "less than 0.01 USD" if 0 < usd < _LEAST_USD else f"{usd:.2f} USD"


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


def _commands(notice: Notice) -> tuple[str, ...]:
    if notice.kind is NoticeKind.FAILED:
        return ("explain", "logs", "retry")
    return ("explain", "logs") if notice.kind is NoticeKind.STALE_CHECKPOINT else ("explain",)


def _advise(notice: Notice) -> str:
    event = notice.event
    match notice.kind:
        case NoticeKind.INTERRUPTED if event.checkpoints:
            return "Nothing to do: it is started again, from its newest checkpoint if it has saved one."
        case NoticeKind.INTERRUPTED:
            return "Nothing to do: it is started again, from its beginning, for its definition has no checkpoint."
        case NoticeKind.FAILED:
            return "What to do: see why, by the job and its logs, and start it again by a retry."
        case NoticeKind.WAITS_TOO_LONG:
            return "It goes on waiting by itself; relaunch explain says what for."
        case NoticeKind.STALE_CHECKPOINT:
            return "What to do: see what it does, by its logs; it runs and is paid for until somebody stops it."
        case _:
            return ""


def _interrupted(notice: Notice) -> str:
    if len(notice.interruptions) < 2:
        return ""
    since = min(each.at for each in notice.interruptions)
    return f", interrupted {len(notice.interruptions)} times since {write_time(since)}"


def _machine(machine: EventMachine | None) -> str:
    if machine is None:
        return ""
    parts = (*machine.kind, machine.zone, machine.instance_id or machine.node)
    return ", ".join(each for each in parts if each)


def _progress(notice: Notice) -> str:
    progress = notice.event.progress
    if progress is None or not progress.step:
        return ""
    of_all = f" of {progress.total_steps}" if progress.total_steps else ""
    return f"step {progress.step}{of_all}"


def _saved(notice: Notice) -> str:
    progress = notice.event.progress
    if progress is None or progress.saved_step is None or progress.saved_at is None:
        return ""
    of_all = f" of {progress.total_steps}" if progress.total_steps else ""
    return f"step {progress.saved_step}{of_all}, at {write_time(progress.saved_at)}"


def _cost(cost: EventCost) -> str:
    if cost.basis is CostBasis.UNKNOWN and cost.usd == 0:
        return "unknown, for nothing of it has a known price"
    usd = write_usd(cost.usd)
    if cost.basis is CostBasis.LIMIT:
        return f"at most {usd}"
    return f"{usd}, and what has no known price" if cost.basis is CostBasis.UNKNOWN else usd


def _lasted(notice: Notice) -> str:
    if notice.first_at is None or notice.event.time - notice.first_at < _MINUTE:
        return ""
    return write_minutes(notice.event.time - notice.first_at)
