"""What must hold when a run is over: every event became its job, every job ended as it deserved, the bill is right."""

import itertools
from collections.abc import Mapping
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, JobState, Stop, StopKind
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch_local.simulation.aws.account import Cloud
from relaunch_local.simulation.faults.rare import Mishaps
from relaunch_local.simulation.workload import Outside

# ECS writes moments in milliseconds; a task has two of them.
MOMENT = timedelta(milliseconds=2)
# Clocks of two functions differ by up to six seconds.
CLOCKS = timedelta(seconds=7)
# A function may be late by its minute, StopTask by its repetition (3 minutes) for as long as calls fail or an agent is
# cut off (15 minutes), the program by its stop time-out.
RUNTIME_OVERSHOOT = timedelta(minutes=45)
STOP_OVERSHOOT = timedelta(minutes=30)
# A cancelled job whose RunTask was not answered waits until ECS certainly lists its task (6 minutes); a job past its
# deadline is looked at when its task had to start (8 minutes, or 30). Then the task has to stop.
CANCEL_OVERSHOOT = timedelta(minutes=45)
DEADLINE_OVERSHOOT = timedelta(minutes=65)
# A job past its deadline waits for RunTask's answer until the try is too old.
UNANSWERED = timedelta(minutes=56)
# A look at the job that is late by a pass or two, whose calls fail.
LOOK_OVERSHOOT = timedelta(minutes=15)
START_LIMIT = timedelta(minutes=30)
_UNKNOWN = "ECS does not know"
# ECS tells of a stopped task for an hour.
STOPPED_KEPT = timedelta(hours=1) - CLOCKS
# Only a sweep asks again for the stop of a stray: every ten minutes, but where much fails most of them do not get far.
SWEEP_OVERSHOOT = timedelta(minutes=60)


class Verdict:
    """Judges a run that has come to rest."""

    def __init__(self, cloud: Cloud, outside: Outside, mishaps: Mishaps) -> None:
        """Judge this one."""
        self._mishaps = mishaps
        self._cloud = cloud
        self._outside = outside
        self._check = cloud.invariants.check

    def judge(self) -> None:
        """Check everything once."""
        self._check_events()
        self._check_dead_letters()
        for job in self._cloud.invariants.jobs.values():
            self._check_end(job)
            self._check_stops(job)
            self._check_cost(job)
            self._check_runtime(job)
            self._check_timeline(job)
            self._check_cancelled(job)
            self._check_deadline(job)
            self._check_starts(job)
            self._check_orphans(job)
        slots = getattr(self._cloud.stores.jobs, "slots", {})
        held = {name: count for name, count in slots.items() if count}
        are_over = all(job.state.is_final for job in self._cloud.invariants.jobs.values())
        self._check("every slot is given back", not (held and are_over), str(held))

    def _check_events(self) -> None:
        jobs = self._cloud.invariants.jobs.values()
        matched = 0
        for definition, token in sorted(self._outside.accepted):
            found = [job.job_id for job in jobs if job.definition.name == definition and token in job.trigger.identity]
            matched += len(found)
            message = f"{definition} {token[:12]}: {len(found)} jobs"
            self._check("an accepted event becomes exactly one job", len(found) == 1, message)
        self._check("no job without an event", matched == len(jobs), f"{len(jobs)} jobs, {matched} of them from events")

    def _check_dead_letters(self) -> None:
        dead_letters = 0
        for letter in self._cloud.queues.dead_letters:
            if letter.queue.endswith(":given-up") or letter.queue == "ReconcileDeadLetterQueue":
                continue  # EventBridge's, and passes of the schedule: nothing of them is lost
            is_told = letter.cause.startswith("sent there: ") and len(letter.cause) > len("sent there: ")
            dead_letters += is_told
            self._check("only poison is dead", is_told, f"{letter.queue}: {letter.cause}: {letter.body[:200]}")
        self._check(
            "all poison is dead",
            dead_letters >= self._outside.dead_letters,
            f"{dead_letters} of {self._outside.dead_letters}",
        )
        # A dead letter that came twice is two dead letters.
        self._check(
            "nothing else is dead",
            (dead_letters > 0) <= (self._outside.dead_letters > 0),
            f"{dead_letters} dead letters",
        )

    def _check_end(self, job: Job) -> None:
        is_over = job.state.is_final and not job.pending
        words = f"{job.job_id} is {job.state} since {job.state_since}, wake_at {job.wake_at}: {job.reason}"
        self._check("a job that can finish does finish", is_over, words)
        live = self._cloud.invariants.live_tasks(job.job_id)
        self._check("nothing lives on", live == 0, f"{job.job_id}: {live} tasks")
        if job.state.is_final:
            reason = self._injustice(job)
            self._check("every end is deserved", not reason, f"{job.job_id} {job.state}: {reason} ({job.reason})")

    def _injustice(self, job: Job) -> str:
        log = self._cloud.trainings.logs[job.job_id]
        match job.state:
            case JobState.SUCCEEDED:
                return "" if log.finished or self._left_unwarned(job) else "its program never finished"
            case JobState.CANCELLED:
                return "" if self._was_cancelled(job) else "nobody wanted it to end"
            case JobState.TIMED_OUT:
                return self._not_late(job)
            case _:
                return self._undeserved_failure(job)

    def _was_cancelled(self, job: Job) -> bool:
        tasks = self._cloud.invariants.tasks[job.job_id]
        return job.job_id in self._outside.cancelled or any(arn in self._mishaps.stopped_by_others for arn in tasks)

    def _left_unwarned(self, job: Job) -> bool:
        """Whether a training left by itself, with 0, before its job was told why: nobody could tell."""
        log, invariants = self._cloud.trainings.logs[job.job_id], self._cloud.invariants
        return any(
            log.endings.get(arn) == "left" for arn in invariants.stops[job.job_id] if arn not in invariants.warned
        )

    def _undeserved_failure(self, job: Job) -> str:
        log = self._cloud.trainings.logs[job.job_id]
        if job.failures > job.definition.max_failures:
            stops = self._cloud.invariants.stops[job.job_id].values()
            failed = log.failed + sum(stop.kind is StopKind.NOT_STARTED for stop in stops)
            return "" if failed >= job.failures else f"it failed {failed} times, not {job.failures}"
        if job.reason.startswith("ECS refuses the launch: AccessDenied"):
            return "" if self._cloud.delayed_ecs.forbidden_until else "nobody forbade it"
        if "CheckpointBuckets" in job.reason:
            return "" if self._mishaps.was_closed else "its bucket can be read"
        if job.attempt is None and job.reason.startswith("waiting for image"):
            return self._image_was_there(job)
        is_hopeless = job.attempt is None and job.reason.startswith("nothing satisfies this job")
        return "" if is_hopeless else "nothing says why"

    def _not_late(self, job: Job) -> str:
        ended_at = job.ended_at or self._cloud.clock.now()
        deadline = job.definition.deadline
        is_late = deadline is not None and ended_at >= job.accepted_at + deadline - CLOCKS
        has_run = job.run_seconds >= job.definition.max_runtime.total_seconds() - CLOCKS.total_seconds()
        return "" if is_late or has_run else f"it ran for {job.run_seconds:.0f} s"

    def _image_was_there(self, job: Job) -> str:
        wait = timedelta(minutes=30)
        is_late = job.ended_at is not None and job.ended_at >= job.accepted_at + wait - CLOCKS
        came_at = next((e.at_seconds + (e.image_after_seconds or 1e9) for e in self._cloud.scenario.events
                        if job.image and e.token == job.image[1]), 1e9)  # fmt: skip
        accepted = (job.accepted_at - self._cloud.started_at).total_seconds()
        was_there = came_at < accepted + wait.total_seconds() - 130
        return "" if is_late and not was_there else "its image was there"

    def _check_stops(self, job: Job) -> None:
        invariants = self._cloud.invariants
        stops, tasks = invariants.stops[job.job_id], invariants.tasks[job.job_id]
        if not job.state.is_final:
            return
        for arn in tasks:
            # What ECS denied or forgot while RunTask went unanswered nobody could ever learn of.
            is_unknowable = arn in invariants.denied or arn in self._cloud.delayed_ecs.forgotten
            is_unknowable = is_unknowable or self._was_dropped(job, tasks[arn])
            is_told = arn in stops or arn in invariants.orphans or is_unknowable
            self._check("every stop is accounted for", is_told, f"{job.job_id}: {arn[-6:]} has no reason")
        for arn, stop in stops.items():
            wrong = self._misjudged(job, arn, stop)
            self._check("a stop's reason is its cause", not wrong, f"{job.job_id}: {arn[-6:]} {stop.kind}: {wrong}")
            self._check_stopped_in_time(job, arn, tasks.get(arn, {}))
        failures = sum(is_failure(stop.kind) for stop in stops.values())
        self._check("failures are those of the stops", failures == job.failures, f"{job.job_id}: {failures}")

    def _was_dropped(self, job: Job, task: Mapping[str, object]) -> bool:
        """Whether ECS knew nothing of a stopped task any more when its unanswered try was given up."""
        stopped = task.get("stoppedAt")
        timeline = self._cloud.invariants.timelines[job.job_id]
        given_up = [entry.at for entry in timeline if entry.event == "try closed"]
        known_until = datetime.fromisoformat(str(stopped)) + STOPPED_KEPT if stopped else None
        return known_until is not None and any(at >= known_until for at in given_up)

    def _check_stopped_in_time(self, job: Job, arn: str, task: Mapping[str, object]) -> None:
        meant_at, stopped = self._cloud.invariants.intents.get(arn), task.get("stoppedAt")
        if meant_at is None or not stopped or arn in self._cloud.invariants.denied:
            return
        took = datetime.fromisoformat(str(stopped)) - meant_at
        self._check("what is meant to stop does stop", took <= STOP_OVERSHOOT, f"{job.job_id}: {arn[-6:]} after {took}")

    def _misjudged(self, job: Job, arn: str, stop: Stop) -> str:
        ending = self._cloud.trainings.logs[job.job_id].endings.get(arn, "never started")
        meant_at = self._cloud.invariants.intents.get(arn)
        has_started = "startedAt" in self._cloud.invariants.tasks[job.job_id].get(arn, {})
        match stop.kind:
            case StopKind.SUCCESS:
                is_right = ending == "finished" or (ending == "left" and arn not in self._cloud.invariants.warned)
            case StopKind.CANCELLED if arn in self._mishaps.stopped_by_others:
                is_right = True
            case StopKind.NOT_STARTED:
                is_right = not has_started or meant_at is not None
            case StopKind.USER_ERROR:
                is_right = ending == "failed"
            case StopKind.OUT_OF_MEMORY:
                is_right = ending == "out of memory"
            case StopKind.NO_CAPACITY:
                is_right = not has_started or job.attempt is not None
            case StopKind.UNKNOWN | StopKind.IMAGE:
                is_right = False
            case _:
                is_right = True
        return "" if is_right else f"its program {ending}"

    def _check_cancelled(self, job: Job) -> None:
        asked_at = self._outside.cancellations.get(job.job_id)
        if asked_at is None or job.ended_at is None or job.ended_at <= asked_at + CLOCKS:
            return
        took = job.ended_at - asked_at
        self._check("what is cancelled ends in time", took <= CANCEL_OVERSHOOT, f"{job.job_id} after {took}")
        intents = [
            at for arn in self._cloud.invariants.tasks[job.job_id] if (at := self._cloud.invariants.intents.get(arn))
        ]
        was_late = job.state is JobState.TIMED_OUT and any(at <= asked_at + CLOCKS for at in intents)
        has_finished = job.state is JobState.SUCCEEDED
        is_kept = job.state is JobState.CANCELLED or was_late or has_finished
        self._check("what is cancelled ends as cancelled", is_kept, f"{job.job_id} is {job.state}: {job.reason}")

    def _check_deadline(self, job: Job) -> None:
        if job.definition.deadline is None:
            return
        latest = job.accepted_at + job.definition.deadline
        patience = DEADLINE_OVERSHOOT + (UNANSWERED if self._cloud.delayed_ecs.answers_lost_until else timedelta(0))
        ends = {"it": job.ended_at} | {
            arn[-6:]: datetime.fromisoformat(str(task["stoppedAt"]))
            for arn, task in self._cloud.invariants.tasks[job.job_id].items()
            if task.get("stoppedAt") and arn not in self._cloud.invariants.denied
        }
        for name, ended_at in ends.items():
            late = (ended_at or self._cloud.clock.now()) - latest
            is_kept = late <= patience
            self._check("nothing lives long after its deadline", is_kept, f"{job.job_id}: {name} {late} later")

    def _check_starts(self, job: Job) -> None:
        """A task without a machine, and one that does not start on its own, is withdrawn; then it has to stop."""
        invariants = self._cloud.invariants
        patience = timedelta(seconds=self._cloud.scenario.limits.provisioning_deadline_seconds)
        for arn, task in invariants.tasks[job.job_id].items():
            placed_at = invariants.placed.get(arn)
            if placed_at is None or arn in invariants.denied or not task.get("stoppedAt"):
                continue
            given_up_at = invariants.intents.get(arn) or _moment(task, "stoppedAt") or placed_at
            machine_at = _moment(task, "connectivityAt") or given_up_at
            started_at = _moment(task, "startedAt") or given_up_at
            in_time = min(machine_at, given_up_at) <= placed_at + patience + LOOK_OVERSHOOT
            waited = f"{job.job_id}: {arn[-6:]} waited {min(machine_at, given_up_at) - placed_at}"
            self._check("a task without a machine is withdrawn in time", in_time, waited)
            in_time = min(started_at, given_up_at) <= placed_at + START_LIMIT + LOOK_OVERSHOOT
            waited = f"{job.job_id}: {arn[-6:]} waited {min(started_at, given_up_at) - placed_at}"
            self._check("a task that does not start is withdrawn in time", in_time, waited)

    def _check_orphans(self, job: Job) -> None:
        invariants = self._cloud.invariants
        for arn, task in invariants.tasks[job.job_id].items():
            stopped_at, orphan_at = _moment(task, "stoppedAt"), invariants.orphans.get(arn)
            if stopped_at is None:
                continue
            if orphan_at is not None:
                took = stopped_at - orphan_at
                in_time = took <= STOP_OVERSHOOT + SWEEP_OVERSHOOT
                self._check("a stray task stops in time", in_time, f"{job.job_id}: {arn[-6:]} {took}")

    def _check_cost(self, job: Job) -> None:
        invariants = self._cloud.invariants
        if not job.state.is_final:
            return
        bill, slack = 0.0, 0.000001
        for arn, stop in invariants.stops[job.job_id].items():
            price = invariants.prices[arn]
            seconds = _run_seconds(invariants.tasks[job.job_id].get(arn, {}))
            bill += seconds / 3600 * price
            slack += MOMENT.total_seconds() / 3600 * price
            if stop.stopped_reason.startswith(_UNKNOWN):
                # When it ended nobody can tell any more.
                slack += 86_400 / 3600 * price
        is_right = abs(bill - job.cost_usd) <= slack
        self._check("the record's cost is the bill", is_right, f"{job.job_id}: {job.cost_usd:.6f}, billed {bill:.6f}")

    def _check_runtime(self, job: Job) -> None:
        tasks, denied = self._cloud.invariants.tasks[job.job_id], self._cloud.invariants.denied
        ran = timedelta(seconds=sum(_run_seconds(task) for arn, task in tasks.items() if arn not in denied))
        is_kept = ran <= job.definition.max_runtime + RUNTIME_OVERSHOOT
        self._check("max_runtime is kept", is_kept, f"{job.job_id} ran {ran} of {job.definition.max_runtime}")

    def _check_timeline(self, job: Job) -> None:
        timeline = self._cloud.invariants.timelines[job.job_id]
        moments = [entry.at for entry in timeline]
        is_ordered = all(later >= earlier - CLOCKS for earlier, later in itertools.pairwise(moments))
        self._check("the timeline is in order", is_ordered, job.job_id)
        is_first = bool(timeline) and timeline[0].event in {"accepted", "failed"}
        is_last = not job.state.is_final or any(entry.state is job.state for entry in timeline)
        self._check("the timeline tells the beginning and the end", is_first and is_last, job.job_id)


def _moment(task: Mapping[str, object], name: str) -> datetime | None:
    """A moment that ECS tells of a task."""
    told = task.get(name)
    return datetime.fromisoformat(str(told)) if told else None


def _run_seconds(task: Mapping[str, object]) -> float:
    started, stopped = task.get("startedAt"), task.get("stoppedAt")
    if not started or not stopped:
        return 0.0
    return (datetime.fromisoformat(str(stopped)) - datetime.fromisoformat(str(started))).total_seconds()
