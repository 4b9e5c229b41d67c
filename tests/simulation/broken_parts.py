"""Broken parts of the application, and functions that put them in place of the real ones."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws import checkpoints, errors
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt import Attempt, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import LaunchRefused, TaskObservation, TaskPhase
from relaunch.core.lifecycle import running, stopping, table
from relaunch.core.lifecycle.decision import Decision, move, set_next_check, stop_effect, wait_for_launch
from relaunch.core.lifecycle.events import HostEnded, HostWarned, JobEvent, TaskMissing, TaskSeen
from relaunch.core.lifecycle.restart_policy import GiveUp, RestartAfter
from relaunch.core.lifecycle.stopping import follow_stop
from relaunch.core.market.situation import Situation
from relaunch.core.triggers.events import TriggerEvent
from relaunch.core.triggers.matching import Match, derive_job_id, match
from relaunch.ports import Dependencies
from relaunch.usecases import submit_job as submitting
from relaunch.usecases.advance_job import JobLifecycle, finish_pending
from relaunch.usecases.submit_job import Submission
from relaunch_local.in_memory.jobs import InMemoryJobs
from simulation.planting import action_changed, patched, writes

Planting = Callable[[], AbstractContextManager[object]]


def replaced(owner: object, name: str, make: Callable[[Any], object]) -> Planting:
    """Replace an attribute with what `make` returns for it."""
    return lambda: patched(owner, **{name: make(getattr(owner, name))})


def token_of_each_send() -> AbstractContextManager[object]:
    numbers = itertools.count()
    return patched(ecs_run_task, client_token=lambda *_parts: f"send-{next(numbers)}")


def id_of_each_delivery() -> AbstractContextManager[object]:
    numbers = itertools.count()
    return patched(submitting, derive_job_id=lambda _identity, name: f"{name}-{next(numbers)}")


def identity_without(pattern: str) -> Planting:
    """Remove what matches from the identity of events."""

    def derive(identity: str, definition: str) -> str:
        return derive_job_id(re.sub(pattern, "", identity), definition)

    return lambda: patched(submitting, derive_job_id=derive)


def stop_without_intent(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def stop(job: Job, intent: StopIntent, now: datetime, *, event: str) -> Decision:
        decided = original(job, intent, now, event=event)
        attempt = replace(decided.job.current_attempt, intent=None)
        return replace(decided, job=replace(decided.job, attempt=attempt))

    return stop


def any_version(job: Job, event: TaskSeen) -> bool:
    attempt, seen = job.attempt, event.observation
    if attempt is None or attempt.stop is not None or seen.owner != job.attempt_key:
        return False
    return attempt.task_id in {None, seen.task_id}


def seen_and_not_woken(job: Job, event: TaskSeen, now: datetime, limits: StackLimits) -> Decision:
    decided = running.task_seen(job, event, now, limits)
    return decided if decided.job.state.is_final else replace(decided, job=replace(decided.job, wake_at=None))


def apply_without_pending(lifecycle: JobLifecycle, job: Job, event: JobEvent) -> Job:
    deps = lifecycle.deps
    decided = table.decide(job, event, deps.clock.now(), deps.limits)
    if decided.is_ignored:
        return job
    effects = decided.job.pending
    unmarked = replace(decided, job=replace(decided.job, pending=()))
    saved = deps.jobs.save_job(unmarked)
    for effect in effects:
        lifecycle.perform(saved, effect)
    return saved


def relaunch_on_warning(job: Job, event: HostWarned, now: datetime, _limits: StackLimits) -> Decision:
    stopping_task = stop_effect(job, "interruption warning")
    decided = follow_stop(job, Stop(StopKind.INTERRUPTION, event.at), now)
    return replace(decided, job=replace(decided.job, pending=(*stopping_task, *decided.job.pending)))


def avoid_when_interrupted(job: Job, stop: Stop) -> tuple[Effect, ...]:
    if stop.kind is not StopKind.INTERRUPTION:
        return ()
    return stopping.avoid(job, "interrupted", stop.at)[1]


def avoid_for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def avoid(job: Job, reason: str, at: datetime, *, is_taken: bool = False) -> tuple[Job, tuple[Effect, ...]]:
        forgotten = replace(job, faults=replace(job.faults, failed_starts=()))
        return job, original(forgotten, reason, at, is_taken=is_taken)[1]

    return avoid


def lost_when_missing(job: Job, _event: TaskMissing, now: datetime, _limits: StackLimits) -> Decision:
    return follow_stop(job, Stop(StopKind.HOST_LOST, now, stopped_reason="missing"), now)


def lost_with_host(job: Job, event: HostEnded, now: datetime, _limits: StackLimits) -> Decision:
    return follow_stop(job, Stop(StopKind.HOST_LOST, event.at, stopped_reason="its host ended"), now)


@contextmanager
def any_step() -> Iterator[None]:
    changes = patched(checkpoints, _steps=steps_of_anything, find_defect=lambda *_parts: "")
    with changes, patched(S3Checkpoints, _read=lambda *_parts: b"{}"):
        yield


def steps_of_anything(job_prefix: str, sizes: Mapping[str, int]) -> Iterator[Any]:
    for key in sizes:
        if match := re.fullmatch(r"(attempt-(\d+)/step-(\d+)/).*", key.removeprefix(job_prefix)):
            yield checkpoints._Step(int(match[3]), int(match[2]), job_prefix + match[1])


def of_any_job(newest_saved: Callable[..., SavedCheckpoint | None]) -> Callable[..., SavedCheckpoint | None]:
    def newest(self: Any, checkpoint_uri: str, _job_id: str, **options: Any) -> SavedCheckpoint | None:
        bucket, prefix = self._split(checkpoint_uri)
        with errors.aws_errors("looking for checkpoints"):
            keys = [key.removeprefix(prefix) for key, _, _ in self._list(bucket, prefix, None)]
        jobs = sorted({key.partition("/")[0] for key in keys if "/" in key})
        found = [each for job in jobs if (each := newest_saved(self, checkpoint_uri, job, **options)) is not None]
        return max(found, key=lambda each: each.step, default=None)

    return newest


def with_two_more_hours(original: Callable[..., Situation]) -> Callable[..., Situation]:
    def situation(*parts: Any) -> Situation:
        known = original(*parts)
        return replace(known, time_left=(known.time_left or 0.0) + 2.0)

    return situation


def without_its_own_checkpoint(
    newest_of: Callable[..., SavedCheckpoint | None],
) -> Callable[..., SavedCheckpoint | None]:
    def newest(job: Job, source: object) -> SavedCheckpoint | None:
        attempt = job.attempt
        if attempt is None or attempt.started_at is None:
            return newest_of(job, source)
        found = newest_of(job, source) or SavedCheckpoint("", 0, 0, attempt.started_at)
        return replace(found, attempt=attempt.number, saved_at=max(found.saved_at, attempt.started_at))

    return newest


@contextmanager
def only_the_first_on_a_machine() -> Iterator[None]:
    find, load = EcsTarget.find_tasks_on, InMemoryJobs.load_on_instance
    first_found = patched(EcsTarget, find_tasks_on=lambda self, instance_id: find(self, instance_id)[:1])
    with first_found, patched(InMemoryJobs, load_on_instance=lambda self, instance_id: load(self, instance_id)[:1]):
        yield


def first_page(call: Callable[..., Any], **parameters: Any) -> Iterator[Any]:
    yield call(**parameters)


def oldest_step(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda prefix, sizes: sorted(original(prefix, sizes))[:1]


def release_while_relaunching(before: Job, decision: Decision) -> Decision:
    is_relaunching = before.has_slot and decision.job.state is JobState.WAITING
    return replace(decision, release_slot=decision.release_slot or is_relaunching)


def slot_kept_while_waiting(before: Job, decision: Decision) -> Decision:
    if decision.job.state.is_final or not decision.release_slot:
        return decision
    return replace(decision, job=replace(decision.job, has_slot=before.has_slot), release_slot=False)


def no_stack_cap(_before: Job, decision: Decision) -> Decision:
    limits = decision.take_slot_limits
    return replace(decision, take_slot_limits=(limits[0], 1_000) if limits else None)


def without_effect(kind: type[Effect]) -> Planting:
    def make(original: Callable[..., JobEvent | None]) -> Callable[..., JobEvent | None]:
        def perform(lifecycle: JobLifecycle, job: Job, effect: Any) -> JobEvent | None:
            return None if isinstance(effect, kind) else original(lifecycle, job, effect)

        return perform

    return replaced(JobLifecycle, "perform", make)


def advance_without_finishing(
    lifecycle: JobLifecycle, job_id: str, event_for: Callable[[Job], JobEvent | None]
) -> Job | None:
    job = lifecycle.load(job_id)
    event = event_for(job) if job is not None else None
    return job if job is None or event is None else lifecycle.apply(job, event)


def always_again(job: Job, _stop: Stop, detail: str) -> RestartAfter:
    return RestartAfter(30, f"{detail}; failure {job.totals.failures}")


def end_as_due(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def end(*arguments: Any, **named: Any) -> Decision:
        decided = original(*arguments, **named)
        return replace(decided, job=replace(decided.job, wake_at=None))

    return end


def submit_anew(definition: JobDefinition, event: TriggerEvent, deps: Dependencies) -> Submission:
    matched = match(definition, event, deps.patterns.matches)
    if not isinstance(matched, Match):
        return Submission(definition.name, None, matched.reason)
    job_id = derive_job_id(event.identity, definition.name)
    job, entries = submitting._accept(job_id, definition, matched, event, deps)
    deps.jobs.create_job(job, entries)
    return Submission(definition.name, finish_pending(replace(job, version=1), deps), "started", is_new=True)


def put_job(
    self: InMemoryJobs, job: Job, timeline: Sequence[TimelineEntry], _standing: GroupStanding | None = None
) -> bool:
    self._store(replace(job, version=1), timeline)
    return True


@contextmanager
def unconditional_create() -> Iterator[None]:
    with patched(submitting, _submit=submit_anew), patched(InMemoryJobs, create_job=put_job):
        yield


def unconditional_save(original: Callable[..., Job]) -> Callable[..., Job]:
    def save(self: InMemoryJobs, decision: Decision) -> Job:
        known = self.load_job(decision.job.job_id)
        version = known.version if known else 0
        return original(self, replace(decision, job=replace(decision.job, version=version)))

    return save


def exit_zero_is_success(original: Callable[..., StopKind]) -> Callable[..., StopKind]:
    def kind(facts: Any, intent: StopIntent | None) -> StopKind:
        return StopKind.SUCCESS if facts.exit_code == 0 else original(facts, intent)

    return kind


def sidecar_is_nobody(original: Callable[..., StopKind]) -> Callable[..., StopKind]:
    def kind(facts: Any, intent: StopIntent | None) -> StopKind:
        return original(replace(facts, sidecar=""), intent)

    return kind


def ends_now(original: Callable[..., Stop]) -> Callable[..., Stop]:
    def classify(observation: TaskObservation, *rest: Any, **named: Any) -> Stop:
        return replace(original(observation, *rest, **named), at=rest[-1])

    return classify


def accounted(change: Callable[[Job, Job], Job]) -> Planting:
    def make(original: Callable[[Job, Stop], Job]) -> Callable[[Job, Stop], Job]:
        return lambda job, stop: change(job, original(job, stop))

    return replaced(stopping, "_account", make)


def start_seen_now(original: Callable[..., Job]) -> Callable[..., Job]:
    def observed(job: Job, event: TaskSeen, now: datetime) -> Job:
        seen = original(job, event, now)
        started_at = job.current_attempt.started_at
        is_running = event.observation.phase is TaskPhase.RUNNING
        started_at = started_at or (now if is_running else None)
        return replace(seen, attempt=replace(seen.current_attempt, started_at=started_at))

    return observed


def wait_for_image_for_ever(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def wake(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
        waiting = job.waiting
        if waiting is not None and waiting.reason is WaitReason.IMAGE:
            return set_next_check(job, now + timedelta(minutes=2))
        return original(job, event, now, limits)

    return wake


def placed_anyway(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def stop(job: Job, intent: StopIntent, now: datetime, *, event: str) -> Decision:
        if job.state is JobState.LAUNCHING and intent.kind is IntentKind.CANCEL:
            return move(job, job.state, now, event="task placed", wake_at=now + timedelta(minutes=5))
        return original(job, intent, now, event=event)

    return stop


def changed(owner: object, **values: object) -> Planting:
    return lambda: patched(owner, **values)


def action(name: str, replacement: Callable[..., Decision]) -> Planting:
    return lambda: action_changed(name, replacement)


def written(**members: Any) -> Planting:
    """Save every decision with these members."""
    return lambda: writes(lambda _before, decision: replace(decision, **members))


def go_on_waiting(job: Job, _event: JobEvent, now: datetime, _limits: StackLimits) -> Decision:
    return set_next_check(job, now + timedelta(minutes=5))


def wait_for_pull_for_ever(original: Callable[..., Decision]) -> Callable[..., Decision]:
    def wake(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
        has_machine = job.current_attempt.node is not None
        return (go_on_waiting if has_machine else original)(job, event, now, limits)

    return wake


def half_an_hour_for_all(attempt: Attempt, _limits: StackLimits) -> datetime:
    chosen = attempt.placement
    return (chosen.placed_at or chosen.requested_at) + timedelta(minutes=30)


def without_deadline(original: Callable[[Job, datetime], GiveUp | None]) -> Callable[[Job, datetime], GiveUp | None]:
    def judge(job: Job, now: datetime) -> GiveUp | None:
        return original(replace(job, definition=replace(job.definition, deadline=None)), now)

    return judge


def without_max_runtime(original: Callable[[Job, datetime], GiveUp | None]) -> Callable[[Job, datetime], GiveUp | None]:
    def judge(job: Job, now: datetime) -> GiveUp | None:
        return original(replace(job, definition=replace(job.definition, max_runtime=timedelta.max)), now)

    return judge


def as_if_sent_for_the_first_time(original: Callable[..., Any]) -> Callable[..., Any]:
    def answer(job: Job, outcome: Any, deps: Dependencies, **_named: bool) -> Any:
        if isinstance(outcome, LaunchRefused):
            outcome = replace(outcome, was_repeated=False)
        return original(job, outcome, deps, is_alone=True)

    return answer


def only_long_overdue(original: Callable[..., None]) -> Callable[..., None]:
    def look(job_id: str, seen: Mapping[str, TaskObservation | None], deps: Dependencies) -> None:
        job = deps.jobs.load_job(job_id)
        if job is None or job.wake_at is None or deps.clock.now() - job.wake_at >= timedelta(hours=1):
            original(job_id, seen, deps)

    return look


def bought_again(_original: Any) -> Any:
    """Return what a refusal leads to: another machine at once."""

    def again(job: Job, _call: Any, reason: str, now: datetime, **_parts: Any) -> Decision:
        return wait_for_launch(replace(job, machine_id=""), now, event="refused", detail=reason)

    return again
