"""Checks that what a job decides is done before it is forgotten, and what it lets others avoid."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from relaunch.core.jobs.attempt import PlacementState, StopKind
from relaunch.core.jobs.effects import (
    AbandonMachine,
    CountRun,
    Effect,
    LookForWarning,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
)
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.offerings.capacity_memory import LONGEST, is_counted
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.record import Check


@dataclass(slots=True)
class Effects:
    """The effects that were done, against those that jobs have pending."""

    _check: Check
    _clock: Clock
    is_released: Callable[[str, str], bool] = lambda _job_id, _machine_id: True
    """Returns whether a machine of our own has no claim of a job."""
    when: dict[tuple[type[Effect], str], datetime] = field(default_factory=dict)
    """By effect and object: when it was last done."""
    _pending_since: dict[str, dict[Effect, datetime]] = field(default_factory=lambda: defaultdict(dict))

    def done(self, kind: type[Effect], of: str) -> None:
        """Record an effect that was done, and its object: a task, an offering or a slot."""
        self.when[kind, of] = self._clock.now()

    def check_job(self, job: Job) -> None:
        """Check that a pending effect was done before it was removed; a launch request is replaced by its launch."""
        since = self._pending_since[job.job_id]
        now = self._clock.now()
        for effect in [each for each in since if each not in job.pending]:
            saved_at = since.pop(effect)
            if isinstance(effect, RequestLaunch):
                continue
            done_at = self.when.get((type(effect), _object_of(effect, job)))
            is_done = done_at is not None and done_at >= saved_at
            if isinstance(effect, ReleaseMachine | AbandonMachine):
                is_done = self.is_released(job.job_id, effect.machine_id)
            self._check("an effect is done before it is forgotten", is_done, f"{job.job_id}: {effect.kind}")
        for effect in job.pending:
            since.setdefault(effect, now)
            if isinstance(effect, RememberCapacity):
                self._check_avoidance(job, effect)

    def _check_avoidance(self, job: Job, effect: RememberCapacity) -> None:
        if is_counted(effect.offering):
            # That is no offering, but what machines have in common.
            is_given_up = bool(effect.machine_id) and effect.machine_id not in claimed_machines(job)
            message = f"{job.job_id}: {effect.machine_id}: {effect.reason}"
            self._check("of no use is what a job gave up", is_given_up, message)
            return
        attempt = job.current_attempt
        is_for_launch = attempt.placement.state is PlacementState.CLOSED
        is_for_launch = is_for_launch and (attempt.stop is None or attempt.stop.kind is StopKind.NO_CAPACITY)
        self._check("an interruption shuts no offering for others", is_for_launch, f"{job.job_id}: {effect.reason}")
        kept_from = ", ".join(each.instance for each in job.faults.failed_starts if each.instance.startswith("i-"))
        # Where one machine is named it is another one, and that the job is kept from others changes nothing.
        is_right = not kept_from or bool(attempt.placement.machine_id)
        self._check("a job kept from machines shuts no offering for others", is_right, f"{job.job_id}: {kept_from}")
        is_short = effect.until - self._clock.now() <= LONGEST
        self._check("no offering is avoided for longer than four hours", is_short, f"{job.job_id}: {effect.until}")


def _object_of(effect: Effect, job: Job) -> str:
    match effect:
        case StopTask():
            return effect.task_id
        case RememberCapacity():
            return str(effect.offering)
        case CountRun():
            return f"{effect.run.run_id} {effect.run.what}"
        case LookForWarning():
            return effect.instance_id
        case RequestMachine():
            return effect.machine_id
        case _:
            return job.definition.name
