"""Whether a job's end is deserved, told by what the simulated account did and what its programs were."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.instances import LaunchSpecification
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.ecs.engine.settings import DEFAULT_IMAGE_ID
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.checks.constraints import find_violated
from relaunch_local.simulation.checks.facts import GIVEN_UP_AFTER
from relaunch_local.simulation.checks.members import peers_of
from relaunch_local.simulation.checks.times import CLOCK_SKEW, Times, run_seconds, timestamp
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.faults.useless_machines import UselessMachineFaults
from relaunch_local.simulation.workload import Workload

# What a function read, it read at most the time-out of its function ago.
_READ = timedelta(seconds=67)
# What the design says of programs that fail soon after their start, written down here once more.
_EARLY = timedelta(minutes=10)
EARLY_FAILURES = 1
_IDLE_BOUND = timedelta(hours=24)
_QUEUE_BOUND = timedelta(days=14)
# ECR is asked every two minutes in case its event was lost.
_IMAGE_LOOK = timedelta(seconds=130)


class DeservedEnds:
    """Compares the end of each job with what happened to it."""

    def __init__(
        self,
        account: SimulatedAccount,
        workload: Workload,
        rare_faults: RareFaults,
        useless_machines: UselessMachineFaults,
        times: Times,
    ) -> None:
        """Compare the ends of the jobs of this run."""
        self._rare_faults = rare_faults
        self._useless_machines = useless_machines
        self._account = account
        self._workload = workload
        self._invariants = account.invariants
        self._facts = account.facts
        self._times = times

    def wrong_end(self, job: Job) -> str:
        """Return what is wrong with the end of a job, empty if nothing is."""
        log = self._account.trainings.logs[job.job_id]
        if job.job_id in self._workload.without_checkpoint and self._invariants.tasks[job.job_id]:
            return "it ran without the checkpoint from which it was to resume"
        match job.state:
            case JobState.SUCCEEDED:
                return "" if log.finished or self._left_unwarned(job) else "its program never finished"
            case JobState.CANCELLED:
                return "" if self._was_cancelled(job) else "nobody cancelled it"
            case JobState.TIMED_OUT:
                return self._not_late(job)
            case _:
                is_early_end = len(self.early_failures(job, with_excused=True)) > EARLY_FAILURES
                starts_nowhere = self._account.failed_tasks.deserves_its_end(self._invariants.tasks[job.job_id])
                return "" if is_early_end or starts_nowhere else self._wrong_failure(job)

    def _was_cancelled(self, job: Job) -> bool:
        """Return whether somebody asked for it, or stopped its last task, or a rank of the last: all end with it."""
        tasks = self._invariants.tasks[job.job_id]
        last = max(tasks, key=lambda arn: str(tasks[arn].get("createdAt", "")), default="")
        is_stopped = any(each in self._rare_faults.stopped_by_others for each in peers_of(tasks, last))
        return job.job_id in self._workload.cancelled or is_stopped

    def _left_unwarned(self, job: Job) -> bool:
        """Return whether a training exited 0 on a notice that nobody told of: that looks like success."""
        log = self._account.trainings.logs[job.job_id]
        return any(
            log.endings.get(arn) == "left" for arn in self._invariants.stops[job.job_id] if not self.is_told_of_end(arn)
        )

    def is_told_of_end(self, arn: str) -> bool:
        """Return whether the application was told in time that the instance of a task is interrupted."""
        is_asked = self._facts.was_told_by_request(arn, self._invariants.recorded_at[arn])
        # Another job may have asked for the instance, of which this one knows the container instance alone.
        attempt = self._invariants.attempts[arn]
        is_known = self._facts.was_placed(arn) or bool(attempt.instance_id or attempt.placement.instance_id)
        return arn in self._invariants.warned or (is_asked and is_known)

    def _wrong_failure(self, job: Job) -> str:
        log = self._account.trainings.logs[job.job_id]
        if unpullable := self._unpullable(job):
            in_vain = [arn for arn in unpullable if self._was_tried_again(job, arn)]
            return f"{len(unpullable)} machines tried to pull an image that none can" if in_vain else ""
        if job.totals.failures > job.definition.max_failures:
            failed = log.failed + len(log.deserted)
            return "" if failed >= job.totals.failures else f"it failed {failed} times, not {job.totals.failures}"
        if job.attempt is None and job.reason.endswith("is not in ECR: push it first"):
            # Whoever retries a job does not wait for its image.
            came_at = self._image_came_at(job)
            return "" if came_at is None or came_at >= job.accepted_at - _READ else "its image was there"
        if job.attempt is None and job.reason.startswith("waiting for image"):
            return self._image_was_there(job)
        if job.reason.startswith("nothing satisfies this job"):
            # One that had a machine in what was reserved ends so too, once that is over.
            offered = (each.name for each in self._offers() if self._satisfies(each, job))
            satisfying = ", ".join([*offered, *self._still_reserved(job)])
            return f"{satisfying} would" if satisfying else ""
        return self._wrong_bound(job)

    def _wrong_bound(self, job: Job) -> str:
        if job.attempt is None and job.reason.startswith("there is no complete "):
            is_right = job.job_id in self._workload.without_checkpoint
            return "" if is_right else "nobody asked for a checkpoint that is not there"
        if job.reason.startswith("refused for "):
            return "" if self._useless_machines.may_end(job) else "what it needs was there"
        if "gained no step" in job.reason:
            return ""  # check_progress says whether that is so
        is_held = job.reason.startswith("it waited for ") and " of its concurrency group " in job.reason
        if is_held or job.reason.startswith("not running within ") or "not running for " in job.reason:
            return self._not_held(job) if is_held else self._not_idle(job)
        if "its stop was not confirmed within" in job.reason:
            unconfirmed = {self._facts.host_of(arn) for arn in self._facts.unconfirmed_stops(GIVEN_UP_AFTER)}
            last = {self._facts.host_of(arn) for arn in self._invariants.tasks[job.job_id]}
            return "" if unconfirmed & last else "its stop was confirmed"
        return "its reason is unknown"

    def _not_idle(self, job: Job) -> str:
        """Return what is wrong with the end of a job that did not run for a day, empty if it could not."""
        tasks = self._invariants.tasks[job.job_id].values()
        since = min((at for each in tasks if (at := timestamp(each, "startedAt"))), default=job.accepted_at)
        idle = (job.ended_at or self._account.clock.now()) - since - timedelta(seconds=sum(map(run_seconds, tasks)))
        if idle < _IDLE_BOUND - CLOCK_SKEW:
            return f"it did not run for {idle} only"
        return "" if self._useless_machines.may_end(job) else "what it needs was there"

    def _not_held(self, job: Job) -> str:
        """Return what is wrong with the end of a job that waited for its group for two weeks, empty if it had to.

        Only one that had a task before, and that the account let start no other one until it failed, holds its group
        for so long.
        """
        ended_at = job.ended_at or self._account.clock.now()
        if self._invariants.tasks[job.job_id]:
            return "it had a task, and held its group itself"
        if ended_at - job.accepted_at < _QUEUE_BOUND - CLOCK_SKEW:
            return f"it waited for {ended_at - job.accepted_at} only"
        is_held = any(
            self._useless_machines.may_end(other)
            and other.ended_at is not None
            and other.ended_at + CLOCK_SKEW >= ended_at
            and self._had_task_before(other, job.accepted_at)
            for other in self._invariants.groups.others_of(job)
        )
        return "" if is_held else "no other job held its group"

    def _had_task_before(self, job: Job, at: datetime) -> bool:
        """Return whether ECS made a task for a job before a time."""
        created = (timestamp(each, "createdAt") for each in self._invariants.tasks[job.job_id].values())
        return any(each is not None and each <= at for each in created)

    def early_failures(self, job: Job, *, with_excused: bool) -> list[str]:
        """Return the latest tasks in a row that failed soon after their start, without a checkpoint.

        Interruptions between them are passed over, and those of tasks that something else may have ended, unless
        `with_excused`: then they may have been the program's, as those that an essential sidecar ended where ECS does
        not tell which of them ended first. What a task resumes from is in what ECS was asked to run. Ranks train only
        while all of them do: one that started long before the others waited for them, and a part trains nothing.
        """
        log = self._account.trainings.logs[job.job_id]
        tasks = self._invariants.tasks[job.job_id]
        early: list[str] = []
        for arn in sorted(tasks, key=lambda arn: str(tasks[arn].get("createdAt", ""))):
            task = tasks[arn]
            has_failed = log.endings.get(arn) in ("failed", "out of memory") or (with_excused and arn in log.deserted)
            if timestamp(task, "startedAt") is None or timestamp(task, "stoppedAt") is None:
                continue
            peers = [tasks[each] for each in peers_of(tasks, arn)]
            if len(peers) < job.definition.nodes:
                continue
            started = [timestamp(each, "startedAt") for each in peers]
            stopped = [timestamp(each, "stoppedAt") for each in peers]
            is_long = None not in started and max(filter(None, stopped)) - max(filter(None, started)) >= _EARLY
            # One whose end ECS does not tell may have run for as long, or not, as far as anybody knows.
            is_unknown = any(self._times.is_end_unknown(each, tasks[each]) for each in peers_of(tasks, arn))
            if (is_unknown and not with_excused) or (is_long and not is_unknown):
                early.clear()
            elif (
                has_failed
                and (is_unknown or not is_long)
                and (with_excused or not self._is_excused(arn, task))
                and "RELAUNCH_RESUME_URI" not in str(task.get("overrides"))
            ):
                early.append(arn)
        return early

    def _is_excused(self, arn: str, task: Mapping[str, object]) -> bool:
        """Return whether something else ended the task, or ECS says nothing of its end."""
        stopped_at = timestamp(task, "stoppedAt") or self._account.clock.now()
        is_threatened = self._account.failed_tasks.was_threatened(self._facts.host_of(arn), stopped_at)
        # What follows a StopTask is the answer to it, whatever the exit code.
        is_asked = arn in self._facts.stop_asked_at or task.get("stopCode") == "UserInitiated"
        return is_threatened or is_asked or self._times.is_end_unknown(arn, task)

    def _unpullable(self, job: Job) -> list[str]:
        """Return the tasks that stopped for an image that no machine can pull."""
        return [
            arn
            for arn, task in self._invariants.tasks[job.job_id].items()
            if "startedAt" not in task
            and task.get("lastStatus") == "STOPPED"
            and is_unpullable(str(task.get("stoppedReason", "")))
        ]

    def _was_tried_again(self, job: Job, arn: str) -> bool:
        """Return whether another task was created for the job after the application knew of the stop of this one.

        Of a task whose RunTask was not answered it may know later than it launches the next one.
        """
        tasks = self._invariants.tasks[job.job_id]
        told_at = self._facts.stop_told_at(arn)
        if told_at is None or self._times.is_end_unknown(arn, tasks[arn]):
            return False
        created = (timestamp(each, "createdAt") for each in tasks.values())
        return any(at is not None and at > told_at + CLOCK_SKEW for at in created)

    def _offers(self) -> list[CapacityProviderOffer]:
        """Return what is offered: by capacity providers, and as machines of our own as if each were of a provider."""
        scenario = self._account.scenario
        sold_as = (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
        own = ((name, purchase) for name in scenario.machines.types for purchase in sold_as)
        offers = (CapacityProviderOffer(f"own {name} {purchase}", name, purchase) for name, purchase in own)
        return [*scenario.providers, *offers]

    def _satisfies(self, provider: CapacityProviderOffer, job: Job) -> bool:
        """Return whether the job may run there now or later: every type has the GPU, and a spot price may fall."""
        definition = job.definition
        cap = job.definition.max_price_usd_per_hour
        if provider.purchase is PurchaseOption.SPOT or provider.purchase not in definition.purchase.options:
            return provider.purchase in definition.purchase.options
        price = self._account.scenario.on_demand_usd_per_hour.get(provider.instance_type)
        return cap is None or (price is not None and price <= cap)

    def _still_reserved(self, job: Job) -> list[str]:
        """Return the reservations for the job that were not over when it ended, if it takes what is reserved."""
        if PurchaseOption.RESERVED not in job.definition.purchase.options:
            return []
        ended_at = job.ended_at or self._account.clock.now()
        return [
            each.reservation_id
            for each in self._account.simulator.reservations.by_id.values()
            # EC2 adds no instances to a block.
            if (each.over_since is None or each.over_since > ended_at + CLOCK_SKEW)
            and not (each.is_block and each.total < job.definition.nodes)
            and self._is_placed_in(each, job)
        ]

    def _is_placed_in(self, reservation: CapacityReservation, job: Job) -> bool:
        """Return whether ECS places tasks of a job on an instance in a reservation."""
        simulator = self._account.simulator
        place = (reservation.zone, simulator.clusters.get(CLUSTER), DEFAULT_IMAGE_ID)
        spec = LaunchSpecification(reservation.instance_type, Purchase.ON_DEMAND, *place)
        host = simulator.instances.describe_new(spec)
        return not find_violated(simulator, job.definition.task_definition, host)

    def _not_late(self, job: Job) -> str:
        ended_at = job.ended_at or self._account.clock.now()
        deadline = job.definition.deadline
        is_late = deadline is not None and ended_at >= job.accepted_at + deadline - CLOCK_SKEW
        tasks = self._invariants.tasks[job.job_id]
        # A task that ECS does not describe ran until it was given up, as far as the application could know.
        is_known = not any(self._times.is_end_unknown(arn, task) for arn, task in tasks.items())
        ran = sum(map(run_seconds, tasks.values())) if is_known else job.totals.run_seconds
        has_run = ran >= job.definition.max_runtime.total_seconds() - CLOCK_SKEW.total_seconds()
        return "" if is_late or has_run else f"it ran for {ran:.0f} s"

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


def is_unpullable(stopped_reason: str) -> bool:
    """Return whether these are ECS's words for an image that cannot be pulled."""
    return "failed to resolve ref" in stopped_reason
