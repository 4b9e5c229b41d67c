"""Stops that no host confirms.

A host whose agent lost its connection, whose GPU fell off the bus or whose Docker hangs never reports its task as
STOPPED (aws/containers-roadmap#2040, aws/amazon-ecs-agent#339, NVIDIA/nvidia-docker#1553); EC2 calls it running.

not STOPPED when its stop time-out is over
  ├─ EC2 said that the host ends, HOST_END_GRACE ago, and the target still shows the task ──▶ the task is lost
  ├─ after CONFIRMED_WITHIN, on a machine of our own, unless the target does not know the task ──▶ the other jobs
  │      leave the machine, then it is terminated
  ├─ after TOLD_AFTER ──▶ an alert names the host; the job waits: a task of it may live there
  ├─ after TOLD_AFTER, a pod of a job that ends anyway ──▶ the job ends, and its reason names what may live on
  ├─ after STOP_LIMIT ──▶ the job ends, and its reason names what may live on
  └─ somebody gives the pod up, after CONFIRMED_WITHIN ──▶ the task is lost; the job ends, or goes on

A stack whose cluster was changed finds the task no more, which may live on in the cluster before, and cannot stop it.

A cluster keeps a pod on a node that is out of reach until the node is removed, which nothing but a cloud's controller
does ("Node conditions"; kubernetes/enhancements KEP-2268). Its attempt writes checkpoints under a prefix of its own.

Once the agent is back, the cluster reports the stop. Once the host is gone, EC2 says so.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.durations import write_duration
from relaunch.core.jobs.attempt import HeldStop, IntentKind, StopKind
from relaunch.core.jobs.effects import AbandonMachine, Effect
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import (
    POLL_INTERVAL,
    Decision,
    ignore,
    is_polled,
    move,
    set_next_check,
    stop_effect,
    stopping_since,
    watch_closely,
)
from relaunch.core.lifecycle.events import TaskGivenUp, TaskMissing, TimePassed
from relaunch.core.lifecycle.gangs import has_gang
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.core.lifecycle.stopping import STOP_TIMEOUT, end_with_task, follow_stop, task_lost
from relaunch.core.lifecycle.verdicts import VERDICT_WAIT, decide_held
from relaunch.core.revisions.revision import STOP_TIMEOUT_SECONDS, find_stop_timeout

CONFIRMED_WITHIN = timedelta(minutes=10)
"""How long after its stop time-out a task may take to be STOPPED: agents disconnect "several times per hour as part of
normal operation" ("Amazon ECS container instance state change events", ECS Developer Guide)."""
TOLD_AFTER = timedelta(hours=1)
"""How long after its stop time-out a task may take to be STOPPED until an alert names it and its host."""
STOP_LIMIT = timedelta(hours=24)
"""How long after its stop time-out a job waits for a task to be STOPPED: as long as for a machine. Outages of ECS in
which agents are away last for hours; a job that ended in one would leave a task behind that trains on."""
HOST_END_GRACE = timedelta(minutes=10)
"""How long after the end of its host a task may be reported as running: accelerated instances take up to six minutes
to terminate, and ECS reports their tasks as STOPPED about a minute after that."""
UNTOLD_HOST_END_GRACE = timedelta(minutes=30)
"""The same while the target cannot be asked: only what it describes has the time of the end, and the exit codes."""

# What ended unseen is known by the next look only, of which some fail; so do calls of StopTask, and it may be lost.
_LONGEST_INTERVAL = timedelta(minutes=5)

UNCONFIRMED = "stop not confirmed"
"""The timeline event of a job whose task may live on, at the alert, and when the job ends for it."""
HOST_ENDED = "its host ended, and the cluster did not report its stop"
"""The reason of a stop that only the end of the host tells."""

ELSEWHERE = "the stack's cluster or namespace was changed, and its pod may live on where it was"
"""Why a job stops whose task was seen in a cluster that the stack does not ask any more."""

# How the reason of a job ends after the alert.
_WHAT_TO_DO = "; see to that host"
# A task that stops for the user, or because the time is over: the job does not go on elsewhere.
_ENDS = {
    IntentKind.CANCEL: (JobState.CANCELLED, StopKind.CANCELLED),
    IntentKind.TIME_OUT: (JobState.TIMED_OUT, StopKind.TIME_OUT),
}


def is_host_gone(job: Job, event: TimePassed | TaskMissing, now: datetime) -> bool:
    """Return whether EC2 ended the hosts of the tasks so long ago that nobody will report the end of the tasks."""
    attempt = job.current_attempt
    ended_at = attempt.last_host_ended_at or attempt.host_ended_at
    is_untold = isinstance(event, TimePassed) and not event.is_described
    grace = UNTOLD_HOST_END_GRACE if is_untold else HOST_END_GRACE
    ranks = attempt.placement.ranks
    live = attempt.live_ranks or range(len(ranks))
    if has_gang(attempt) and any(ranks[each].instance_id not in attempt.lost_instances for each in live):
        return False
    return ended_at is not None and now - ended_at >= grace


def lose_host(job: Job, now: datetime) -> Decision:
    """Close the attempt of a task whose host has ended; several may have run until the last of theirs did."""
    attempt = job.current_attempt
    return task_lost(job, attempt.last_host_ended_at or attempt.host_ended_at or now, HOST_ENDED, now)


def is_unconfirmed(job: Job, now: datetime) -> bool:
    """Return whether the stop of the task takes longer than a host that works takes to confirm it."""
    return job.state is JobState.STOPPING and now >= _stop_due_at(job) + CONFIRMED_WITHIN


def wake_stopping(job: Job, event: TimePassed, now: datetime, _limits: StackLimits) -> Decision:
    """Call StopTask again if Relaunch stopped the task; give up its host, at last the task itself.

    A task that the target told to have stopped needs none of that: its verdict waited, and is due.
    """
    held = job.current_attempt.held
    if held is not None:
        return _wake_held(job, held, event, now)
    if is_host_gone(job, event, now):
        return lose_host(job, now)
    due_at = _stop_due_at(job)
    if now >= due_at + (TOLD_AFTER if _ends_anyway(job, now) else STOP_LIMIT):
        return _end_unconfirmed(job, now)
    if now >= due_at + TOLD_AFTER and not job.reason.endswith(_WHAT_TO_DO):
        return _tell(job, now)
    wake_at = _next_look(job, now)
    # While the target cannot be asked, the task may have stopped long ago.
    abandoned = _abandoned(job, now) if event.is_described or now >= due_at + UNTOLD_HOST_END_GRACE else ()
    intent = job.current_attempt.intent
    if intent is None or not _is_repetition_due(job, now):
        return set_next_check(job, wake_at, abandoned)
    effects = (*stop_effect(job, intent.detail), *abandoned)
    job = _with_first_stop(job)
    return move(job, job.state, now, event="stop repeated", detail=intent.detail, wake_at=wake_at, effects=effects)


def _ends_anyway(job: Job, now: datetime) -> bool:
    """Return whether nothing is launched after the pod of the job, so that only its cost is left to wait for."""
    intent = job.current_attempt.intent
    is_over = bool(job.cancel_requested) or (intent is not None and intent.kind in _ENDS)
    return job.definition.target.capabilities.runs_pods and (is_over or out_of_time(job, now) is not None)


def why_not_given_up(job: Job, now: datetime) -> str:
    """Return why the task of a job is not taken for lost, though somebody says so; empty if it is."""
    attempt = job.attempt
    if not job.definition.target.capabilities.runs_pods:
        return "its task is on an EC2 instance: terminate that, and the job goes on or ends"
    if job.state is not JobState.STOPPING or attempt is None:
        return (
            f"its task is not stopping: the job is {job.state}; a pod of a node that is out of reach is after minutes"
        )
    if job.definition.checkpoint_uri is None:
        return (
            "the definition has no `checkpoint`: nothing keeps what two pods write apart; remove the node, or the pod "
            "by `kubectl delete pod --force` once it cannot run"
        )
    if not is_unconfirmed(job, now):
        return f"its node may confirm the stop until {_stop_due_at(job) + CONFIRMED_WITHIN:%H:%M} UTC"
    return ""


def give_up_task(job: Job, event: TaskGivenUp, now: datetime, _limits: StackLimits) -> Decision:
    """Close the attempt of a task that may live on: the next one writes under another prefix."""
    if why := why_not_given_up(job, now):
        return ignore(job, why)
    # Should its node come back.
    stops = stop_effect(job, event.reason)
    lost = task_lost(job, now, f"{event.reason}; task {job.current_attempt.task_id} may live on {_host(job)}", now)
    return replace(lost, job=replace(lost.job, pending=(*stops, *lost.job.pending)))


def describe_unconfirmed(job: Job, now: datetime) -> tuple[str, ...]:
    """Return what somebody can do about a pod whose stop its node does not confirm; empty if it is not overdue."""
    if not (job.definition.target.capabilities.runs_pods and is_unconfirmed(job, now)):
        return ()
    attempt = job.current_attempt
    if attempt.intent is not None and attempt.intent.detail == ELSEWHERE:
        return (
            "set the cluster and the namespace of the stack back and deploy: its pod stops, and the job goes on",
            f"or delete the Job {attempt.task_id} in the cluster before, then `relaunch lost {job.job_id}`",
        )
    since = f"{_host(job)} does not confirm the stop of its pod since {_stop_due_at(job):%Y-%m-%d %H:%M} UTC"
    return (
        f"{since}: `kubectl get nodes` says whether it is out of reach; once it is removed, the job goes on or ends",
        f"`relaunch lost {job.job_id}` takes the pod for lost, which may live on and cost: the job goes on without it",
    )


def _host(job: Job) -> str:
    attempt = job.current_attempt
    return attempt.instance_id or attempt.placement.instance_id or attempt.node or "an unknown host"


def _wake_held(job: Job, held: HeldStop, event: TimePassed, now: datetime) -> Decision:
    """Make the verdict that waited, once it has waited long enough."""
    verdict_at = (job.current_attempt.held_since or stopping_since(job)) + VERDICT_WAIT
    if now < verdict_at:
        # EC2 may not answer then. The time of an end that has none yet may come with its event.
        known = replace(event.host, has_ended=False) if event.host is not None else None
        return set_next_check(decide_held(job, held, known, now)[0], verdict_at)
    noted, stop = decide_held(job, held, event.host, now)
    return follow_stop(noted, stop, now)


def _with_first_stop(job: Job) -> Job:
    """Return the job before its stop is repeated, which is not the first time that it is sent."""
    return replace(job, attempt=replace(job.current_attempt, stop_sent_at=stopping_since(job)))


def _stop_due_at(job: Job) -> datetime:
    """Return when the host should have ended the task: SIGKILL follows SIGTERM after the stop time-out."""
    timeout = find_stop_timeout(job.definition, job.revision)
    return stopping_since(job) + timedelta(seconds=timeout.seconds if timeout else STOP_TIMEOUT_SECONDS)


def _next_look(job: Job, now: datetime) -> datetime:
    """Return when to look next: after as long as it took until now, five minutes at most, or at the next bound."""
    due_at = _stop_due_at(job)
    bounds = (due_at + CONFIRMED_WITHIN, due_at + TOLD_AFTER, due_at + STOP_LIMIT)
    again = watch_closely(job, now + min(max(now - stopping_since(job), STOP_TIMEOUT), _LONGEST_INTERVAL), now)
    return min(again, *(each for each in bounds if each > now))


def _is_repetition_due(job: Job, now: datetime) -> bool:
    """Return whether the task is to be stopped again: at each look, later each time after twice as long.

    A polled job has a look every minute: it is always the latter. On a host that has ended nobody is there to stop it.
    """
    attempt = job.current_attempt
    living = (attempt.placement.ranks[each].instance_id for each in attempt.live_ranks)
    if attempt.host_ended_at is not None and all(each in attempt.lost_instances for each in living):
        return False
    since = now - stopping_since(job)
    due = STOP_TIMEOUT
    while due * 2 <= since:
        due *= 2
    if is_polled(job):
        return due <= since < due + POLL_INTERVAL
    return now < _stop_due_at(job) + TOLD_AFTER or due <= since < due + _LONGEST_INTERVAL


def _abandoned(job: Job, now: datetime) -> tuple[Effect, ...]:
    attempt = job.current_attempt
    ranks = attempt.placement.ranks
    machines = [ranks[each].machine_id for each in attempt.live_ranks or range(len(ranks))]
    # What the target does not show has no host that fails to confirm: it is lost before long, and its machine released,
    # unless it has answered no look since.
    is_missing = attempt.missing is not None and now - attempt.missing[1] <= 2 * _LONGEST_INTERVAL
    if not all(machines) or is_missing or not is_unconfirmed(job, now):
        return ()
    return tuple(AbandonMachine(each, f"it does not confirm the stop of {attempt.task_id}") for each in machines)


def _tell(job: Job, now: datetime) -> Decision:
    """Say where the task may live on, and stop it again; the job waits on: nothing may be launched beside the task."""
    intent = job.current_attempt.intent
    stops = stop_effect(job, intent.detail) if intent is not None else ()
    reason = _describe(job, now)
    waits = replace(_with_first_stop(job), reason=reason)
    effects = (*stops, *_abandoned(job, now))
    return move(waits, job.state, now, event=UNCONFIRMED, detail=reason, wake_at=_next_look(job, now), effects=effects)


def _end_unconfirmed(job: Job, now: datetime) -> Decision:
    intent = job.current_attempt.intent
    verdict = out_of_time(job, now)
    state = verdict.state if verdict is not None else JobState.FAILED
    kind = StopKind.HOST_LOST
    if intent is not None:
        state, kind = _ENDS.get(intent.kind, (state, kind))
    if job.cancel_requested:
        state, kind = _ENDS[IntentKind.CANCEL]
    return end_with_task(job, state, kind, _describe(job, now), now, event=UNCONFIRMED)


def _describe(job: Job, now: datetime) -> str:
    attempt = job.current_attempt
    intent = attempt.intent
    why = job.cancel_requested or (intent.detail if intent else "the task was stopping")
    waited = write_duration(timedelta(minutes=(now - stopping_since(job)) // timedelta(minutes=1)))
    return (
        f"{why}; its stop was not confirmed within {waited}: task {attempt.task_id} may live on, and cost, on "
        f"{_host(job)}{_WHAT_TO_DO}"
    )
