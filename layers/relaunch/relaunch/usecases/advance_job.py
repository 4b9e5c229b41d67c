"""Apply an event to a job."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from relaunch.core.jobs.attempt import Attempt, PlacementState
from relaunch.core.jobs.changes import Outbox
from relaunch.core.jobs.effects import (
    AbandonMachine,
    AdmitWaiting,
    CountRun,
    Effect,
    LookForWarning,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
)
from relaunch.core.jobs.job import MACHINES_SLOT, STACK_SLOT, Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.charging import find_left
from relaunch.core.lifecycle.decision import Decision, note_stop_sent
from relaunch.core.lifecycle.events import HostWarned, JobEvent, MachineLeft
from relaunch.core.lifecycle.metrics import decision_metrics, stop_metrics
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.events import ClaimReleased, MachineAbandoned, MachineEvent
from relaunch.core.machines.starts import Worth
from relaunch.core.offerings.capacity_memory import is_counted, placement_scope, queued
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import change_by_failure, change_by_gang, change_by_run
from relaunch.ports import JobDependencies, PermanentError, PortError, StaleWriteError
from relaunch.usecases.advance_machine import admit_jobs, advance_machine
from relaunch.usecases.concurrency_groups import wake_group
from relaunch.usecases.lifecycle import Lifecycle
from relaunch.usecases.reopen_offerings import learn_pool, offer_machine
from relaunch.usecases.send_changes import ChangeSender

# Each costs a read, at most once for a launch without capacity.
_MAX_LOOKED_AT = 100


def advance_job(job_id: str, event_for: Callable[[Job], JobEvent | None], deps: JobDependencies) -> Job | None:
    """Load a job, finish its pending effects, and apply the event that `event_for` returns for it.

    Returns the job after that, None if it does not exist.

    Raises:
        StaleWriteError: other writers saved the job several times in a row; retry.
    """
    return JobLifecycle(deps).advance(job_id, event_for)


def apply_event(job: Job, event: JobEvent, deps: JobDependencies) -> Job:
    """Decide on a loaded job, save the decision, and do its effects; return the saved job.

    Raises:
        StaleWriteError: the job was changed since it was loaded.
        SlotsFullError: the decision takes a slot and none is free; nothing was saved.
    """
    return JobLifecycle(deps).apply(job, event)


def finish_pending(job: Job, deps: JobDependencies) -> Job:
    """Do the effects that the last writer of the job saved but may not have done.

    Raises:
        TransientError: an effect failed; it stays pending and is repeated when the job is loaded next.
    """
    return JobLifecycle(deps).finish(job)


class JobLifecycle(Lifecycle[Job, JobEvent, Decision]):
    """What advances jobs."""

    kind = "job"

    def load(self, job_id: str) -> Job | None:
        """Load a job."""
        return self.deps.jobs.load_job(job_id)

    def decide(self, job: Job, event: JobEvent, now: datetime) -> Decision:
        """Return the decision of the transition table."""
        return decide(job, event, now, self.deps.limits)

    def save(self, job: Job, decision: Decision, now: datetime) -> Job:
        """Save a decision and record its metrics."""
        _note_use(job, decision.job, self.deps)
        saved = self.deps.jobs.save_job(decision)
        self.deps.metrics.record(*decision_metrics(job, decision, now))
        ChangeSender(self.deps).note_dropped(job, decision.job)
        _offer_machine(job, saved, self.deps)
        return saved

    def left(self, job: Job) -> tuple[Effect, ...]:
        """Return a launch request without other effects: the launch replaces it, and it may be repeated."""
        return job.pending if all(isinstance(effect, RequestLaunch) for effect in job.pending) else ()

    def follow(self, job: Job) -> Job:
        """Do the effects of a decision that was saved just now, and send what changed.

        Nothing waits for EventBridge but a launch request: whoever gets that loads the job, which is saved before.
        """
        if not job.outbox.unsent or _is_being_sent(job):
            return self.finish(job)
        launches = tuple(effect for effect in job.pending if isinstance(effect, RequestLaunch))
        events = self.perform_all(job, [effect for effect in job.pending if effect not in launches])
        outbox = ChangeSender(self.deps).send(job)
        if launches == job.pending:
            saved = self.save_done(job, launches, outbox=outbox)
            self.perform_all(job, launches)
            return saved
        self.perform_all(job, launches)
        return self.save_done(job, (), events, outbox=outbox)

    def leave(self, job: Job) -> Job:
        """Send the changes that are due to be sent again."""
        outbox = job.outbox
        if outbox.resend_at is None or outbox.resend_at > self.deps.clock.now():
            return job
        return self.save_done(job, job.pending, outbox=ChangeSender(self.deps).send(job))

    def save_done(
        self,
        job: Job,
        left: tuple[Effect, ...],
        events: Sequence[JobEvent] = (),
        *,
        outbox: Outbox | None = None,
    ) -> Job:
        """Save that all effects but those left are done and which changes were sent, and what the events change."""
        outbox = outbox or job.outbox
        if left == job.pending and outbox == job.outbox:
            return job
        now = self.deps.clock.now()
        noted = note_stop_sent(job, now) if job.state is JobState.STOPPING else job
        done = Decision(replace(noted, pending=left, outbox=outbox))
        for event in events:
            decision = self.decide(done.job, event, now)
            self.log(done.job, event, decision)
            done = done.followed_by(decision)
        if done.timeline:
            return self.follow(self.save(replace(job, outbox=outbox), done, now))
        try:
            wake_at = None if job.state.is_final and not left else job.wake_at
            return self.deps.jobs.save_job(replace(done, job=replace(done.job, wake_at=wake_at)))
        except StaleWriteError:
            # Another writer has repeated these effects already.
            return job

    def perform(self, job: Job, effect: Effect) -> JobEvent | None:
        """Do an effect; return the event that it brought about."""
        deps = self.deps
        match effect:
            case StopTask():
                deps.targets.named(job.definition.target).stop(effect.task_id, effect.reason)
                deps.metrics.record(*stop_metrics(job, effect, deps.clock.now()))
            case RequestLaunch() | RequestMachine():
                _request(job, effect, deps)
            case RememberCapacity():
                _remember_capacity(job, effect, deps)
            case CountRun(run):
                deps.capacity.count_run(run)
                learn_pool(run.offering, change_by_run(run), deps, run.nodes)
                learn_pool(run.offering, change_by_gang(run), deps)
            case AdmitWaiting():
                _admit_waiting(job, deps)
            case ReleaseMachine() | AbandonMachine():
                return _leave_machine(job, effect, deps)
            case LookForWarning():
                # Either this finds the stored warning, or who handles the warning finds the link, which is stored. One
                # that the job knows says more: what is stored has no time at which the instance is to be left.
                is_known = job.attempt is not None and job.attempt.warned_at is not None
                at = deps.jobs.load_warning(effect.instance_id)
                return HostWarned(effect.instance_id, at) if at is not None and not is_known else None
            case _:
                assert_never(effect)
        return None

    def log(self, job: Job, event: JobEvent, decision: Decision) -> None:
        """Log a decision."""
        after = decision.job
        attempt = after.attempt
        self.deps.log.decided(
            "ignored" if decision.is_ignored else "advanced",
            job_id=job.job_id,
            event_name=type(event).__name__,
            action=decision.action or None,
            state=str(job.state),
            next_state=str(after.state),
            reason=decision.note or "; ".join(entry.detail for entry in decision.timeline),
            attempt_number=attempt.number if attempt else None,
            offering=str(attempt.placement.offering) if attempt else None,
            effects=[effect.kind for effect in after.pending],
        )


def _is_being_sent(job: Job) -> bool:
    """Return whether the placement of the job is sent now: its change goes out with the answer, or a minute later."""
    attempt = job.attempt
    return job.state is JobState.LAUNCHING and attempt is not None and attempt.placement.state is PlacementState.PENDING


def _note_use(before: Job, after: Job, deps: JobDependencies) -> None:
    """Note that a task of the family runs on a machine of our own, before the job is saved: else nobody may do it."""
    attempt = before.attempt
    started = after.attempt
    is_start = attempt is not None and attempt.started_at is None and started is not None and started.started_at
    ranks = started.placement.ranks if started is not None and is_start else ()
    machines = [deps.machines.load_machine(each.machine_id) for each in ranks if each.machine_id]
    # A request for several machines is counted by the first of them.
    found = [each for each in machines if each is not None and each.request.place == 0]
    if not found:
        return
    deps.capacity.forget_unready((placement_scope(after.revision.arn),), deps.clock.now())
    for machine in found:
        deps.machines.settle_start((placement_scope(after.revision.family),), machine, Worth.USEFUL)
    admit_jobs(deps)


def _offer_machine(before: Job, after: Job, deps: JobDependencies) -> None:
    """Offer the machine of a capacity provider whose task has stopped to the jobs that wait for one.

    If that fails, the next sweep sees that the machine is free.
    """
    attempt = before.attempt
    ended = after.attempt
    if attempt is None or ended is None or attempt.stop is not None or ended.stop is None or ended.node is None:
        return
    if not (provider := ended.placement.capacity_provider):
        return
    try:
        offer_machine(provider, deps)
    except PortError as error:
        deps.log.decided("postponed", job_id=after.job_id, reason=f"offering a machine of {provider}: {error}")


def _remember_capacity(job: Job, effect: RememberCapacity, deps: JobDependencies) -> None:
    failure = CapacityFailure(
        effect.offering,
        effect.reason,
        effect.at,
        effect.until,
        capacity_provider=effect.capacity_provider,
        gpu_count=effect.gpu_count,
        is_unready=is_counted(effect.offering),
        machine_id=effect.machine_id,
    )
    machine = deps.machines.load_machine(effect.machine_id) if effect.machine_id else None
    if machine is not None:
        deps.machines.settle_start((placement_scope(job.revision.family),), machine, Worth.USELESS)
    # A launch that waited for a machine, or asked for room on those that are there.
    may_be_queue = effect.is_taken or (job.attempt is not None and job.attempt.stop is not None)
    if may_be_queue and failure.capacity_provider and _is_used(effect, job.job_id, deps):
        failure = queued(failure)
    deps.capacity.remember(failure)
    learn_pool(failure.offering, change_by_failure(failure), deps)


def _is_used(effect: RememberCapacity, own_job_id: str, deps: JobDependencies) -> bool:
    """Return whether the task of another job is on a machine of a capacity provider.

    The launch waited for another one, which the group may not have: its maximum size is not known, as reading it takes
    a permission that the stack does not have. If the machines that are there had no room, a task that waited for one
    may have got it just before, which nobody knows yet.
    """
    for job_id in deps.jobs.load_slot_holders(_MAX_LOOKED_AT):
        attempt = _load_attempt(job_id, deps) if job_id != own_job_id else None
        if attempt is None or attempt.stop is not None or attempt.task_id is None:
            continue
        is_there = attempt.node is not None or effect.is_taken
        if is_there and attempt.placement.capacity_provider == effect.capacity_provider:
            return True
    return False


def _load_attempt(job_id: str, deps: JobDependencies) -> Attempt | None:
    """Load the attempt of a job, None if it has none or cannot be read."""
    try:
        job = deps.jobs.load_job(job_id)
    except PermanentError as error:
        deps.log.decided("uncounted", job_id=job_id, reason=str(error))
        return None
    return job.attempt if job is not None else None


def _request(job: Job, effect: RequestLaunch | RequestMachine, deps: JobDependencies) -> None:
    if isinstance(effect, RequestLaunch):
        deps.launches.request_launch(job.job_id, effect.delay_seconds)
    else:
        deps.machine_queue.request_calls(effect.machine_id)


def _leave_machine(job: Job, effect: ReleaseMachine | AbandonMachine, deps: JobDependencies) -> MachineLeft | None:
    """Give a machine up, or end it; return what it has cost the job, if that is not what the job has reserved."""
    event: MachineEvent = (
        MachineAbandoned(job.job_id, effect.reason)
        if isinstance(effect, AbandonMachine)
        else ClaimReleased(job.job_id, effect.reason, is_unusable=effect.is_unusable, is_unused=effect.is_unused)
    )
    machine = advance_machine(effect.machine_id, lambda _machine: event, deps)
    return None if machine is None else find_left(job, machine, deps.clock.now())


def _admit_waiting(job: Job, deps: JobDependencies) -> None:
    # Only a job that has claimed a machine was admitted to the limits on them.
    for slot in (job.definition.name, STACK_SLOT, *([MACHINES_SLOT] if job.machine_id else ())):
        # The index is eventually consistent: it may still contain this job.
        others = [job_id for job_id in deps.jobs.load_waiting(slot, 2) if job_id != job.job_id]
        for job_id in others[:1]:
            deps.launches.request_launch(job_id)
    wake_group(job, deps)
