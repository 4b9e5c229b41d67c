"""Checks at the end of a run: every event has its job, every job ended for the right reason, the cost is right."""

import itertools
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.job import Attempt, Job, Stop, StopKind
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch.core.lifecycle.running import UNKNOWN_TASK
from relaunch.ports import CapacityProviderOffer
from relaunch_local.simulation.aws.account import SimulatedAccount
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.workload import Workload

# ECS's timestamps have milliseconds; a task has two of them.
TIMESTAMP_PRECISION = timedelta(milliseconds=2)
# The clocks of two functions differ by up to six seconds.
CLOCK_SKEW = timedelta(seconds=7)
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
# The job's check may be late by some runs of the schedule, whose calls fail.
LOOK_OVERSHOOT = timedelta(minutes=15)
START_LIMIT = timedelta(minutes=30)
# What a function read, it read at most the time-out of its function ago.
_READ = timedelta(seconds=67)
# ECR is asked every two minutes in case its event was lost.
_IMAGE_LOOK = timedelta(seconds=130)
# A function keeps spot prices for ten minutes, and may run for two after it has read them.
PRICES_KEPT = timedelta(minutes=12) + 2 * CLOCK_SKEW
# ECS describes a stopped task for an hour.
STOPPED_KEPT = timedelta(hours=1) - CLOCK_SKEW
# Only a sweep repeats the stop of an orphaned task: every ten minutes, but with many faults most sweeps fail.
SWEEP_OVERSHOOT = timedelta(minutes=60)


class Verdict:
    """Checks a run in which nothing happens any more."""

    def __init__(self, account: SimulatedAccount, workload: Workload, rare_faults: RareFaults) -> None:
        """Check this run."""
        self._rare_faults = rare_faults
        self._account = account
        self._workload = workload
        self._invariants = account.invariants
        self._check = self._invariants.check

    def check(self) -> None:
        """Check everything once."""
        self._check_events()
        self._check_dead_letters()
        for job in self._invariants.jobs.values():
            self._check_end(job)
            self._check_stops(job)
            self._check_cost(job)
            self._check_runtime(job)
            self._check_timeline(job)
            self._check_cancelled(job)
            self._check_deadline(job)
            self._check_starts(job)
            self._check_orphans(job)
        self._account.deadlines.check_end()
        slots = getattr(self._account.stores.jobs, "slots", {})
        held = {name: count for name, count in slots.items() if count}
        are_over = all(job.state.is_final for job in self._invariants.jobs.values())
        self._check("every slot is given back", not (held and are_over), str(held))

    def _check_events(self) -> None:
        jobs = self._invariants.jobs.values()
        matched = 0
        accepted = Counter((definition, token) for definition, token, _ in self._workload.accepted)
        for (definition, token), count in sorted(accepted.items()):
            found = [job.job_id for job in jobs if job.definition.name == definition and token in job.trigger.identity]
            matched += len(found)
            message = f"{definition} {token[:12]}: {len(found)} jobs of {count} events"
            self._check("an accepted event becomes exactly one job", len(found) == count, message)
        self._check("no job without an event", matched == len(jobs), f"{len(jobs)} jobs, {matched} of them from events")

    def _check_dead_letters(self) -> None:
        dead_letters = 0
        for message in self._account.queues.dead_letters:
            if message.queue.endswith(":given-up") or message.queue == "ReconcileDeadLetterQueue":
                continue  # dropped by EventBridge, or runs of the schedule: no work is lost
            if message.was_disturbed:
                continue  # its jobs are checked like all others
            is_recorded = message.cause.startswith("sent there: ") and len(message.cause) > len("sent there: ")
            dead_letters += is_recorded
            self._check(
                "only unreadable messages are dead-lettered",
                is_recorded,
                f"{message.queue}: {message.cause}: {message.body[:200]}",
            )
        self._check(
            "every unreadable message is dead-lettered",
            dead_letters >= self._workload.dead_letters,
            f"{dead_letters} of {self._workload.dead_letters}",
        )
        # A duplicated message is dead-lettered twice.
        self._check(
            "no other message is dead-lettered",
            (dead_letters > 0) <= (self._workload.dead_letters > 0),
            f"{dead_letters} dead letters",
        )

    def _check_end(self, job: Job) -> None:
        is_over = job.state.is_final and not job.pending
        message = f"{job.job_id} is {job.state} since {job.state_since}, wake_at {job.wake_at}: {job.reason}"
        self._check("a job that can finish does finish", is_over, message)
        live = self._invariants.live_tasks(job.job_id)
        self._check("nothing lives on", live == 0, f"{job.job_id}: {live} tasks")
        if job.state.is_final:
            reason = self._wrong_end(job)
            self._check("every end is deserved", not reason, f"{job.job_id} {job.state}: {reason} ({job.reason})")

    def _wrong_end(self, job: Job) -> str:
        log = self._account.trainings.logs[job.job_id]
        match job.state:
            case JobState.SUCCEEDED:
                return "" if log.finished or self._left_unwarned(job) else "its program never finished"
            case JobState.CANCELLED:
                return "" if self._was_cancelled(job) else "nobody cancelled it"
            case JobState.TIMED_OUT:
                return self._not_late(job)
            case _:
                return self._wrong_failure(job)

    def _was_cancelled(self, job: Job) -> bool:
        stopped_by_others = self._rare_faults.stopped_by_others & self._invariants.tasks[job.job_id].keys()
        return job.job_id in self._workload.cancelled or bool(stopped_by_others)

    def _left_unwarned(self, job: Job) -> bool:
        """Return whether a training exited 0 on a notice that its job did not have: that looks like success."""
        log = self._account.trainings.logs[job.job_id]
        return any(
            log.endings.get(arn) == "left"
            for arn in self._invariants.stops[job.job_id]
            if arn not in self._invariants.warned
        )

    def _wrong_failure(self, job: Job) -> str:
        log = self._account.trainings.logs[job.job_id]
        if job.failures > job.definition.max_failures:
            failed = log.failed + sum(
                stop.kind in {StopKind.IMAGE, StopKind.STARTS_NOWHERE}
                for stop in self._invariants.stops[job.job_id].values()
            )
            return "" if failed >= job.failures else f"it failed {failed} times, not {job.failures}"
        if job.attempt is None and job.reason.endswith("is not in ECR: push it first"):
            # Whoever retries a job does not wait for its image.
            came_at = self._image_came_at(job)
            return "" if came_at is None or came_at >= job.accepted_at - _READ else "its image was there"
        if job.attempt is None and job.reason.startswith("waiting for image"):
            return self._image_was_there(job)
        if job.attempt is None and job.reason.startswith("nothing satisfies this job"):
            satisfying = ", ".join(each.name for each in self._offers() if self._satisfies(each, job))
            return f"{satisfying} would" if satisfying else ""
        return "its reason is unknown"

    def _offers(self) -> list[CapacityProviderOffer]:
        """Return what is offered: by capacity providers, and as machines of our own as if each were of a provider."""
        scenario = self._account.scenario
        sold_as = (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
        own = ((name, purchase) for name in scenario.machines.types for purchase in sold_as)
        offers = (CapacityProviderOffer(f"own {name} {purchase}", name, purchase) for name, purchase in own)
        return [*scenario.providers, *offers]

    def _satisfies(self, provider: CapacityProviderOffer, job: Job) -> bool:
        """Return whether the job may run there now or later: every type has the GPU, and a spot price may fall."""
        definition, cap = job.definition, job.definition.max_price_usd_per_hour
        if provider.purchase is PurchaseOption.SPOT or provider.purchase not in definition.purchase.options:
            return provider.purchase in definition.purchase.options
        price = self._account.scenario.on_demand_usd_per_hour.get(provider.instance_type)
        return cap is None or (price is not None and price <= cap)

    def _not_late(self, job: Job) -> str:
        ended_at = job.ended_at or self._account.clock.now()
        deadline = job.definition.deadline
        is_late = deadline is not None and ended_at >= job.accepted_at + deadline - CLOCK_SKEW
        has_run = job.run_seconds >= job.definition.max_runtime.total_seconds() - CLOCK_SKEW.total_seconds()
        return "" if is_late or has_run else f"it ran for {job.run_seconds:.0f} s"

    def _image_was_there(self, job: Job) -> str:
        wait = timedelta(minutes=30)
        is_late = job.ended_at is not None and job.ended_at >= job.accepted_at + wait - CLOCK_SKEW
        came_at = self._image_came_at(job)
        was_there = came_at is not None and came_at < job.accepted_at + wait - _IMAGE_LOOK
        return "" if is_late and not was_there else "its image was there"

    def _image_came_at(self, job: Job) -> datetime | None:
        """Return when the image was pushed that a job waits for or looked for, None if it was not."""
        seconds = (
            each.at_seconds + each.image_after_seconds
            for each in self._account.scenario.events
            if job.image and each.token == job.image[1] and each.image_after_seconds is not None
        )
        came_after = next(seconds, None)
        return None if came_after is None else self._account.started_at + timedelta(seconds=came_after)

    def _check_stops(self, job: Job) -> None:
        stops, tasks = self._invariants.stops[job.job_id], self._invariants.tasks[job.job_id]
        if not job.state.is_final:
            return
        for arn in tasks:
            # A task that ECS denied or forgot while RunTask was unanswered cannot be known.
            is_unknowable = arn in self._invariants.denied or arn in self._account.delayed_ecs.forgotten
            is_unknowable = is_unknowable or self._was_dropped(job, tasks[arn])
            is_recorded = arn in stops or arn in self._invariants.orphans or is_unknowable
            self._check("every stop is accounted for", is_recorded, f"{job.job_id}: {arn[-6:]} has no reason")
        for arn, stop in stops.items():
            wrong = self._wrong_reason(job, arn, stop)
            self._check("a stop's reason is its cause", not wrong, f"{job.job_id}: {arn[-6:]} {stop.kind}: {wrong}")
            self._check_stopped_in_time(job, arn, tasks.get(arn, {}))
        failures = sum(is_failure(stop.kind) for stop in stops.values())
        self._check("failures are those of the stops", failures == job.failures, f"{job.job_id}: {failures}")

    def _was_dropped(self, job: Job, task: Mapping[str, object]) -> bool:
        """Return whether ECS no longer described a stopped task when its unanswered placement was given up."""
        stopped_at = _timestamp(task, "stoppedAt")
        timeline = self._invariants.timelines[job.job_id]
        given_up = [entry.at for entry in timeline if entry.event == "try closed"]
        return stopped_at is not None and any(at >= stopped_at + STOPPED_KEPT for at in given_up)

    def _check_stopped_in_time(self, job: Job, arn: str, task: Mapping[str, object]) -> None:
        meant_at, stopped_at = self._invariants.intents.get(arn), _timestamp(task, "stoppedAt")
        if meant_at is None or stopped_at is None or arn in self._invariants.denied:
            return
        took = stopped_at - meant_at
        self._check("what is meant to stop does stop", took <= STOP_OVERSHOOT, f"{job.job_id}: {arn[-6:]} after {took}")

    def _wrong_reason(self, job: Job, arn: str, stop: Stop) -> str:
        ending = self._account.trainings.logs[job.job_id].endings.get(arn, "never started")
        has_started = "startedAt" in self._invariants.tasks[job.job_id].get(arn, {})
        match stop.kind:
            case StopKind.SUCCESS:
                is_right = ending == "finished" or (ending == "left" and arn not in self._invariants.warned)
            case StopKind.CANCELLED if arn in self._rare_faults.stopped_by_others:
                is_right = True
            case StopKind.NOT_STARTED | StopKind.STARTS_NOWHERE:
                is_right = (not has_started or arn in self._invariants.intents) and not _is_unpullable(stop)
            case StopKind.USER_ERROR:
                is_right = ending == "failed"
            case StopKind.OUT_OF_MEMORY:
                is_right = ending == "out of memory"
            case StopKind.NO_CAPACITY:
                is_right = not has_started or job.attempt is not None
            case StopKind.UNKNOWN | StopKind.IMAGE:
                is_right = stop.kind is StopKind.IMAGE and job.definition.name in self._account.scenario.unpullable
            case _:
                is_right = True
        return "" if is_right else f"its program {ending}"

    def _check_cancelled(self, job: Job) -> None:
        asked_at = self._workload.cancellations.get(job.job_id)
        if asked_at is None or job.ended_at is None or job.ended_at <= asked_at + CLOCK_SKEW:
            return
        took = job.ended_at - asked_at
        self._check("what is cancelled ends in time", took <= CANCEL_OVERSHOOT, f"{job.job_id} after {took}")
        tasks, intents = self._invariants.tasks[job.job_id], self._invariants.intents
        was_late = any(arn in intents and intents[arn] <= asked_at + CLOCK_SKEW for arn in tasks)
        is_kept = job.state in (JobState.CANCELLED, JobState.SUCCEEDED) or (
            job.state is JobState.TIMED_OUT and was_late
        )
        self._check("what is cancelled ends as cancelled", is_kept, f"{job.job_id} is {job.state}: {job.reason}")

    def _check_deadline(self, job: Job) -> None:
        if job.definition.deadline is None:
            return
        latest = job.accepted_at + job.definition.deadline
        allowed = DEADLINE_OVERSHOOT + (UNANSWERED if self._account.delayed_ecs.answers_lost_until else timedelta(0))
        ends = {"it": job.ended_at} | {
            arn[-6:]: stopped_at
            for arn, task in self._invariants.tasks[job.job_id].items()
            if (stopped_at := _timestamp(task, "stoppedAt")) and arn not in self._invariants.denied
        }
        for name, ended_at in ends.items():
            late = (ended_at or self._account.clock.now()) - latest
            is_kept = late <= allowed
            self._check("nothing lives long after its deadline", is_kept, f"{job.job_id}: {name} {late} later")

    def _check_starts(self, job: Job) -> None:
        """Check that a task without an instance, and one that does not start, is stopped in time."""
        # The same for all: the scenario sets it.
        allowed = self._account.scenario.limits.provisioning_deadline(is_managed=False)
        for arn, task in self._invariants.tasks[job.job_id].items():
            placed_at = self._invariants.placed.get(arn)
            if placed_at is None or arn in self._invariants.denied or not task.get("stoppedAt"):
                continue
            given_up_at = self._invariants.intents.get(arn) or _timestamp(task, "stoppedAt") or placed_at
            machine_at = _timestamp(task, "connectivityAt") or given_up_at
            started_at = _timestamp(task, "startedAt") or given_up_at
            in_time = min(machine_at, given_up_at) <= placed_at + allowed + LOOK_OVERSHOOT
            waited = f"{job.job_id}: {arn[-6:]} waited {min(machine_at, given_up_at) - placed_at}"
            self._check("a task without a machine is withdrawn in time", in_time, waited)
            in_time = min(started_at, given_up_at) <= placed_at + START_LIMIT + LOOK_OVERSHOOT
            waited = f"{job.job_id}: {arn[-6:]} waited {min(started_at, given_up_at) - placed_at}"
            self._check("a task that does not start is withdrawn in time", in_time, waited)

    def _check_orphans(self, job: Job) -> None:
        for arn, task in self._invariants.tasks[job.job_id].items():
            stopped_at, orphan_at = _timestamp(task, "stoppedAt"), self._invariants.orphans.get(arn)
            if stopped_at is not None and orphan_at is not None:
                took = stopped_at - orphan_at
                in_time = took <= STOP_OVERSHOOT + SWEEP_OVERSHOOT
                self._check("an orphaned task stops in time", in_time, f"{job.job_id}: {arn[-6:]} {took}")

    def _check_cost(self, job: Job) -> None:
        if not job.state.is_final:
            return
        bill, slack = 0.0, 0.000001
        for arn, stop in self._invariants.stops[job.job_id].items():
            attempt = self._invariants.attempts[arn]
            self._check_price(job, attempt)
            price = attempt_price(attempt).usd_per_hour
            seconds = _run_seconds(self._invariants.tasks[job.job_id].get(arn, {}))
            bill += seconds / 3600 * price
            slack += TIMESTAMP_PRECISION.total_seconds() / 3600 * price
            if stop.stopped_reason.startswith(UNKNOWN_TASK):
                # Its end is unknown.
                slack += 86_400 / 3600 * price
        is_right = abs(bill - job.cost_usd) <= slack
        self._check("the record's cost is the bill", is_right, f"{job.job_id}: {job.cost_usd:.6f}, billed {bill:.6f}")

    def _check_price(self, job: Job, attempt: Attempt) -> None:
        """Check that a task by a capacity provider on spot costs what EC2 told of its zone before it was placed."""
        placement, price = attempt.placement, attempt_price(attempt)
        is_told = placement.capacity_provider and placement.offering.purchase is PurchaseOption.SPOT
        if not is_told or attempt.zone is None or price.basis is not CostBasis.PRICE:
            return
        name, until = placement.offering.instance_type, placement.requested_at + CLOCK_SKEW
        known = [each for each in self._account.scenario.spot_prices
                 if (each.instance_type, each.zone) == (name, attempt.zone)]  # fmt: skip
        since = until - PRICES_KEPT
        earlier = [each for each in known if each.since is None or each.since <= since]
        told = {each.price_usd_per_hour for each in known if each.since and since < each.since <= until}
        told |= {earlier[-1].price_usd_per_hour} if earlier else set()
        message = f"{job.job_id}: {price.usd_per_hour} in {attempt.zone}, EC2 told {sorted(told)}"
        self._check("a task costs what its zone does", price.usd_per_hour in told, message)

    def _check_runtime(self, job: Job) -> None:
        tasks, denied = self._invariants.tasks[job.job_id], self._invariants.denied
        ran = timedelta(seconds=sum(_run_seconds(task) for arn, task in tasks.items() if arn not in denied))
        is_kept = ran <= job.definition.max_runtime + RUNTIME_OVERSHOOT
        self._check("max_runtime is kept", is_kept, f"{job.job_id} ran {ran} of {job.definition.max_runtime}")

    def _check_timeline(self, job: Job) -> None:
        timeline = self._invariants.timelines[job.job_id]
        moments = [entry.at for entry in timeline]
        is_ordered = all(later >= earlier - CLOCK_SKEW for earlier, later in itertools.pairwise(moments))
        self._check("the timeline is in order", is_ordered, job.job_id)
        is_first = bool(timeline) and timeline[0].event in {"accepted", "failed"}
        is_last = not job.state.is_final or any(entry.state is job.state for entry in timeline)
        self._check("the timeline tells the beginning and the end", is_first and is_last, job.job_id)


def _is_unpullable(stop: Stop) -> bool:
    return "failed to resolve ref" in stop.stopped_reason


def _timestamp(task: Mapping[str, object], name: str) -> datetime | None:
    """Return a timestamp of a task."""
    value = task.get(name)
    return datetime.fromisoformat(str(value)) if value else None


def _run_seconds(task: Mapping[str, object]) -> float:
    started, stopped = _timestamp(task, "startedAt"), _timestamp(task, "stoppedAt")
    return (stopped - started).total_seconds() if started and stopped else 0.0
