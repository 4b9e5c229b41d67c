"""Invariants checked at every step; each check is counted, each violation recorded with its time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, PlacementState, Stop
from relaunch.core.jobs.effects import RememberCapacity, StopTask
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.orphans import ORPHANED
from relaunch.core.offerings.offering import CapacityFailure
from relaunch_local.ecs import Clock, Event, ProcessSpec
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.effects import Effects
from relaunch_local.simulation.checks.facts import GIVEN_UP_AFTER, LONGEST_MISSING, TASK_STATE_CHANGE, AccountFacts
from relaunch_local.simulation.checks.failed_starts import FailedStarts
from relaunch_local.simulation.checks.groups import Groups
from relaunch_local.simulation.checks.members import placement_of
from relaunch_local.simulation.checks.readiness import is_late
from relaunch_local.simulation.checks.record import check_explanation, check_parameters, check_record, check_write
from relaunch_local.simulation.checks.retries import chain_of, check_retry, newest_checkpoint
from relaunch_local.simulation.checks.slots import Slots
from relaunch_local.simulation.checks.task_events import TaskEvents
from relaunch_local.simulation.checks.wakes import Wakes

# What a launch read, it read at most the time-out of its function ago.
_LONGEST_FUNCTION = timedelta(seconds=60)
# The clocks of two functions differ by up to six seconds.
_SKEW = timedelta(seconds=6)
# What is left of a spot warning of 120 s after SIGTERM; no task definition of a scenario has a `stopTimeout`.
LEAST_STOP_TIMEOUT = timedelta(seconds=90)
# Only a sweep finds an orphaned task, and repeats its stop: every ten minutes, but with many faults most sweeps fail.
LONGEST_ORPHANED = timedelta(minutes=90)


@dataclass(slots=True)
class Invariants:
    """Checks every write of a job, every change of a task, and every start of a container."""

    _clock: Clock
    _objects: ObjectStore
    _max_running_jobs: int
    _facts: AccountFacts
    checks: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """The names of the invariants that were violated."""
    jobs: dict[str, Job] = field(default_factory=dict)
    stops: dict[str, dict[str, Stop]] = field(default_factory=lambda: defaultdict(dict))
    """By job and task: the stop that was recorded."""
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """By task: its attempt as it was written last."""
    intents: dict[str, datetime] = field(default_factory=dict)
    """Since when each task is meant to stop."""
    warned: set[str] = field(default_factory=set)
    """Tasks of whose warning the application had been told when their stop was recorded."""
    recorded_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when its stop was recorded."""
    warned_instances: set[str] = field(default_factory=set)
    """EC2 instances whose warning was handled without an error."""
    hidden: set[str] = field(default_factory=set)
    """Tasks that ECS hid for longer than it documents, from when it began to."""
    denied: set[str] = field(default_factory=set)
    """Those of them that may be given up: after the time that is documented, until sweeps had to stop them."""
    lost: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    """Denied tasks that were given up: their job, and when."""
    orphans: dict[str, datetime] = field(default_factory=dict)
    """Since when each task is known to be orphaned."""
    live_orphans: int = 0
    tasks: dict[str, dict[str, dict[str, object]]] = field(default_factory=lambda: defaultdict(dict))
    """By job and task: ECS's latest state."""
    timelines: dict[str, list[TimelineEntry]] = field(default_factory=lambda: defaultdict(list))
    _live: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _saved_at: dict[str, datetime] = field(default_factory=dict)
    _pending_resumes: dict[tuple[str, int], set[str | None]] = field(default_factory=lambda: defaultdict(set))
    effects: Effects = field(init=False)
    _slots: Slots = field(init=False)
    _failed_starts: FailedStarts = field(init=False)
    wakes: Wakes = field(init=False)
    groups: Groups = field(init=False)
    task_events: TaskEvents = field(init=False)

    def __post_init__(self) -> None:
        """Let the checks of effects, slots, starts, wakes, groups and events count here."""
        self.effects = Effects(self.check, self._clock)
        self._slots = Slots(self.check, self._max_running_jobs, lambda job_id: bool(self._unended(job_id)))
        self.groups = Groups(self.check, self._clock, self._facts, lambda job_id: bool(self._unended(job_id)))
        self.task_events = TaskEvents(self.check, self._clock, self._facts, self.jobs, self.denied)
        self._failed_starts = FailedStarts(self.check)
        self.wakes = Wakes(self.check, self._clock, self._facts, self._saved_at, self._failed_starts.machines)

    def check(self, name: str, holds: bool, message: str = "") -> None:  # noqa: FBT001 - is read as an assert
        """Count a check, and record a violation if it does not hold."""
        self.checks[name] += 1
        if not holds:
            at: datetime = self._clock.now()
            self.broken.add(name)
            self.violations.append(f"{at:%m-%d %H:%M:%S} {name}: {message}")

    def unhandled(self, function: str, error: BaseException) -> None:
        """Record an unexpected exception of a function."""
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f" at {where.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{where.tb_lineno}" if where else ""
        self.check("no unhandled exception", holds=False, message=f"{function}: {type(error).__name__}: {error}{place}")

    def job_saved(self, job: Job, timeline: Sequence[TimelineEntry], *, is_new: bool) -> None:
        """Check a job that was created or saved."""
        before = self.jobs.get(job.job_id)
        self.jobs[job.job_id] = job
        if is_new:
            check_retry(self.check, job, self.jobs)
        self.timelines[job.job_id].extend(timeline)
        for entry in timeline:
            if entry.event == ORPHANED:
                arns = entry.detail.split(", ")
                self.live_orphans += sum(self.lives(job.job_id, arn) for arn in arns if arn not in self.orphans)
                for arn in arns:
                    self.orphans.setdefault(arn, self._clock.now())
        check_record(self.check, before, job, timeline, self._clock.now())
        check_write(self.check, before, job, is_new=is_new)
        self._check_end(before, job)
        self._check_warning(job)
        self.wakes.check_due(before)
        self._saved_at[job.job_id] = self._clock.now()
        self.effects.check_job(job)
        self._check_intent(job)
        self.wakes.check_wake(before, job)
        self._check_explanation(job)
        self._check_placement(before, job)
        self._account(before, job)
        self._slots.check_job(job)
        self.groups.job_saved(before, job)
        self.task_events.job_saved(job)

    def task_changed(self, event: Event) -> None:
        """Check a task that ECS changed."""
        if event["detail-type"] != TASK_STATE_CHANGE:
            return
        detail = event["detail"]
        job_id = str(detail.get("startedBy", "")).rpartition("/")[0]
        if not job_id:
            return
        arn = detail["taskArn"]
        live = self._live[job_id]
        is_new = arn not in self.tasks[job_id]
        self.tasks[job_id][arn] = detail
        if detail["lastStatus"] == "STOPPED":
            live.discard(arn)
            if not self._undenied(job_id):
                self._slots.task_gone(job_id)
            return
        live.add(arn)
        if arn in self.denied:
            return
        if is_new:
            undenied = sorted(self._undenied(job_id))
            placements = {placement_of(self.tasks[job_id][each]) for each in undenied}
            message = f"{job_id}: {', '.join(each[-6:] for each in undenied)}"
            self.check("never two live tasks of one job", len(placements) <= 1, message)
            self._slots.check_task(job_id, self.jobs.get(job_id))
            self.groups.check_task(self.jobs.get(job_id))

    def container_started(self, spec: ProcessSpec) -> None:
        """Check that a training starts with the parameters of its placement, under its own prefix."""
        environment = spec.environment
        job_id = environment.get("RELAUNCH_JOB_ID", "")
        attempt = int(environment.get("RELAUNCH_ATTEMPT", "0"))
        resume = environment.get("RELAUNCH_RESUME_URI")
        self.check(
            "an attempt resumes from what was frozen",
            resume in self._pending_resumes[job_id, attempt],
            f"{job_id}/{attempt} resumes from {resume}",
        )
        written = environment.get("RELAUNCH_CHECKPOINT_URI")
        is_own = written is None or written.endswith(f"/{job_id}/attempt-{attempt}/")
        self.check("an attempt writes under its own prefix", is_own, f"{job_id}/{attempt} writes to {written}")
        if job_id in self.jobs:
            check_parameters(self.check, self.jobs[job_id], spec)

    def container_killed(self, spec: ProcessSpec, after: timedelta) -> None:
        """Check that a training had its time to save between SIGTERM and SIGKILL."""
        message = f"{spec.task_arn[-6:]} of {spec.family} {after} after SIGTERM"
        self.check("SIGKILL leaves time to save", after >= LEAST_STOP_TIMEOUT, message)

    def warning_handled(self, instance_id: str, task_arns: Iterable[str], *, is_closed: bool) -> None:
        """Check the tasks that were on an instance when its warning was handled without an error."""
        for arn in task_arns:
            is_asked = (StopTask, arn) in self.effects.when
            self.check("a warned task is asked to stop", is_asked, f"{arn[-6:]} on {instance_id}")
        self.warned_instances.add(instance_id)
        self.check("a warned machine takes no new task", is_closed, instance_id)

    def late_machines_known(
        self, machines: Iterable[Instance], failures: Iterable[CapacityFailure], since: datetime
    ) -> None:
        """Check that no failure from before `since` that these machines refute is still remembered."""
        when = self.effects.when
        # To the clock of a function one may be over.
        lasting = [each for each in failures if each.until > self._clock.now() + _SKEW]
        known = [each for each in lasting if when[RememberCapacity, str(each.offering)] < since]
        if self._facts.outage_time(since - timedelta(hours=4), self._clock.now()):
            return  # nobody could know of the machine
        for machine in machines:
            avoided = [str(failure.offering) for failure in known if is_late(machine, failure)]
            message = f"{machine.instance_id}: {', '.join(avoided)}"
            self.check("a machine that arrived late is used, not avoided", not avoided, message)

    def task_made(self, started_by: str, task_arn: str, first: str) -> None:
        """Check a task that RunTask created or returned for a client token, beside the first one of the token."""
        self.check(
            "one placement try makes one task", task_arn == first, f"{started_by}: {task_arn[-6:]} beside another"
        )

    def hide(self, task_arn: str) -> None:
        """Record that ECS begins to hide a task for longer than it documents.

        It may be given up, and another one run beside it, once ECS has hidden it for as long as that. When ECS shows it
        again, sweeps have to stop it, unless its job has kept it.
        """
        self.hidden.add(task_arn)
        span = self._facts.hidden_span(task_arn)
        now = self._clock.now()
        since = (span[0] if span else now) - _SKEW
        seconds = max((since + LONGEST_MISSING - now).total_seconds(), 0.0)
        self._clock.call_later(seconds, lambda: self._deny(task_arn))

    def _deny(self, task_arn: str) -> None:
        shown_at = self._facts.shown_at(task_arn)
        if shown_at is None or shown_at <= self._clock.now():
            return
        self.denied.add(task_arn)
        self._look_for_end(task_arn)

    def _look_for_end(self, task_arn: str) -> None:
        """Check, once ECS has shown a task again for long enough, that it was stopped or is the task of its job."""
        shown_at = self._facts.shown_at(task_arn) or self._clock.now()
        now = self._clock.now()
        due_at = shown_at + LONGEST_ORPHANED
        is_unheard = self._facts.is_stop_unheard(task_arn) and any(task_arn in live for live in self._live.values())
        if now < due_at or is_unheard:
            # The task may be hidden for less time, or for more, than it seemed; a host that is cut off stops nothing.
            seconds = min((due_at - now).total_seconds(), 600.0) if now < due_at else 600.0
            self._clock.call_later(seconds, lambda: self._look_for_end(task_arn))
            return
        self.denied.discard(task_arn)
        for job_id, live in self._live.items():
            if task_arn in live:
                attempt = self.jobs[job_id].attempt if job_id in self.jobs else None
                is_kept = attempt is not None and attempt.task_id == task_arn
                self.check("what was hidden is stopped or kept once it is shown", is_kept, f"{job_id}: {task_arn[-6:]}")

    def shown_at(self, task_arn: str) -> datetime | None:
        """Return when ECS showed a task again that it hid, None for any other."""
        return self._facts.shown_at(task_arn)

    def saved_since(self, job_id: str, since: datetime) -> bool:
        """Return whether a job was saved since then."""
        return self._saved_at.get(job_id, since) > since

    def live_tasks(self, job_id: str) -> int:
        """Return the number of live tasks of the job."""
        return len(self._live[job_id])

    def _undenied(self, job_id: str) -> set[str]:
        """Return the live tasks of a job that ECS did not deny, and whose host is not gone."""
        return {arn for arn in self._live[job_id] - self.denied if not self._facts.is_host_gone(arn)}

    def _unended(self, job_id: str) -> set[str]:
        """Return the live tasks of a job that it may not give up."""
        # A stop that no host has confirmed for a day is given up; the verdict checks that it was asked for.
        return self._undenied(job_id).difference(self._facts.unconfirmed_stops(GIVEN_UP_AFTER))

    def lives(self, job_id: str, task_arn: str) -> bool:
        """Return whether a task has not stopped."""
        return task_arn in self._live[job_id]

    def is_listed(self, job_id: str, task_arn: str) -> bool:
        """Return whether ECS lists a task with desired status RUNNING."""
        return self.lives(job_id, task_arn) and self.tasks[job_id][task_arn].get("desiredStatus") == "RUNNING"

    def listed_since(self, since: datetime) -> list[str]:
        """Return the tasks that ECS has listed with desired status RUNNING since then."""
        return [
            arn
            for job_id, tasks in self.tasks.items()
            for arn, task in tasks.items()
            if self.is_listed(job_id, arn) and datetime.fromisoformat(str(task["createdAt"])) <= since
        ]

    def _check_end(self, before: Job | None, job: Job) -> None:
        if job.state.is_final and not (before and before.state.is_final):
            # No answer of RunTask named a task of these jobs, and ECS lists none that it hides: sweeps stop them.
            unlisted = self.hidden if job.job_id in self._facts.unanswered_jobs else set[str]()
            live = self._unended(job.job_id) - unlisted
            self.check("no job ends before its task", not live, f"{job.job_id} {job.state}: {len(live)} live")

    def _check_warning(self, job: Job) -> None:
        attempt = job.attempt
        if not job.definition.target.capabilities.runs_on_ec2:
            return
        if attempt is not None and attempt.warned_at is not None:
            instance_id = self._facts.host_of(attempt.task_id or "") or attempt.instance_id or ""
            instances = (instance_id, *(each.instance_id for each in attempt.placement.followers))
            is_given = any(self._facts.gave_notice(each, attempt.warned_at) for each in instances)
            is_given = is_given or self._facts.has_unconfirmed_stop(instance_id)
            self.check("a warning that is recorded was given", is_given, f"{job.job_id}: {attempt.warned_at}")
        if attempt is None or job.pending or job.state not in (JobState.LAUNCHING, JobState.RUNNING):
            return
        if self._facts.host_of(attempt.task_id or "") in self.warned_instances and attempt.instance_id:
            is_warned = attempt.warned_at is not None
            self.check("a task that lands on a warned machine is warned", is_warned, f"{job.job_id} {job.state}")

    def _check_intent(self, job: Job) -> None:
        attempt = job.attempt
        if attempt is None or attempt.intent is None or attempt.task_id is None or attempt.stop is not None:
            return
        self.intents.setdefault(attempt.task_id, self._clock.now())
        is_pending = any(isinstance(each, StopTask) and each.task_id == attempt.task_id for each in job.pending)
        has_stopped = self.tasks[job.job_id].get(attempt.task_id, {}).get("lastStatus") == "STOPPED"
        is_asked = is_pending or has_stopped or (StopTask, attempt.task_id) in self.effects.when
        self.check("what is meant to stop is asked to", is_asked, f"{job.job_id}: {attempt.intent.kind}")

    def _check_explanation(self, job: Job) -> None:
        try:
            found = explain(job, self._clock.now())
        except Exception as error:  # noqa: BLE001 - whatever it is, the user sees it instead of an explanation
            self.unhandled("relaunch explain", error)
            self.check("every job can be explained", holds=False, message=f"{job.job_id} is {job.state}: nothing")
            return
        check_explanation(self.check, job, found, self._clock.now())

    def _check_placement(self, before: Job | None, job: Job) -> None:
        attempt = job.attempt
        if attempt is None or attempt.placement.state is not PlacementState.PENDING:
            return
        known = before.attempt if before else None
        chosen = attempt.placement
        if known and (known.number, known.placement.number) == (attempt.number, chosen.number):
            return
        newest = newest_checkpoint(job, self.jobs, self._objects)
        expected = newest.uri if newest is not None else None
        self._pending_resumes[job.job_id, attempt.number].add(chosen.resume_uri)
        allowed = {expected}
        chain = [each for each in chain_of(job, self.jobs) if self._live[each] & self.hidden]
        for job_id in chain if job.definition.checkpoint_uri else ():
            # A live task that ECS denies may complete another one between the function's read and its save.
            overtaken, until = self._objects.overtaken.get(job_id, (expected, self._clock.now()))
            allowed |= {overtaken} if self._clock.now() - until < _LONGEST_FUNCTION else set()
        self.check(
            "an attempt resumes from the newest complete checkpoint",
            chosen.resume_uri in allowed,
            f"{job.job_id}/{attempt.number}: {chosen.resume_uri}, and the newest is {expected}",
        )
        if job.definition.checkpoint_uri:
            closed_since = self._objects.closed_since
            is_readable = closed_since is None or self._clock.now() - closed_since < _LONGEST_FUNCTION
            self.check("nothing is launched while its checkpoints cannot be read", is_readable, job.job_id)
        live = len(self._undenied(job.job_id))
        self.check("nothing is launched beside a live task", live == 0, f"{job.job_id}: {live} live")
        cap = job.definition.max_price_usd_per_hour
        is_allowed = cap is None or chosen.offering.purchase == "reserved" or 0 < chosen.price_usd_per_hour <= cap
        self.check("price caps are kept", is_allowed, f"{job.job_id}: {chosen.price_usd_per_hour} > {cap}")

    def _account(self, before: Job | None, job: Job) -> None:
        attempt = job.attempt
        if attempt is None or attempt.task_id is None:
            return
        self._failed_starts.note(job)
        self.attempts[attempt.task_id] = attempt
        if attempt.stop is None or (before and before.attempt and before.attempt.stop == attempt.stop):
            return
        stops = self.stops[job.job_id]
        is_first = attempt.task_id not in stops
        stops[attempt.task_id] = attempt.stop
        if attempt.task_id in self.denied and attempt.placement.is_lost:
            self.lost[attempt.task_id] = (job.job_id, self._clock.now())
        for each in attempt.placement.task_ids:
            self.recorded_at.setdefault(each, self._clock.now())
            self.attempts[each] = attempt
        if self._facts.knows_warning(attempt.task_id, attempt.stop.at):
            self.warned.add(attempt.task_id)
            is_known = attempt.warned_at is not None
            self.check("a warning that was told is recorded", is_known, f"{job.job_id}: {attempt.task_id[-6:]}")
        self._failed_starts.check_stop(
            job, attempt.task_id, self.tasks[job.job_id].get(attempt.task_id, {}), attempt.stop
        )
        self.check("a stop has one reason", is_first, f"{job.job_id}: {attempt.task_id[-6:]} stopped twice")
