"""What must hold when a run is over: every event became its job, every job ended as it deserved, the bill is right."""

import itertools
from collections.abc import Mapping
from datetime import datetime, timedelta

from relaunch.core.job import Job, JobState, Stop, StopKind
from relaunch.core.restart_policy import is_failure
from relaunch_local.simulation.cloud import Cloud
from relaunch_local.simulation.outside import Outside

# ECS writes moments in milliseconds; a task has two of them.
MOMENT = timedelta(milliseconds=2)
# Clocks of two functions differ by up to six seconds.
CLOCKS = timedelta(seconds=7)
# A function may be late by its minute, StopTask by its repetition (3 minutes) for as long as calls fail or an agent is
# cut off (15 minutes), the program by its stop time-out.
RUNTIME_OVERSHOOT = timedelta(minutes=45)
STOP_OVERSHOOT = timedelta(minutes=30)


class Verdict:
    """Judges a run that has come to rest."""

    def __init__(self, cloud: Cloud, outside: Outside) -> None:
        """Judge this one."""
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
        slots = getattr(self._cloud.store, "slots", {})
        held = {name: sorted(jobs) for name, jobs in slots.items() if jobs}
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
        poison = 0
        for letter in self._cloud.queues.dead_letters:
            if letter.queue.endswith(":given-up") or letter.queue == "ReconcileDeadLetterQueue":
                continue  # EventBridge's, and passes of the schedule: nothing of them is lost
            is_told = letter.cause.startswith("sent there: ") and len(letter.cause) > len("sent there: ")
            poison += is_told
            self._check("only poison is dead", is_told, f"{letter.queue}: {letter.cause}: {letter.body[:200]}")
        self._check("all poison is dead", poison >= self._outside.poison, f"{poison} of {self._outside.poison}")
        # A dead letter that came twice is two dead letters.
        self._check("nothing else is dead", (poison > 0) <= (self._outside.poison > 0), f"{poison} dead letters")

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
                return "" if log.finished else "its program never finished"
            case JobState.CANCELLED:
                return "" if job.job_id in self._outside.cancelled else "nobody wanted it to end"
            case JobState.TIMED_OUT:
                return self._not_late(job)
            case _:
                return self._undeserved_failure(job)

    def _undeserved_failure(self, job: Job) -> str:
        log = self._cloud.trainings.logs[job.job_id]
        if job.failures > job.definition.max_failures:
            return "" if log.failed >= job.failures else f"its program failed {log.failed} times, not {job.failures}"
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
            is_told = arn in stops or arn in invariants.strays
            self._check("every stop is accounted for", is_told, f"{job.job_id}: {arn[-6:]} has no reason")
        for arn, stop in stops.items():
            wrong = self._misjudged(job, arn, stop)
            self._check("a stop's reason is its cause", not wrong, f"{job.job_id}: {arn[-6:]} {stop.kind}: {wrong}")
            self._check_stopped_in_time(job, arn, tasks.get(arn, {}))
        failures = sum(is_failure(stop.kind) for stop in stops.values())
        self._check("failures are those of the stops", failures == job.failures, f"{job.job_id}: {failures}")

    def _check_stopped_in_time(self, job: Job, arn: str, task: Mapping[str, object]) -> None:
        meant_at, stopped = self._cloud.invariants.intents.get(arn), task.get("stoppedAt")
        if meant_at is None or not stopped:
            return
        took = datetime.fromisoformat(str(stopped)) - meant_at
        self._check("what is meant to stop does stop", took <= STOP_OVERSHOOT, f"{job.job_id}: {arn[-6:]} after {took}")

    def _misjudged(self, job: Job, arn: str, stop: Stop) -> str:
        ending = self._cloud.trainings.logs[job.job_id].endings.get(arn, "never started")
        has_started = "startedAt" in self._cloud.invariants.tasks[job.job_id].get(arn, {})
        match stop.kind:
            case StopKind.SUCCESS:
                is_right = ending == "finished"
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
            if stop.stopped_reason.startswith("ECS does not know"):
                # When it ended nobody can tell any more.
                slack += 86_400 / 3600 * price
        is_right = abs(bill - job.cost_usd) <= slack
        self._check("the record's cost is the bill", is_right, f"{job.job_id}: {job.cost_usd:.6f}, billed {bill:.6f}")

    def _check_runtime(self, job: Job) -> None:
        tasks = self._cloud.invariants.tasks[job.job_id].values()
        ran = timedelta(seconds=sum(_run_seconds(task) for task in tasks))
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


def _run_seconds(task: Mapping[str, object]) -> float:
    started, stopped = task.get("startedAt"), task.get("stoppedAt")
    if not started or not stopped:
        return 0.0
    return (datetime.fromisoformat(str(stopped)) - datetime.fromisoformat(str(started))).total_seconds()
