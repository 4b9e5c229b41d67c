"""What a stop means for the job, and when that is decided: the events of ECS and those of EC2 come in no order.

EventBridge delivers each at least once, late or never. The times in the events say what ended a program. So that
it does not matter which of them is handled first, a verdict that EC2 may change is made after what EC2 may still say
of that time, and EC2 is asked before.

task stopped
  ├─ whatever EC2 says, the stop means the same ──▶ decided
  ├─ less than NOTICE_LEAD after the program ended ──▶ decided NOTICE_LEAD after it, because a notice until then counts
  ├─ EC2 says that the instance ends, or will be interrupted ──▶ decided by when, and when the program ended
  ├─ EC2 says that the instance runs
  │    ├─ the program exited by itself, with any code ──▶ decided: a job that has finished waits for seconds
  │    └─ a signal ended it ──▶ EC2 is asked again after VERDICT_WAIT
  └─ EC2 does not answer ──▶ asked again after VERDICT_WAIT, then decided by what is known

The target is asked for the stop again then; if it does not answer either, that decides which it told before.
"""

import math
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, HeldStop, Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import HostObservation, ReportedCause, StopReport, TaskObservation
from relaunch.core.lifecycle.decision import Decision, move, set_next_check
from relaunch.core.lifecycle.gangs import (
    MET_WITHIN,
    POD_REPLACED,
    as_it_ended,
    had_ended,
    has_gang,
    has_other_pod,
    is_gang,
)
from relaunch.core.lifecycle.restart_policy import is_interruption
from relaunch.core.lifecycle.stop_reason import (
    EXIT_SIGKILL,
    EXIT_SIGTERM,
    NOTICE_LEAD,
    NOTICE_WINDOW,
    classify_stop,
    ended_at,
    exit_code_of,
    follows,
)

VERDICT_WAIT = timedelta(minutes=1)
"""How long a verdict waits for what EC2 may tell yet, if a signal ended the task or EC2 does not answer.

Its events come within seconds, one whose function failed is received again after half a minute, and what it describes
is behind by seconds; a job that fails by itself is told so late, and its machine is paid for that long.
"""
_SIGNALS = frozenset({EXIT_SIGTERM, EXIT_SIGKILL})
# The shutdown of a host ends a sidecar with an error too.
_OF_THE_CONTAINERS = frozenset({StopKind.USER_ERROR, StopKind.SIDECAR})


def judge(job: Job, seen: TaskObservation, now: datetime) -> Stop:
    """Classify the stop of the job's task."""
    return _judge(job, job.current_attempt, seen, now)


def depends_on_host(job: Job, seen: TaskObservation, now: datetime) -> bool:
    """Return whether the stop would mean something else if EC2 had ended the instance by then, or warned of it."""
    kind = judge(job, seen, now).kind
    return any(_differ(kind, other) for other in _kinds_by_notice(job, seen, now))


def _kinds_by_notice(job: Job, seen: TaskObservation, now: datetime) -> tuple[StopKind, StopKind]:
    """Return what the stop means if EC2 had ended the instance when the program ended, and if it had warned then."""
    attempt = job.current_attempt
    at = ended_at(seen, now)
    is_ended = replace(attempt, host_ended_at=at)
    is_warned = replace(attempt, warned_at=at)
    return _judge(job, is_ended, seen, now).kind, _judge(job, is_warned, seen, now).kind


def _judge(job: Job, attempt: Attempt, seen: TaskObservation, now: datetime) -> Stop:
    # Of several ranks each was seen as it ended (core.lifecycle.gangs); one alone may be a part of them.
    is_several = has_gang(attempt) or (is_gang(job) and job.definition.target.capabilities.runs_pods)
    is_own = not is_several and had_ended(seen, attempt.intent)
    seen = as_it_ended(seen) if is_own else seen
    if has_other_pod(job, seen) and exit_code_of(seen, job.definition.container) != 0:
        # What the other one ended with is no word of those that had met.
        seen = replace(seen, report=StopReport(POD_REPLACED, seen.report.causes | {ReportedCause.INTERRUPTED}))
    return classify_stop(
        seen,
        job.definition.container,
        attempt,
        now,
        essential=job.revision.essential_names,
        machine_exit_codes=frozenset(job.definition.retry.machine_exit_codes),
        target=job.definition.target,
        is_part=_was_part(job, attempt, seen, now),
    )


def _was_part(job: Job, attempt: Attempt, seen: TaskObservation, now: datetime) -> bool:
    """Return whether the nodes of a job could not all meet: some had no task, or the launch did not come to its end.

    The pods of a job are one task, and find the first by a name that the last step of their launch gives them. If all
    have ended with 0 they had it: that step may have had an effect before it was answered.
    """
    if not job.definition.target.capabilities.runs_pods:
        return len(attempt.placement.ranks) < job.definition.nodes
    placed_at = attempt.placement.placed_at
    has_finished = exit_code_of(seen, job.definition.container) == 0
    if not is_gang(job) or placed_at is None or seen.started_at is None or has_finished:
        return False
    at = ended_at(seen, now)
    return at < placed_at and at - seen.started_at >= MET_WITHIN


def _differ(one: StopKind, other: StopKind) -> bool:
    # Whether an instance that ended had been warned of changes nothing for the job.
    return one is not other and not (is_interruption(one) and is_interruption(other))


def with_notices(job: Job, seen: TaskObservation, host: HostObservation | None, now: datetime) -> Job:
    """Return the job with what EC2, or the target, says of the end of the instance, beside what their events did.

    Of several warnings the one counts that the end of the program follows, of the ends of the instance the first. An
    instance that ends since nobody knows when is taken to have ended the program, if that is not long ago: one that had
    finished finishes again.
    """
    return _with_notices(job, ended_at(seen, now), host, now, seen.warned_at)


def decide_held(job: Job, held: HeldStop, host: HostObservation | None, now: datetime) -> tuple[Job, Stop]:
    """Return the job with what is known about its instance, and its stop by that."""
    noted = _with_notices(job, held.program_ended_at, host, now)
    return noted, held_stop(noted.current_attempt, held)


def _with_notices(
    job: Job, at: datetime, host: HostObservation | None, now: datetime, warned_at: datetime | None = None
) -> Job:
    host = host or HostObservation()
    attempt = job.current_attempt
    window = job.definition.target.capabilities.notice_window
    warned_at = _relevant(at, window, attempt.warned_at, *host.warnings, warned_at)
    host_ended_at = min((each for each in (attempt.host_ended_at, host.ended_at) if each is not None), default=None)
    if host.has_ended and host_ended_at is None and now - at <= NOTICE_WINDOW:
        host_ended_at = at
    return replace(job, attempt=replace(attempt, warned_at=warned_at, host_ended_at=host_ended_at))


def _relevant(at: datetime, window: timedelta, *reported: datetime | None) -> datetime | None:
    known = sorted(each for each in reported if each is not None)
    return next((each for each in known if follows(at, each, window)), known[0] if known else None)


def host_of(job: Job) -> str:
    """Return the EC2 instance ID of the task's host, empty if it is not known, or on Kubernetes."""
    attempt = job.current_attempt
    return attempt.instance_id or attempt.placement.instance_id


def may_ask(job: Job, seen: TaskObservation, now: datetime) -> bool:
    """Return whether EC2 is to be asked of the instance: its answer may change the verdict, and is not too early.

    What EC2 describes is behind by seconds too.
    """
    return now >= _settled_at(job, seen, now) and depends_on_host(job, seen, now)


def _settled_at(job: Job, seen: TaskObservation, now: datetime) -> datetime:
    """Return from when on no notice is given any more that counts as the cause of the program's end."""
    since = job.current_attempt.held_since or now
    # The clock of an instance may be ahead.
    return min(ended_at(seen, since) + NOTICE_LEAD, since + VERDICT_WAIT)


def hold(job: Job, seen: TaskObservation, stop: Stop, host: HostObservation | None, now: datetime) -> Decision | None:
    """Let the verdict wait; None if it need not, or has waited. The target describes the task again then."""
    attempt = job.current_attempt
    instance_id = host_of(job)
    # Where the events of a start were lost the instance is looked up once EC2 may be asked.
    is_on_one = bool(instance_id) or (attempt.node is not None and job.definition.target.capabilities.runs_on_ec2)
    if not is_on_one or not depends_on_host(job, seen, now):
        return None
    since = attempt.held_since or now
    until = _settled_at(job, seen, now)
    if now >= until:
        is_by_signal = stop.kind in _OF_THE_CONTAINERS and stop.exit_code in _SIGNALS
        is_answered = host is not None and host.is_answered
        until = since + VERDICT_WAIT if is_by_signal or not is_answered else now
    if now >= until:
        return None
    what = "no exit code" if stop.exit_code is None else f"exit code {stop.exit_code}"
    detail = f"{what}; whether EC2 was taking {instance_id or 'its instance'} away is found out within a minute"
    stopped = HeldStop(stop, ended_at(seen, since), *_kinds_by_notice(job, seen, now))
    held = replace(job, attempt=replace(attempt, held_since=since, held=stopped), reason=detail)
    if attempt.held_since is not None:
        return set_next_check(held, until)
    return move(held, JobState.STOPPING, now, event="task stopped", detail=detail, wake_at=until)


def held_stop(attempt: Attempt, held: HeldStop) -> Stop:
    """Return the stop that the target reported, by what is known of the instance now."""
    at = held.program_ended_at
    # The end of an instance explains what went before it by so much, however late the verdict is made.
    lead = VERDICT_WAIT if held.stop.exit_code is None else NOTICE_LEAD
    if attempt.host_ended_at is not None and attempt.host_ended_at - at <= lead:
        return replace(held.stop, kind=held.if_host_ended)
    return replace(held.stop, kind=held.if_warned) if follows(at, attempt.warned_at) else held.stop


def seconds_to_verdict(job: Job, now: datetime) -> int:
    """Return in how many seconds the end of its task is to be handled again, 0 if `reconcile` is soon enough."""
    if job.attempt is None or job.attempt.held_since is None or job.attempt.stop is not None or job.wake_at is None:
        return 0
    seconds = math.ceil((job.wake_at - now).total_seconds())
    return seconds if 0 < seconds <= NOTICE_LEAD.total_seconds() else 0


def wake_of(job: Job, at: datetime) -> datetime:
    """Return when the job is looked at, at `at` at the latest: another event does not put its verdict off."""
    is_held = job.attempt is not None and job.attempt.held_since is not None
    return min(job.wake_at or at, at) if is_held else at
