"""Bugs in what a job's item, its timeline and its training are told, which the simulation must find."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from relaunch.core.jobs.changes import JobChange, Outbox
from relaunch.core.jobs.job import Job
from relaunch.core.launches import launch_plan
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle import decision as deciding
from relaunch.core.lifecycle import explanation, wait_explanation
from relaunch.core.lifecycle.change_events import JobStateChange, event_of
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.selection import selection as selecting
from relaunch.core.selection.rejection import Rejection
from relaunch.core.triggers.events import DirectRequest, RetriedJob
from relaunch.entrypoints import job_api, task_changes
from relaunch.ports import JobDependencies
from relaunch.usecases import observe_task as observing
from relaunch.usecases import retry_job as retrying
from relaunch.usecases import send_changes
from relaunch.usecases import send_placement as sending
from relaunch.usecases import submit_job as submitting
from relaunch.usecases.advance_job import JobLifecycle
from relaunch.usecases.send_changes import ChangeSender
from simulation.broken_parts import Planting, action, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, writes


def _saved(**members: Any) -> Planting:
    """Save every job with these members."""
    return lambda: writes(lambda _before, decision: replace(decision, job=replace(decision.job, **members)))


def _events_with(**members: Any) -> Planting:
    """Send every event with these members."""
    return replaced(send_changes, "event_of", lambda make: lambda *of: replace(make(*of), **members))


def _of_another_type(make: Callable[..., JobStateChange]) -> Callable[..., JobStateChange]:
    def event(*of: Any) -> JobStateChange:
        made = make(*of)
        machine = made.machine and replace(made.machine, instance_type="p5.48xlarge")
        return replace(made, machine=machine)

    return event


def _first_start_forgotten(_before: Job, decision: Decision) -> Decision:
    totals = replace(decision.job.totals, first_started_at=None)
    return replace(decision, job=replace(decision.job, totals=totals))


def _dearest_everywhere(_before: Job, decision: Decision) -> Decision:
    attempt = decision.job.attempt
    if attempt is None or not attempt.placement.usd_per_hour_by_zone:
        return decision
    prices = attempt.placement.usd_per_hour_by_zone
    dearest = replace(attempt.placement, usd_per_hour_by_zone=dict.fromkeys(prices, max(prices.values())))
    return replace(decision, job=replace(decision.job, attempt=replace(attempt, placement=dearest)))


def _without_note(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda definition, job, _note, **named: original(definition, job, "", **named)


def _since_kept(before: Job, decision: Decision) -> Decision:
    return replace(decision, job=replace(decision.job, state_since=before.state_since))


def _without_since(item: Any, **members: Any) -> Any:
    return item if members.keys() == {"since"} else replace(item, **members)


def _environment_without(prefix: str) -> Planting:
    def make(original: Any) -> Any:
        return lambda job: {name: value for name, value in original(job).items() if not name.startswith(prefix)}

    return replaced(launch_plan, "training_environment", make)


def _from_the_beginning(original: Any) -> Any:
    def retry(*parts: Any) -> Any:
        found = original(*parts)
        return replace(found, resume_from=()) if isinstance(found, RetriedJob) else found

    return retry


def _without_trigger_facts(original: Any) -> Any:
    def retry(*parts: Any) -> Any:
        found = original(*parts)
        return replace(found, environment={}) if isinstance(found, RetriedJob) else found

    return retry


def _identity_of_each_request() -> AbstractContextManager[object]:
    numbers, original = itertools.count(), job_api.retry_job

    def retry_job(job: Job, asked: DirectRequest, *parts: Any, **chosen: Any) -> Any:
        return original(job, replace(asked, identity=f"{asked.identity} {next(numbers)}"), *parts, **chosen)

    return patched(job_api, retry_job=retry_job)


def _looking_at_machines(original: Callable[..., object]) -> Callable[..., object]:
    def observe(seen: TaskObservation, deps: JobDependencies) -> object:
        deps.machines.load_living(1)
        return original(seen, deps)

    return observe


def _dropped(_sender: ChangeSender, job: Job) -> Outbox:
    _sender_send(_sender, job)
    return Outbox(job.outbox.sequence)


def _numbered_alike(outbox: Outbox, change: JobChange) -> Outbox:
    return replace(_with_change(outbox, change), sequence=1)


def _sent_and_saved(lifecycle: JobLifecycle, job: Job, decision: Decision, now: datetime) -> Job:
    unsent = decision.job.outbox.unsent
    lifecycle.deps.job_events.send([event_of(decision.job, change) for change in unsent])
    return _save(lifecycle, job, decision, now)


_sender_send = ChangeSender.send
_with_change = Outbox.with_change
_save = JobLifecycle.save

RECORD_BUGS = (
    PlantedBug(
        "event-dropped",
        "a change that EventBridge did not take is forgotten",
        changed(ChangeSender, send=_dropped),
        "every change of a job is one event",
        20,
    ),
    PlantedBug(
        "event-not-sent-again",
        "a change that EventBridge did not take is sent with the next one alone",
        changed(JobLifecycle, leave=lambda _self, job: job),
        "every change of a job is one event",
        30,
    ),
    PlantedBug(
        "event-without-target",
        "events lack the target that their schema requires",
        _events_with(target=None),
        "an event keeps the published schema",
    ),
    PlantedBug(
        "event-of-another-target",
        "events name another target than the definition's",
        _events_with(target="acs"),
        "an event names definition and target",
    ),
    PlantedBug(
        "event-of-another-type",
        "events name another type than that of the instance",
        replaced(send_changes, "event_of", _of_another_type),
        "an event names the machine as EC2 does",
    ),
    PlantedBug(
        "event-number-kept",
        "the number of the changes of a job is not advanced",
        changed(Outbox, with_change=_numbered_alike),
        "an event that is sent again is the same",
    ),
    PlantedBug(
        "event-before-its-change",
        "a change is sent before it is saved, which may fail then",
        changed(JobLifecycle, save=_sent_and_saved),
        "no event comes before its change is saved",
    ),
    PlantedBug(
        "retry-from-the-beginning",
        "a retry does not resume from the checkpoints of the job that it retries",
        replaced(retrying, "retry", _from_the_beginning),
        "an attempt resumes from the newest complete checkpoint",
        120,
    ),
    PlantedBug(
        "retry-without-its-trigger",
        "a retry does not get what the trigger of the job gave its training",
        replaced(retrying, "retry", _without_trigger_facts),
        "a retry has the inputs and the trigger of the job it retries",
        20,
    ),
    PlantedBug(
        "retry-twice-is-two-jobs",
        "a request to retry a job that is sent twice starts two jobs",
        _identity_of_each_request,
        "one retry is one job",
        20,
    ),
    PlantedBug(
        "price-of-the-dearest-zone",
        "a task costs what the dearest zone does",
        lambda: writes(_dearest_everywhere),
        "a task costs what its zone does",
    ),
    PlantedBug(
        "cancelling-raises",
        "cancelling a job whose task is stopping raises an exception",
        action("cancel_stopping", lambda *_parts: {}["there is no such action"]),
        "no unhandled exception",
        60,
    ),
    PlantedBug(
        "cancellation-unknown",
        "a request to cancel an open job is answered as if there was none",
        changed(job_api, cancel_job=lambda *_parts: None),
        "a request that is right is granted",
    ),
    PlantedBug(
        "cancellation-forgotten",
        "a cancellation is answered and not saved",
        _saved(cancel_requested=""),
        "a cancellation is remembered",
        30,
    ),
    PlantedBug(
        "state-since-kept",
        "a job is said to be in its state since it was in the one before",
        lambda: writes(_since_kept),
        "a state is known since when",
    ),
    PlantedBug(
        "transition-untold",
        "a new state is saved without an entry in the timeline",
        lambda: writes(lambda _before, decision: replace(decision, timeline=())),
        "a new state is in the timeline",
    ),
    PlantedBug(
        "entry-without-event",
        "an entry of the timeline does not say what happened",
        replaced(deciding, "TimelineEntry", lambda make: lambda at, state, _event, *rest: make(at, state, "", *rest)),
        "a timeline entry tells what happened, and when",
    ),
    PlantedBug(
        "first-start-forgotten",
        "when a job first ran is forgotten",
        lambda: writes(_first_start_forgotten),
        "the first start is remembered",
    ),
    PlantedBug(
        "wait-restarts",
        "a job that goes on waiting is said to wait since now",
        changed(deciding, replace=_without_since),
        "a wait is known since when",
        30,
    ),
    PlantedBug(
        "explanation-raises",
        "why a job waits cannot be explained",
        changed(wait_explanation, _WAITS={}),
        "no unhandled exception",
    ),
    PlantedBug(
        "explanation-of-nothing",
        "what a running job waits for is left out",
        replaced(
            explanation, "_explain_running", lambda original: lambda *parts: replace(original(*parts), waiting_for="")
        ),
        "every job can be explained",
    ),
    PlantedBug(
        "task-events-ignored",
        "the events of tasks change nothing: jobs are looked at by the schedule alone",
        changed(observing, task_seen=lambda *_parts: None),
        "what ECS told is known",
    ),
    PlantedBug(
        "inputs-lost",
        "a training does not get the inputs of its job",
        _environment_without("RELAUNCH_INPUT_"),
        "a training gets its inputs",
    ),
    PlantedBug(
        "trigger-facts-lost",
        "a training does not get the facts of the push that started it",
        _environment_without("RELAUNCH_GIT_"),
        "a training knows what started it",
    ),
    PlantedBug(
        "command-lost",
        "a training runs the command of its task definition, whatever its definition says",
        replaced(sending, "plan_launch", lambda original: lambda job: replace(original(job), command=())),
        "a training runs the command of its definition",
    ),
    PlantedBug(
        "nothing-fits",
        "no instance type satisfies any job",
        changed(selecting, TYPE_FILTERS=(("manufacturer", lambda *_parts: Rejection("it has no NVIDIA GPU")),)),
        "every end is deserved",
    ),
    PlantedBug(
        "call-beyond-the-role",
        "observe_task asks for all living machines, for which its role has no index",
        replaced(task_changes, "observe_task", _looking_at_machines),
        "a function's role allows its calls",
    ),
    PlantedBug(
        "event-without-outcome",
        "what became of an event is recorded without words",
        replaced(submitting, "Submission", _without_note),
        "whoever looks for an event finds what became of it",
    ),
)
