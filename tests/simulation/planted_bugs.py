"""Bugs that the simulation must find: each breaks the running application in one place.

`within` says among how many seeds from `first_seed` on the first one is that finds it, with some to spare for a
simulation that draws other numbers; `invariant` is the check that fails.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws import checkpoints, ecs_run_task, errors, sqs_batch
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.ecs_target import EcsTarget
from relaunch.core import decision as deciding
from relaunch.core import launch_plan, launching, lifecycle, restart_policy, selection, stop_reason, stopping, watching
from relaunch.core.caps import StackLimits
from relaunch.core.decision import Decision, move, quiet, stop_effect
from relaunch.core.definition import JobDefinition
from relaunch.core.job import (
    EffectKind,
    IntentKind,
    Job,
    JobState,
    Stop,
    StopIntent,
    StopKind,
    TimelineEntry,
    WaitReason,
)
from relaunch.core.job_events import HostEnded, HostWarned, JobEvent, TaskMissing, TaskSeen
from relaunch.core.launch import LaunchRefused, PlacementFailed, TaskObservation
from relaunch.core.restart_policy import RestartAfter, is_failure, is_interruption
from relaunch.core.stopping import follow_stop
from relaunch.core.trigger import TriggerEvent
from relaunch.core.trigger_rules import Match, derive_job_id, match
from relaunch.ports import JobWrite, World
from relaunch.usecases import advance_job as advancing
from relaunch.usecases import launch_attempt as launching_attempts
from relaunch.usecases import reconcile_jobs as reconciling
from relaunch.usecases import submit_job as submitting
from relaunch.usecases.submit_job import Submission
from relaunch_local.memory_jobs import InMemoryJobs
from simulation.planting import action_changed, guard_changed, patched, patched_in, rows_dropped, writes

Planting = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug: what is broken, how it is planted, and how soon which invariant finds it."""

    name: str
    broken: str
    plant: Planting
    invariant: str
    within: int
    first_seed: int = 0


def _replaced(owner: object, name: str, make: Callable[[Any], object]) -> Planting:
    """Replace an attribute by what `make` makes of it."""
    return lambda: patched(owner, **{name: make(getattr(owner, name))})


def _token_of_each_send() -> AbstractContextManager[None]:
    numbers = itertools.count()
    return patched(launch_plan, client_token=lambda *_parts: f"send-{next(numbers)}")


def _id_of_each_delivery() -> AbstractContextManager[None]:
    numbers = itertools.count()
    return patched(submitting, derive_job_id=lambda _identity, name: f"{name}-{next(numbers)}")


def _stop_without_intent(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def stop(job: Job, intent: StopIntent, now: datetime, *, event: str) -> Decision:
        decided = original(job, intent, now, event=event)
        attempt = replace(decided.job.current_attempt, intent=None)
        return replace(decided, job=replace(decided.job, attempt=attempt))

    return stop


def _any_version(job: Job, event: TaskSeen) -> bool:
    attempt, seen = job.attempt, event.observation
    if attempt is None or attempt.stop is not None or seen.started_by != job.started_by:
        return False
    return attempt.task_arn in {None, seen.task_arn}


def _seen_and_not_woken(job: Job, event: TaskSeen, now: datetime, limits: StackLimits) -> Decision:
    decided = watching.task_seen(job, event, now, limits)
    return decided if decided.job.state.is_final else replace(decided, job=replace(decided.job, wake_at=None))


def _apply_without_pending(job: Job, event: JobEvent, world: World) -> Job:
    decided = lifecycle.decide(job, event, world.clock.now(), world.limits)
    if decided.is_ignored:
        return job
    effects = decided.job.pending
    unmarked = replace(decided, job=replace(decided.job, pending=()))
    saved = world.jobs.save_job(advancing._write(job, unmarked, world))
    for effect in effects:
        advancing._perform(saved, effect, world)
    return saved


def _relaunch_on_warning(job: Job, event: HostWarned, now: datetime, _limits: StackLimits) -> Decision:
    stopping_task = stop_effect(job, "interruption warning")
    decided = follow_stop(job, Stop(StopKind.INTERRUPTION, event.at), now)
    return replace(decided, job=replace(decided.job, pending=(*stopping_task, *decided.job.pending)))


def _lost_when_missing(job: Job, _event: TaskMissing, now: datetime, _limits: StackLimits) -> Decision:
    return follow_stop(job, Stop(StopKind.HOST_LOST, now, stopped_reason="missing"), now)


def _lost_with_host(job: Job, event: HostEnded, now: datetime, _limits: StackLimits) -> Decision:
    return follow_stop(job, Stop(StopKind.HOST_LOST, event.at, stopped_reason="its host ended"), now)


@contextmanager
def _any_folder() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patched(checkpoints, _folders=_folders_of_anything, _is_complete=lambda *_parts: True))
        stack.enter_context(patched(S3Checkpoints, _read=lambda *_parts: b""))
        yield


def _folders_of_anything(job_prefix: str, sizes: Mapping[str, int]) -> Iterator[Any]:
    for key in sizes:
        if match := re.fullmatch(r"(attempt-(\d+)/step-(\d+)/).*", key.removeprefix(job_prefix)):
            yield checkpoints._Folder(int(match[3]), int(match[2]), job_prefix + match[1])


def _of_any_job(self: Any, checkpoint_uri: str, _job_id: str) -> str | None:
    bucket, prefix = checkpoints._split(checkpoint_uri)
    with errors.aws_errors("looking for checkpoints"):
        keys = [key for key, _ in self._list(bucket, prefix) if key.endswith("/manifest.json")]
    newest = max(keys, key=lambda key: key.rpartition("step-")[2], default=None)
    return f"s3://{bucket}/{newest.removesuffix('manifest.json')}" if newest else None


def _oldest_folder(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda prefix, sizes: sorted(original(prefix, sizes))[:1]


def _keep_slot(_before: Job, write: JobWrite) -> JobWrite:
    return replace(write, release_slot=False)


def _release_while_relaunching(before: Job, write: JobWrite) -> JobWrite:
    is_relaunching = before.has_slot and write.job.state is JobState.WAITING
    return replace(write, release_slot=write.release_slot or is_relaunching)


def _take_no_slot(_before: Job, write: JobWrite) -> JobWrite:
    return replace(write, take_slot_limits=None)


def _no_stack_cap(_before: Job, write: JobWrite) -> JobWrite:
    limits = write.take_slot_limits
    return replace(write, take_slot_limits=(limits[0], 1_000) if limits else None)


def _no_timeline(_before: Job, write: JobWrite) -> JobWrite:
    return replace(write, timeline=())


def _without_effect(kind: EffectKind) -> Planting:
    def make(original: Callable[..., None]) -> Callable[..., None]:
        def perform(job: Job, effect: Any, world: World) -> None:
            if effect.kind is not kind:
                original(job, effect, world)

        return perform

    return _replaced(advancing, "_perform", make)


def _always_again(job: Job, detail: str) -> RestartAfter:
    return RestartAfter(30, f"{detail}; failure {job.failures}")


def _end_as_due(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def end(*arguments: Any, **named: Any) -> Decision:
        decided = original(*arguments, **named)
        return replace(decided, job=replace(decided.job, wake_at=None))

    return end


def _submit_anew(definition: JobDefinition, event: TriggerEvent, world: World) -> Submission:
    matched = match(definition, event)
    if not isinstance(matched, Match):
        return Submission(definition.name, None, False, matched.reason)
    job_id = derive_job_id(event.identity, definition.name)
    job, entries = submitting._accept(job_id, definition, matched, event, world)
    world.jobs.create_job(job, entries)
    return Submission(definition.name, advancing.act(replace(job, version=1), world), True, "started")


def _put_job(self: InMemoryJobs, job: Job, timeline: Sequence[TimelineEntry]) -> bool:
    self._store(replace(job, version=1), timeline)
    return True


@contextmanager
def _unconditional_create() -> Iterator[None]:
    with patched(submitting, _submit=_submit_anew), patched(InMemoryJobs, create_job=_put_job):
        yield


def _unconditional_save(original: Callable[..., Job]) -> Callable[..., Job]:
    def save(self: InMemoryJobs, write: JobWrite) -> Job:
        known = self.load_job(write.job.job_id)
        version = known.version if known else 0
        return original(self, replace(write, job=replace(write.job, version=version)))

    return save


def _exit_zero_is_success(original: Callable[..., StopKind]) -> Callable[..., StopKind]:
    def kind(facts: Any, intent: StopIntent | None) -> StopKind:
        return StopKind.SUCCESS if facts.exit_code == 0 else original(facts, intent)

    return kind


def _ends_now(original: Callable[..., Stop]) -> Callable[..., Stop]:
    def classify(observation: TaskObservation, *rest: Any) -> Stop:
        return replace(original(observation, *rest), at=rest[-1])

    return classify


def _accounted(change: Callable[[Job, Job], Job]) -> Planting:
    def make(original: Callable[[Job, Stop], Job]) -> Callable[[Job, Stop], Job]:
        return lambda job, stop: change(job, original(job, stop))

    return _replaced(stopping, "_account", make)


def _start_seen_now(original: Callable[..., Job]) -> Callable[..., Job]:
    def observed(job: Job, event: TaskSeen, now: datetime) -> Job:
        seen = original(job, event, now)
        started_at = job.current_attempt.started_at
        is_running = event.observation.last_status == "RUNNING"
        started_at = started_at or (now if is_running else None)
        return replace(seen, attempt=replace(seen.current_attempt, started_at=started_at))

    return observed


def _wait_for_image_for_ever(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def wake(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
        waiting = job.waiting
        if waiting is not None and waiting.reason is WaitReason.IMAGE:
            return quiet(move(job, job.state, now, event="still waiting", wake_at=now + timedelta(minutes=2)))
        return original(job, event, now, limits)

    return wake


def _never_withdrawn(job: Job, _event: JobEvent, now: datetime, _limits: StackLimits) -> Decision:
    return quiet(move(job, job.state, now, event="still starting", wake_at=now + timedelta(minutes=5)))


def _stop_once(job: Job, _event: JobEvent, now: datetime, _limits: StackLimits) -> Decision:
    return quiet(move(job, job.state, now, event="still stopping", wake_at=now + timedelta(minutes=3)))


def _placed_anyway(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def stop(job: Job, intent: StopIntent, now: datetime, *, event: str) -> Decision:
        if job.state is JobState.LAUNCHING and intent.kind is IntentKind.CANCEL:
            return move(job, job.state, now, event="task placed", wake_at=now + timedelta(minutes=5))
        return original(job, intent, now, event=event)

    return stop


def _changed(owner: object, **values: object) -> Planting:
    return lambda: patched(owner, **values)


def _action(name: str, replacement: Callable[..., Decision]) -> Planting:
    return lambda: action_changed(name, replacement)


def _guard(name: str, replacement: Callable[..., bool]) -> Planting:
    return lambda: guard_changed(name, replacement)


def _written(change: Callable[[Job, JobWrite], JobWrite]) -> Planting:
    return lambda: writes(change)


_DAY, _MONTH, _NOTHING = timedelta(days=1), timedelta(days=30), timedelta(0)


BUGS = (
    PlantedBug(
        "token-of-each-send",
        "RunTask gets another client token each time the same placement try is sent",
        _token_of_each_send,
        "never two live tasks of one job",
        15,
        5,
    ),
    PlantedBug(
        "no-intent",
        "StopTask is sent without an intent that was written down before",
        lambda: patched_in((watching, launching), stop_with_intent=_stop_without_intent(stopping.stop_with_intent)),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "version-ignored",
        "news of a task count whatever their `version`",
        lambda: guard_changed("is_news", _any_version),
        "old news of a task changes nothing",
        8,
    ),
    PlantedBug(
        "wake-at-forgotten",
        "a job whose task was seen has no wake_at",
        _action("task_seen", _seen_and_not_woken),
        "no unhandled exception",
        8,
    ),
    PlantedBug(
        "heartbeat-of-a-day",
        "a running job is looked at once a day",
        _changed(watching, HEARTBEAT=_DAY),
        "every open job is woken",
        8,
    ),
    PlantedBug(
        "effects-not-pending",
        "effects are done after the save, and not saved as pending",
        lambda: patched_in((advancing, launching_attempts), apply_event=_apply_without_pending),
        "what is meant to stop is asked to",
        8,
    ),
    PlantedBug(
        "pending-not-finished",
        "who loads a job next does not finish what is pending",
        lambda: patched(advancing, finish_pending=lambda job, _world: job),
        "a job that can finish does finish",
        8,
    ),
    PlantedBug(
        "no-answer-is-no-task",
        "a RunTask that went unanswered counts as placed nowhere, and the next offering is tried",
        _changed(ecs_run_task, LaunchUncertain=lambda reason: PlacementFailed((reason,))),
        "nothing is launched beside a live task",
        15,
        5,
    ),
    PlantedBug(
        "throttling-is-refusal",
        "a launch that ECS defers counts as refused for good",
        _changed(ecs_run_task, LaunchDeferred=LaunchRefused),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "relaunch-on-warning",
        "on a warning the job is launched again before its task is STOPPED",
        _action("host_warned", _relaunch_on_warning),
        "never two live tasks of one job",
        8,
    ),
    PlantedBug(
        "missing-once-is-lost",
        "a task that ECS does not know once is taken for lost",
        _action("task_missing", _lost_when_missing),
        "never two live tasks of one job",
        8,
    ),
    PlantedBug(
        "host-end-is-stop",
        "a machine that shuts down is taken for a task that has stopped",
        _action("host_ended", _lost_with_host),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "stopping-is-stopped",
        "a task that is on its way out is taken for STOPPED",
        _changed(watching, _ENDED=watching._ENDED | watching._ENDING),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "incomplete-checkpoint",
        "an attempt resumes from the newest folder, manifest or not",
        _any_folder,
        "an attempt resumes from the newest complete checkpoint",
        15,
        17,
    ),
    PlantedBug(
        "oldest-checkpoint",
        "an attempt resumes from the oldest checkpoint",
        _replaced(checkpoints, "_folders", _oldest_folder),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "checkpoint-of-another-job",
        "an attempt resumes from the newest checkpoint of any job",
        _changed(S3Checkpoints, newest_complete=_of_any_job),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "never-resumes",
        "every attempt begins anew",
        _changed(launching_attempts, _resume_uri=lambda _job, _world: None),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "one-checkpoint-prefix",
        "all attempts write under the same prefix",
        _replaced(
            launch_plan,
            "training_environment",
            lambda original: lambda job: {**original(job), "RELAUNCH_CHECKPOINT_URI": "s3://acme-checkpoints/a/"},
        ),
        "an attempt writes under its own prefix",
        8,
    ),
    PlantedBug(
        "slot-kept", "a job that is over keeps its slot", _written(_keep_slot), "a job that can finish does finish", 8
    ),
    PlantedBug(
        "slot-released-early",
        "a job that is to be launched again gives its slot back, and does not take another",
        _written(_release_while_relaunching),
        "max_running_jobs is kept",
        8,
    ),
    PlantedBug(
        "slot-not-taken",
        "jobs are launched without a slot",
        _written(_take_no_slot),
        "no more tasks than max_running_jobs",
        8,
    ),
    PlantedBug(
        "stack-cap-ignored",
        "the stack's cap on running jobs is not kept",
        _written(_no_stack_cap),
        "max_running_jobs is kept",
        15,
        6,
    ),
    PlantedBug(
        "admit-waiting-dropped",
        "a slot that is given back is offered to nobody",
        _without_effect(EffectKind.ADMIT_WAITING),
        "an effect is done before it is forgotten",
        8,
    ),
    PlantedBug(
        "stop-task-dropped",
        "the intent is written down, and StopTask never sent",
        _without_effect(EffectKind.STOP_TASK),
        "a warned task is asked to stop",
        8,
    ),
    PlantedBug(
        "capacity-forgotten",
        "an offering that failed is not remembered",
        _without_effect(EffectKind.REMEMBER_CAPACITY),
        "an effect is done before it is forgotten",
        8,
    ),
    PlantedBug(
        "capacity-never-expires",
        "an offering that failed is avoided for a month",
        lambda: patched_in((stopping, launching), AVOID_AFTER_NO_CAPACITY=_MONTH),
        "every open job is woken",
        8,
    ),
    PlantedBug(
        "max-failures-ignored",
        "a program that fails is launched again for ever",
        _changed(restart_policy, _after_failure=_always_again),
        "max_failures is kept",
        8,
    ),
    PlantedBug(
        "interruptions-are-failures",
        "a machine that was taken away counts against max_failures",
        _changed(stopping, is_failure=lambda kind: is_failure(kind) or is_interruption(kind)),
        "failures are those of the stops",
        8,
    ),
    PlantedBug(
        "failures-not-counted",
        "out of memory counts as no failure",
        _changed(stopping, is_failure=lambda kind: is_failure(kind) and kind is not StopKind.OUT_OF_MEMORY),
        "failures are those of the stops",
        8,
    ),
    PlantedBug(
        "max-runtime-ignored",
        "no job is ever out of time",
        lambda: patched_in((watching, launching, restart_policy), out_of_time=lambda _job, _now: None),
        "a job that can finish does finish",
        8,
    ),
    PlantedBug(
        "run-seconds-not-summed",
        "the run time of ended attempts is forgotten",
        _accounted(lambda before, after: replace(after, run_seconds=before.run_seconds)),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "cost-counted-twice",
        "the cost of an attempt is added twice",
        _accounted(lambda before, after: replace(after, cost_usd=2 * after.cost_usd - before.cost_usd)),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "end-is-now",
        "a task ends when we hear of it, not when ECS says that it stopped",
        _replaced(stopping, "classify_stop", _ends_now),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "start-is-now",
        "a task starts when we hear of it, not when ECS says that it started",
        _replaced(watching, "_observed", _start_seen_now),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "price-cap-ignored",
        "max_price_usd_per_hour rejects no offering",
        _replaced(
            selection,
            "derive_terms",
            lambda original: lambda *parts: replace(original(*parts), price_cap=float("inf")),
        ),
        "price caps are kept",
        15,
        4,
    ),
    PlantedBug(
        "intent-without-stop-of-frozen",
        "a task of a try that was cancelled while frozen is placed as if nothing had been said",
        lambda: patched_in((launching, watching), stop_with_intent=_placed_anyway(stopping.stop_with_intent)),
        "what is meant to stop is asked to",
        15,
        14,
    ),
    PlantedBug(
        "create-unconditional",
        "a job that is there already is created again",
        _unconditional_create,
        "every write is the next version",
        8,
    ),
    PlantedBug(
        "id-of-each-delivery",
        "a job's id comes from the delivery, not from what was delivered",
        _id_of_each_delivery,
        "an accepted event becomes exactly one job",
        8,
    ),
    PlantedBug(
        "save-unconditional",
        "a job is saved whoever has saved it meanwhile",
        _replaced(InMemoryJobs, "save_job", _unconditional_save),
        "old news of a task changes nothing",
        15,
        7,
    ),
    PlantedBug(
        "exit-zero-is-success",
        "exit code 0 is success, also after our own stop",
        _replaced(stop_reason, "_kind", _exit_zero_is_success),
        "a stop's reason is its cause",
        8,
    ),
    PlantedBug(
        "try-lapses-at-once",
        "a frozen try is closed as soon as it was not sent at once",
        _changed(launching_attempts, _OLDEST_TRY=timedelta(seconds=1), _SENDING_GRACE=_NOTHING),
        "nothing is launched beside a live task",
        15,
        7,
    ),
    PlantedBug(
        "poison-kept",
        "a message that trying again cannot help stays in its queue",
        _changed(sqs_batch, PermanentError=type("NoSuchError", (Exception,), {})),
        "only poison is dead",
        8,
    ),
    PlantedBug(
        "partial-failure-is-success",
        "failed messages of a batch are not named in the answer",
        _replaced(
            sqs_batch,
            "process_partial_response",
            lambda original: lambda **named: {**original(**named), "batchItemFailures": []},
        ),
        "an accepted event becomes exactly one job",
        8,
    ),
    PlantedBug(
        "nothing-is-transient",
        "every error of AWS is taken for one that stays",
        _changed(errors, is_transient=lambda _error: False),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "image-wait-for-ever",
        "a job waits for its image for ever",
        lambda: action_changed("wake_waiting", _wait_for_image_for_ever(launching.wake_waiting)),
        "a job that can finish does finish",
        8,
    ),
    PlantedBug(
        "image-not-noticed",
        "the image a job waits for arrives unnoticed",
        lambda: rows_dropped("image_arrived"),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "reconcile-skips-stopping",
        "jobs that stop are not compared with ECS",
        _changed(reconciling, _WITH_TASK=frozenset({JobState.LAUNCHING, JobState.RUNNING})),
        "a job that can finish does finish",
        15,
        20,
    ),
    PlantedBug(
        "only-noted-machines-warned",
        "a warning concerns only tasks whose machine we have noted",
        _changed(EcsTarget, find_on_instance=lambda _self, _instance_id: []),
        "a warned task is asked to stop",
        15,
        7,
    ),
    PlantedBug(
        "no-timeline",
        "nothing is written in the timeline",
        _written(_no_timeline),
        "the timeline tells the beginning and the end",
        8,
    ),
    PlantedBug(
        "over-and-not-due",
        "a job that is over is not due though its slot may not have been handed on",
        lambda: patched_in((launching, stopping), end=_end_as_due(deciding.end)),
        "what is over waits for nothing",
        8,
    ),
)
