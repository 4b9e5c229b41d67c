"""A job, as stored in the jobs table."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.attempt_key import AttemptKey
from relaunch.core.jobs.effects import Effect
from relaunch.core.jobs.state import HELD_BACK_BY, QUEUES, CostBasis, JobState, Refusal, RefusedCall, Waiting
from relaunch.core.jobs.trigger_facts import ResumePoint, TriggerFacts
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.revisions.revision import Revision

STACK_SLOT = "*"
"""The slot name of the limit of the stack; other slots have the name of a definition."""
MACHINES_SLOT = "#MACHINES"
"""The slot name of the stack's limits on machines of its own."""
CAPACITY = "#CAPACITY"
"""The name under which jobs that wait for capacity are found, like those that wait for a slot."""


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A task that did not start on the instance it was placed on.

    `instance` is the EC2 instance ID, or the name of the node where that is all that is known. `error` is that of the
    stop; `is_unknown`: nobody knows whether the instance is at fault.
    """

    instance: str
    error: str
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One accepted request to train.

    `definition` and `revision` are fixed when the job is accepted. `images` maps containers to the images, by digest,
    that replace those of the revision. `version` is the version of the item, on which every write is conditional.
    `wake_at` is set for every open job. `run_seconds` is the running time of the tasks of ended attempts, `cost_usd`
    their cost, in which an unknown price counts as 0 and an upper limit as the price (`cost_basis`). `has_slot`: the
    job counts against `max_running_jobs`. `interrupted_at` is the start of the current interruption: the time of the
    warning if there was one. `failed_starts` are those since a task of the job last ran. `own_failures` are the
    launches since then that found no capacity while the job was kept from instances, or ended with an error that
    nobody knows; no other job avoids their offerings.
    `held_back_seconds` is how long it has waited since it first ran for what is no capacity (`held_back_time`), in
    waits that are over, and `held_back_before_seconds` until then; `queued_seconds` and `queued_before_seconds` are the
    parts of both that it waited behind others. `machine_id` is the machine of our own that it claims for its next
    placement, and `machine_requests` how many were requested for it.
    `failed_machines` did not become ready since a task of the job last ran; `refused_since` is since when EC2 refuses
    its requests for a reason that other offerings would not change. `refusals` are the calls that were refused, since
    it last had a task, for what somebody has to grant or mend (core.lifecycle.refusal_waits). `useless_machines_at` is
    when it lost each of the latest machines that never ran a task of it, which bounds how many it gets in a day
    (core.lifecycle.restart_policy), and `useless_machines_usd` what those cost that were requested for it. `ran_on`
    is the machine of our own on which its last task ran that has stopped, empty for one of an earlier version.
    `resume_from` are the jobs that it retries, the latest first: it resumes from the first of them with a checkpoint,
    whose step is `first_step`, 0 if it began from the beginning, None before its first launch. `kept_seconds` is the
    running time, before the current attempt, whose work a checkpoint keeps (core.jobs.progress). `measured_starts` and
    `start_seconds` are what the attempts before the current one say of its overheads, and `checkpoint_seconds` what
    they and the looks at the current one do (core.jobs.progress); `asked_at` is since when it waited for the machine
    of its current placement, None if it did not. `market_reason` is why its market policy launched it where it is, or
    leaves it there, when it last looked; empty if none chose. `early_failures` are the latest failures in a row soon
    after a start. `faulty_machines` are the latest machines in a row that failed under it within an hour, by instance
    ID, or by the name of the node where that is all that is known (core.lifecycle.restart_policy). `judged_attempt` is
    the latest attempt of which it is known whether it gained a step, `attempts_without_progress` how many of the latest
    in a row did not, and `saving_seconds` how long one that did ran until it had saved, 0 if that is not known
    (core.lifecycle.restart_policy). `moved_at` is when its task was stopped for each of the latest moves to spot
    (core.lifecycle.moves). `wait_told_at` is when somebody was last told that it waits for long
    (core.lifecycle.long_waits).
    """

    job_id: str
    definition: JobDefinition
    trigger: TriggerFacts
    revision: Revision
    accepted_at: datetime
    inputs: Mapping[str, str] = field(default_factory=dict)
    state: JobState = JobState.WAITING
    state_since: datetime | None = None
    reason: str = ""
    waiting: Waiting | None = None
    image: tuple[str, str] | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    wake_at: datetime | None = None
    attempt: Attempt | None = None
    has_slot: bool = False
    failures: int = 0
    interruptions: int = 0
    first_started_at: datetime | None = None
    run_seconds: float = 0.0
    cost_usd: float = 0.0
    cost_basis: CostBasis = CostBasis.PRICE
    cancel_requested: str = ""
    pending: tuple[Effect, ...] = ()
    ended_at: datetime | None = None
    interrupted_at: datetime | None = None
    failed_starts: tuple[FailedStart, ...] = ()
    own_failures: tuple[CapacityFailure, ...] = ()
    held_back_seconds: float = 0.0
    held_back_before_seconds: float = 0.0
    queued_seconds: float = 0.0
    queued_before_seconds: float = 0.0
    machine_id: str = ""
    machine_requests: int = 0
    failed_machines: int = 0
    refused_since: datetime | None = None
    refusals: Mapping[RefusedCall, Refusal] = field(default_factory=dict, hash=False)
    useless_machines_at: tuple[datetime, ...] = ()
    useless_machines_usd: float = 0.0
    ran_on: str = ""
    resume_from: tuple[ResumePoint, ...] = ()
    first_step: int | None = None
    kept_seconds: float = 0.0
    measured_starts: int = 0
    start_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    asked_at: datetime | None = None
    market_reason: str = ""
    early_failures: int = 0
    faulty_machines: tuple[str, ...] = ()
    judged_attempt: int = 0
    attempts_without_progress: int = 0
    saving_seconds: float = 0.0
    moved_at: tuple[datetime, ...] = ()
    wait_told_at: datetime | None = None
    version: int = 0

    @property
    def current_attempt(self) -> Attempt:
        """Return the current attempt.

        Raises:
            LookupError: nothing was launched yet; the transition table excludes this.
        """
        if self.attempt is None:
            raise LookupError(f"job {self.job_id} has no attempt yet")
        return self.attempt

    @property
    def attempt_key(self) -> AttemptKey:
        """Return the key of the current attempt, by which its tasks are found; of the first if there is none yet."""
        return AttemptKey(self.job_id, self.attempt.number if self.attempt else 1)

    @property
    def avoided_instances(self) -> tuple[str, ...]:
        """Return the EC2 instances on which it did not start, or that failed under it; its launches exclude them."""
        avoided = (*(each.instance for each in self.failed_starts), *self.faulty_machines)
        return tuple(dict.fromkeys(each for each in avoided if each.startswith("i-")))

    def run_time(self, now: datetime) -> timedelta:
        """Return the running time of the tasks, including the current one."""
        ended = timedelta(seconds=self.run_seconds)
        attempt = self.attempt
        if attempt is None or attempt.started_at is None or attempt.stop is not None:
            return ended
        return ended + (now - attempt.started_at)

    def held_back_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it first ran, for what is no capacity.

        That is for what somebody has to grant or mend, for the slot that it had until then, or for a place within the
        stack's limit on machines of its own.
        """
        ended = timedelta(seconds=self.held_back_seconds)
        return ended if self.first_started_at is None else ended + self._waited_now(now, HELD_BACK_BY)

    def held_back_in_all(self, now: datetime) -> timedelta:
        """Return how long the job has waited, since it was accepted, for what is no capacity: for its image, too."""
        ended = timedelta(seconds=self.held_back_before_seconds + self.held_back_seconds)
        return ended + self._waited_now(now, HELD_BACK_BY)

    def queued_time(self, now: datetime) -> timedelta:
        """Return how long the job has waited behind others of the stack since it first ran; until then in all."""
        ended = self.queued_before_seconds if self.first_started_at is None else self.queued_seconds
        return timedelta(seconds=ended) + self._waited_now(now, QUEUES)

    def _waited_now(self, now: datetime, reasons: Collection[str]) -> timedelta:
        waiting = self.waiting
        if waiting is None or waiting.reason not in reasons:
            return timedelta(0)
        return max(now - waiting.since, timedelta(0))


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One entry of the timeline of a job: a transition, or an event within a state."""

    at: datetime
    state: JobState
    event: str
    detail: str = ""
    attempt_number: int | None = None
