"""The promise of a deadline: one that on-demand could have met with its padding is met.

A job with a deadline and an estimate is looked at with every write and every minute. Its slack is what is left until
the deadline without all its work with the padding, one start as long as those it had (the constant counts as one), and
ON_DEMAND_RESERVE. When the slack is used up, on-demand asked for and granted at that moment would still just keep the
deadline. How much earlier than that a policy must leave spot, because an interruption loses work, is its own business.
What uses time up after that is either

- the application's own doing: it waits for its market or for capacity while on-demand could be had; it takes spot
  while on-demand could be had, with less slack than a start and what an interruption was known to lose, and whatever
  follows of that; or, without faults, it needs a quarter of an hour and more to send a launch; or
- a fault that no choice of the job undoes: on-demand that is refused, late, lost or interrupted, and starts that fail;
  slots, the limits of the stack on machines, images, checkpoints that cannot be read; failures of the program; calls,
  messages and functions that fail; an interruption that lost more than anything had shown before.

A job that is late, and would not be without its own doing, is a violation: what it lacks at its deadline is no more
than what it wasted. One that lacks more is excused, by the fault that took most time. A task that ECS hides for longer
than it documents is such a fault, until a sweep had to stop it. Nothing is said of jobs that failed or were cancelled,
nor of those that may use spot only, for which nothing is sold on demand, whose estimate is too low by more than the
padding, or that had no slack when they were accepted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.market_choice import ON_DEMAND_RESERVE
from relaunch.core.machines.machine import Machine
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL, START_OVERHEAD
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.recipes import work_of
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.invariants import LONGEST_ORPHANED, Invariants
from relaunch_local.simulation.checks.on_demand import OnDemand
from relaunch_local.simulation.checks.retries import newest_checkpoint
from relaunch_local.simulation.scenario import TrueSpeed

PROMISE = "a deadline that on-demand could have met is met"
# A function decides on what it read a minute ago at most, and the clocks of two differ by six seconds.
_LATE_WRITE = timedelta(minutes=2)
# Without faults a launch is sent within seconds; a function that was killed before is repeated after six minutes.
# Runs of the schedule that fail, or do not come.
_MISSED_RUNS = timedelta(minutes=3)
_LONGEST_LAUNCH = timedelta(minutes=15)
_SHORTEST_START = timedelta(minutes=2)
_LONGEST_START = timedelta(hours=1)
_CLOSE = timedelta(minutes=45)
_MINUTE = 60.0
# What few jobs have shown of a speed counts with a margin of a tenth, and what they show differs by saves.
_LEARNED_MARGIN = 0.85
_NONE = timedelta(0)

_HELD_BACK_BY = {
    WaitReason.SLOT: "a slot",
    WaitReason.IMAGE: "its image",
    WaitReason.BACKOFF: "failures of its program or of its starts",
    WaitReason.CHECKPOINT: "checkpoints that cannot be read",
    WaitReason.REFUSED: "a permission that is missing",
    WaitReason.MACHINE_LIMIT: "the limits on machines",
    WaitReason.BUDGET: "its budget",
}


@dataclass(frozen=True, slots=True)
class _Owner:
    """What uses the time of a job up; `is_own`: the application's own doing."""

    what: str
    is_own: bool = False


@dataclass(slots=True)
class _Watched:
    """A job with a promise: `slack` when it was looked at last, and who is responsible since then."""

    deadline: datetime
    slack: timedelta
    had_slack: bool
    owner: _Owner
    least_slack: timedelta
    possible_until: datetime
    """The last time when on-demand, asked for then, would have kept the deadline."""
    lost: dict[_Owner, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds since the slack was used up."""
    risks: dict[str, bool] = field(default_factory=dict)
    """By start on spot: whether it was too late for one."""
    slow: dict[str, bool] = field(default_factory=dict)
    """By start: whether its machine was too slow."""
    left_at_deadline: timedelta | None = None

    @property
    def wasted(self) -> timedelta:
        """Return the time that the application wasted after the slack was used up."""
        return timedelta(seconds=sum(seconds for owner, seconds in self.lost.items() if owner.is_own))


@dataclass(slots=True)
class Deadlines:
    """Watches the jobs with a deadline whose work is known."""

    _clock: Clock
    _chance: Chance
    _invariants: Invariants
    _objects: ObjectStore
    _trainings: Trainings
    _machines: Mapping[str, Machine]
    """The machines as they were saved last."""
    _on_demand: OnDemand
    _speeds: Mapping[str, Mapping[str, TrueSpeed]] = field(default_factory=dict)
    """By definition and instance type, where trainings are not as fast everywhere."""
    _outage_time: Callable[[datetime, datetime], timedelta] = lambda _since, _until: timedelta(0)
    outcomes: Counter[str] = field(default_factory=Counter)
    """How many jobs kept their deadline, were excused, and by what."""
    _watched: dict[str, _Watched] = field(default_factory=dict)
    _starts: dict[str, dict[int, timedelta]] = field(default_factory=dict)
    """By job and attempt: how long its task was awaited."""
    _shown: dict[str, float] = field(default_factory=dict)
    """By definition: how fast its trainings have been at most, as far as they were looked at."""

    def job_saved(self, job: Job) -> None:
        """Look at a job that was created or saved."""
        if job.job_id not in self._watched:
            if job.state.is_final or not self._is_promised(job.definition):
                return
            self._begin(job)
        self._note_start(job)
        self._look(job.job_id)

    def check_end(self) -> None:
        """Check every job that has ended."""
        for job_id, watched in self._watched.items():
            job = self._invariants.jobs[job_id]
            self._check(job, watched)

    def _is_promised(self, definition: JobDefinition) -> bool:
        estimate = definition.estimated_duration
        recipe = self._trainings.recipes.get(definition.name)
        if definition.deadline is None or estimate is None or recipe is None:
            return False
        is_in_padding = work_of(recipe) <= estimate * (1 + definition.padding) + timedelta(seconds=1)
        return is_in_padding and self._on_demand.is_sold_to(definition)

    def _begin(self, job: Job) -> None:
        now = self._clock.now()
        deadline = job.accepted_at + (job.definition.deadline or _NONE)
        slack = self._slack(job, deadline)
        owner = _Owner("messages and functions")
        self._watched[job.job_id] = _Watched(deadline, slack, self._has_slack(job, deadline, slack), owner, slack, now)
        self._clock.call_later(_MINUTE, lambda: self._tick(job.job_id))
        self._clock.call_later(max((deadline - now).total_seconds(), 0.0), lambda: self._reach(job.job_id))

    def _tick(self, job_id: str) -> None:
        if not self._invariants.jobs[job_id].state.is_final:
            self._look(job_id)
            self._clock.call_later(_MINUTE, lambda: self._tick(job_id))

    def _reach(self, job_id: str) -> None:
        """Note what a job lacks at its deadline."""
        job = self._invariants.jobs[job_id]
        if job.state.is_final:
            return
        self._look(job_id)
        speeds = [each.speed for each in self._trainings.running.values() if each.job_id == job_id]
        start = _NONE if speeds else _SHORTEST_START
        speed = max(speeds, default=self._on_demand.speed(job.definition))
        self._watched[job_id].left_at_deadline = self._work_left(job) / speed + start

    def _look(self, job_id: str) -> None:
        job = self._invariants.jobs[job_id]
        watched = self._watched[job_id]
        now = self._clock.now()
        self._on_demand.look(now)
        name = job.definition.name
        ran_at = (each.speed for each in self._trainings.running.values() if each.job_id == job_id)
        self._shown[name] = max(self._shown.get(name, 0.0), *ran_at, 0.0)
        slack = self._slack(job, watched.deadline)
        lost = max(-slack, _NONE) - max(-watched.slack, _NONE)
        if lost > _NONE and watched.left_at_deadline is None:
            watched.lost[watched.owner] += lost.total_seconds()
        if slack >= _NONE:
            watched.possible_until = now
            # What was lost is made up for: work was less than it seemed.
            watched.lost.clear()
        watched.slack = slack
        watched.least_slack = min(slack, watched.least_slack)
        is_hidden = any(map(self._is_hidden, self._invariants.tasks[job_id]))
        watched.owner = _Owner("a hidden task") if is_hidden else self._owner(job, watched, now)

    def _slack(self, job: Job, deadline: datetime, speed: float | None = None) -> timedelta:
        """Return the slack, with all work at this speed, or at the best true one of what is sold on demand."""
        work = self._padded(job) / (speed or self._on_demand.speed(job.definition))
        return deadline - self._clock.now() - work - self._start(job.job_id) - ON_DEMAND_RESERVE

    def _has_slack(self, job: Job, deadline: datetime, slack: timedelta) -> bool:
        """Return whether a job has slack by the speed that it has at least, when it is accepted."""
        if job.definition.name not in self._speeds:
            return slack > _NONE
        least = self._on_demand.least_speed(job.definition) * _LEARNED_MARGIN
        return self._slack(job, deadline, least) > _NONE

    def _padded(self, job: Job) -> timedelta:
        """Return the work left if the estimate is too low by the whole padding, as the policy has to expect."""
        definition = job.definition
        most = (definition.estimated_duration or _NONE) * (1 + definition.padding)
        whole = work_of(self._trainings.recipes[definition.name])
        return self._work_left(job) * max(most / whole, 1.0)

    def _work_left(self, job: Job) -> timedelta:
        """Return the work left if the training that runs goes on, or the next one resumes from what is saved."""
        recipe = self._trainings.recipes[job.definition.name]
        now = self._clock.now()
        arn = job.attempt.task_id if job.attempt is not None else None
        if self._trainings.logs[job.job_id].endings.get(arn or "") == "finished":
            return _NONE
        running = [each for each in self._trainings.running.values() if each.job_id == job.job_id]
        if running:
            return work_of(recipe, max(each.done_at(now) for each in running))
        saved = newest_checkpoint(job, self._invariants.jobs, self._objects)
        return work_of(recipe, saved.step if saved is not None else 0.0)

    def _note_start(self, job: Job) -> None:
        attempt = job.attempt
        if attempt is not None and attempt.started_at is not None:
            asked_at = job.machines.asked_at or attempt.placement.requested_at
            waited = max(attempt.started_at - asked_at, _NONE)
            self._starts.setdefault(job.job_id, {}).setdefault(attempt.number, waited)

    def _start(self, job_id: str) -> timedelta:
        known = self._starts.get(job_id, {}).values()
        mean = (START_OVERHEAD + sum(known, _NONE)) / (1 + len(known))
        return min(max(mean, _SHORTEST_START), _LONGEST_START)

    def _known_loss(self, job: Job) -> timedelta:
        """Return the work that an interruption was shown to lose by the attempts of the job that are over.

        That is the longest time that one ran from a checkpoint to the next, to its end without another one, or from its
        start until the application was told that there is no checkpoint yet. Before the first checkpoint the constant
        is the least.
        """
        left = self._padded(job)
        uri = job.definition.checkpoint_uri
        if uri is None:
            return left
        told_at = self._objects.told_at[f"{uri.removeprefix('s3://').partition('/')[2]}{job.job_id}/"]
        saved = self._objects.saved_by_attempt(uri, job.job_id)
        between = [_NONE]
        unsaved = [_NONE]
        for arn, task in self._invariants.tasks[job.job_id].items():
            stop = self._invariants.stops[job.job_id].get(arn)
            if stop is None or "startedAt" not in task:
                continue
            begun_at = datetime.fromisoformat(str(task["startedAt"]))
            times = saved.get(int(str(task["startedBy"]).rpartition("/")[2]), [])
            between += [later - sooner for sooner, later in pairwise(times)]
            unsaved.append(stop.at - (times[-1] if times else begun_at))
            # What was read may be lost with the function that read it: another one looks again.
            looks = [at for at in told_at if times and begun_at <= at < times[0]][:-1]
            unsaved += [at - begun_at for at in looks]
        return min(max(*between, *unsaved, _NONE if max(between) else CHECKPOINT_INTERVAL), left)

    def _owner(self, job: Job, watched: _Watched, now: datetime) -> _Owner:
        waiting = job.waiting
        if job.state is not JobState.WAITING or waiting is None:
            return self._owner_of_task(job, watched, now)
        if waiting.reason in _HELD_BACK_BY:
            return _Owner(_HELD_BACK_BY[waiting.reason])
        if waiting.reason is WaitReason.MARKET:
            return _Owner("waited for its market", self._on_demand.may_be_had(job, now))
        if waiting.reason in (WaitReason.CAPACITY, WaitReason.PRICE):
            is_asked = any(isinstance(each, RequestLaunch) for each in job.pending)
            # The function that asked for a launch died, or its message was lost: it is asked for again at `wake_at`.
            is_lost = is_asked and job.wake_at is not None and now <= job.wake_at + _MISSED_RUNS
            is_own = not is_lost and self._on_demand.may_be_had(job, now)
            return _Owner("waited for capacity, and on-demand was there" if is_own else "capacity", is_own)
        if waiting.reason is WaitReason.MACHINE:
            machine = self._machines.get(job.machine_id)
            purchase = machine.request.overrides[0].offering.purchase if machine is not None else None
            return self._owner_of_start(job, watched, now, purchase, job.machine_id)
        is_slow = self._chance.is_calm and now - waiting.since > _LONGEST_LAUNCH
        return (
            _Owner("waited for its launch without any fault", is_own=True)
            if is_slow
            else _Owner("messages and functions")
        )

    def _is_hidden(self, task_arn: str) -> bool:
        """Return whether ECS hides a task, or showed it again so lately that it may still work beside another one."""
        shown_at = self._invariants.shown_at(task_arn)
        is_live = task_arn in self._trainings.running
        return shown_at is not None and is_live and self._clock.now() < shown_at + LONGEST_ORPHANED

    def _owner_of_task(self, job: Job, watched: _Watched, now: datetime) -> _Owner:
        attempt = job.attempt
        if attempt is None:
            return _Owner("messages and functions")
        placement = attempt.placement
        start = placement.machine_id or f"{attempt.number}/{placement.number}"
        if self._is_too_slow(job, watched, now, start):
            return _Owner("took a machine that is too slow", is_own=True)
        return self._owner_of_start(job, watched, now, placement.offering.purchase, start)

    def _is_too_slow(self, job: Job, watched: _Watched, now: datetime, start: str) -> bool:
        """Return whether the machine, when it was chosen, was too slow for the deadline, and another one was not.

        That of the other one has to be known: published peaks say it, or trainings of the definition have shown it.
        """
        definition = job.definition
        name = job.current_attempt.placement.offering.instance_type
        if start not in watched.slow and definition.name in self._speeds:
            true = self._speeds[definition.name][name].true
            is_late = watched.deadline - now < self._work_left(job) / true
            known = max(self._on_demand.least_speed(definition), self._shown.get(definition.name, 0.0))
            watched.slow[start] = is_late and self._slack(job, watched.deadline, known) > _NONE
        return watched.slow.get(start, False)

    def _owner_of_start(
        self, job: Job, watched: _Watched, now: datetime, purchase: PurchaseOption | None, start: str
    ) -> _Owner:
        if purchase is not PurchaseOption.SPOT:
            return _Owner("on-demand that came late, did not start or was lost")
        if start not in watched.risks:
            needed = self._start(job.job_id) + self._known_loss(job) - _LATE_WRITE
            watched.risks[start] = watched.slack < needed and self._on_demand.may_be_had(job, now)
        if watched.risks[start]:
            return _Owner("took spot when it was too late for it", is_own=True)
        return _Owner("spot that was lost with more than was known")

    def _check(self, job: Job, watched: _Watched) -> None:
        ended_at = job.ended_at
        if job.state not in (JobState.SUCCEEDED, JobState.TIMED_OUT) or ended_at is None:
            self.outcomes["ended otherwise"] += 1
            return
        if not watched.had_slack:
            self.outcomes["no on-demand instance could have kept it"] += 1
            return
        if job.state is JobState.TIMED_OUT and ended_at < watched.deadline - _LATE_WRITE:
            self.outcomes["ended otherwise"] += 1
            return
        late = max(ended_at - watched.deadline, _NONE)
        if job.state is JobState.TIMED_OUT:
            late = watched.left_at_deadline or _NONE
        if not late:
            self._invariants.check(PROMISE, holds=True)
            self.outcomes["kept, close to it" if watched.least_slack < _CLOSE else "kept"] += 1
            return
        if self._outage_time(job.accepted_at, ended_at):
            self.outcomes["excused by a service that was away"] += 1
            return
        if watched.wasted < max(late, _LATE_WRITE):
            others = {owner.what: seconds for owner, seconds in watched.lost.items() if not owner.is_own}
            most = max(others, key=lambda what: others[what], default="messages and functions")
            self.outcomes[f"excused by {most}"] += 1
            return
        self.outcomes["broken"] += 1
        self._invariants.check(PROMISE, holds=False, message=_told(job, watched, late))


def _told(job: Job, watched: _Watched, late: timedelta) -> str:
    doings = "; ".join(
        f"{owner.what} ({round(seconds / 60)} min)" for owner, seconds in watched.lost.items() if owner.is_own
    )
    return (
        f"{job.job_id} is {job.state}, {round(late / timedelta(minutes=1))} min short of its deadline at "
        f"{watched.deadline:%m-%d %H:%M:%S}; on-demand, asked for by {watched.possible_until:%m-%d %H:%M:%S}, would "
        f"have kept it; after that it {doings}"
    )
