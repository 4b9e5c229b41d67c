"""Checks at the end of a run: every event has its job, every job ended for the right reason, the cost is right."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, Stop
from relaunch.core.jobs.cost import attempt_price
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.restart_policy import is_failure
from relaunch.core.lifecycle.running import UNKNOWN_TASK
from relaunch.core.machines.machine import MachineState
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.checks.facts import GIVEN_UP_AFTER, STOPPED_KEPT
from relaunch_local.simulation.checks.learned_speeds import check_learned_speeds
from relaunch_local.simulation.checks.members import peers_of
from relaunch_local.simulation.checks.progress import check_progress
from relaunch_local.simulation.checks.run_times import RunTimes
from relaunch_local.simulation.checks.stop_causes import StopFacts, is_cause
from relaunch_local.simulation.checks.times import CLOCK_SKEW, Times, run_seconds, timestamp
from relaunch_local.simulation.cluster_jobs import ClusterJobs
from relaunch_local.simulation.deserved_ends import EARLY_FAILURES, DeservedEnds, is_unpullable
from relaunch_local.simulation.faults.rare import RareFaults
from relaunch_local.simulation.faults.useless_machines import UselessMachineFaults
from relaunch_local.simulation.trigger_jobs import TriggerJobs
from relaunch_local.simulation.workload import UNREADABLE, Workload

# ECS's timestamps have milliseconds; a task has two of them.
TIMESTAMP_PRECISION = timedelta(milliseconds=2)
# An hour after its stop time-out, and what calls and looks that fail take at most; while an agent is away, longer.
_STOP_BOUND = timedelta(minutes=60 + 2 + 30)
# Ten minutes after its stop time-out, and ten for the others on the machine.
_UNWANTED_BOUND = timedelta(minutes=10 + 10 + 2 + 30)
# MaxReceiveCount of the template.
_TRIES = 7
# A launch that got no answer is repeated within minutes.
_LAUNCH_REPEATED = timedelta(minutes=5)
# A function keeps spot prices for ten minutes, and may run for two after it has read them.
PRICES_KEPT = timedelta(minutes=12) + 2 * CLOCK_SKEW


class Verdict:
    """Checks a run in which nothing happens any more."""

    def __init__(
        self,
        account: SimulatedAccount,
        workload: Workload,
        rare_faults: RareFaults,
        useless_machines: UselessMachineFaults,
        triggered: TriggerJobs | None = None,
    ) -> None:
        """Check this run."""
        self._triggered = triggered
        self._rare_faults = rare_faults
        self._account = account
        self._workload = workload
        self._invariants = account.invariants
        self._facts = account.facts
        self._check = self._invariants.check
        limits = account.scenario.limits
        cancellations = workload.cancellations
        own_hosts = account.machines.hosts
        self._times = Times(account.clock, self._invariants, self._facts, limits, cancellations, own_hosts)
        self._run_times = RunTimes(account.clock, self._check, self._invariants, self._facts, self._times)
        self._on_cluster = ClusterJobs(account, workload)
        self._ends = DeservedEnds(account, workload, rare_faults, useless_machines, self._times)

    def check(self) -> None:
        """Check everything once."""
        self._check_events()
        self._workload.github.check_end(self._check)
        self._check_dead_letters()
        for job in self._invariants.jobs.values():
            if job.definition.target is not Target.ECS:
                self._check_timeline(job)
                self._on_cluster.check(job)
                continue
            self._check_end(job)
            self._check_stops(job)
            self._check_cost(job)
            self._check_timeline(job)
            self._times.check(job)
            tasks = self._invariants.tasks[job.job_id]
            recipe = self._account.scenario.recipes[job.definition.name]
            slowest = self._account.scenario.slowest(job.definition.name)
            check_progress(self._check, job, tasks, recipe, slowest, self._account.objects, self._facts)
        check_learned_speeds(self._check, self._account.scenario, self._account.stores.rates)
        self._check_waits()
        self._account.job_events.check_end()
        self._account.absent_agents.check_end()
        self._account.deadlines.check_end()
        slots = getattr(self._account.stores.jobs, "slots", {})
        held = {name: count for name, count in slots.items() if count}
        are_over = all(job.state.is_final for job in self._invariants.jobs.values())
        self._check("every slot is given back", not (held and are_over), str(held))
        self._invariants.groups.check_end()

    def _check_waits(self) -> None:
        """Check that no stop is waited for beyond its bound, and no machine of our own lives on for it."""
        owner = {arn: job_id for job_id, tasks in self._invariants.tasks.items() for arn in tasks}
        for arn, asked_at in self._facts.stop_asked_at.items():
            recorded_at = self._invariants.recorded_at.get(arn)
            if arn not in owner or (recorded_at is None and arn in self._invariants.orphans):
                continue
            if recorded_at is None and self._facts.is_unplaced(arn):
                recorded_at = self._facts.ran_until(arn)
            until = recorded_at or self._account.clock.now()
            host = self._facts.host_of(arn)
            allowed = _STOP_BOUND + self._facts.outage_time(asked_at, until)
            if host not in self._account.machines.hosts:
                # Only a machine of our own is ended for it: of others the agent has to come back.
                allowed += self._facts.away_time(host, asked_at, until)
            is_bounded = until - asked_at <= min(allowed, GIVEN_UP_AFTER + _STOP_BOUND)
            message = f"{owner[arn]}: {arn[-6:]} {until - asked_at}"
            self._check("a stop ends within its bound", is_bounded, message)
            if self._facts.host_of(arn) in self._account.machines.hosts:
                until = self._facts.ran_until(arn) or self._account.clock.now()
                since = self._stoppable_since(arn, asked_at, until)
                is_bounded = until - since <= _UNWANTED_BOUND + self._facts.outage_time(since, until)
                message = f"{self._facts.host_of(arn)}: {until - since}"
                self._check("no machine of ours lives on with an unwanted task", is_bounded, message)

    def _stoppable_since(self, task_arn: str, asked_at: datetime, until: datetime) -> datetime:
        """Return when a task that was asked to stop could be stopped: ECS refuses StopTask while it hides one.

        What was given up meanwhile is left to sweeps, which list it once it is shown.
        """
        span = self._facts.hidden_span(task_arn)
        if span is None or asked_at < span[0] or self._facts.stop_wanted_at.get(task_arn, until) < span[1]:
            return asked_at
        return max(asked_at, span[1])

    def _check_events(self) -> None:
        jobs = self._invariants.jobs.values()
        matched = self._triggered.check() if self._triggered is not None else 0
        accepted = Counter((definition, token) for definition, token, _ in self._workload.accepted)
        for (definition, token), count in sorted(accepted.items()):
            found = [job.job_id for job in jobs if job.definition.name == definition and token in job.trigger.identity]
            matched += len(found)
            message = f"{definition} {token[:12]}: {len(found)} jobs of {count} events"
            self._check("an accepted event becomes exactly one job", len(found) == count, message)
        self._check("no job without an event", matched == len(jobs), f"{len(jobs)} jobs, {matched} of them from events")

    def _check_dead_letters(self) -> None:
        dead_letters = 0
        for message in (*self._account.queues.dead_letters, *self._workload.deleted_dead_letters):
            if message.queue.endswith(":given-up") or message.queue == "RefreshOfferingsDeadLetterQueue":
                continue  # dropped by EventBridge, or runs of the schedule, which say that they failed three times
            if message.deaths >= _TRIES:
                self._check_made_good(message.queue, message.body)
                continue
            has_reason = message.cause.startswith("sent there: ") and len(message.cause) > len("sent there: ")
            is_recorded = has_reason and message.body in UNREADABLE
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

    def _check_made_good(self, queue: str, body: str) -> None:
        """Check that what a message was about came to its end without it: functions died of it as often as they may."""
        try:
            about = json.loads(body)
        except ValueError:
            return  # nobody can read it
        jobs = self._invariants.jobs
        machines = self._account.machines.machines
        if "machine_id" in about:
            machine = machines.get(about["machine_id"])
            is_over = machine is not None and (machine.wake_at is not None or machine.state is MachineState.GONE)
        elif "job_id" in about:
            is_over = about["job_id"] in jobs and jobs[about["job_id"]].state.is_final
        else:
            started_by = str(about.get("detail", {}).get("startedBy", "")).rpartition("/")[0]
            is_over = started_by not in jobs or jobs[started_by].state.is_final
        self._check("what a lost message was about is made good", is_over, f"{queue}: {body[:200]}")

    def _check_end(self, job: Job) -> None:
        is_over = job.state.is_final and not job.pending
        message = f"{job.job_id} is {job.state} since {job.state_since}, wake_at {job.wake_at}: {job.reason}"
        self._check("a job that can finish does finish", is_over, message)
        live = self._invariants.live_tasks(job.job_id)
        self._check("nothing lives on", live == 0, f"{job.job_id}: {live} tasks")
        if job.state.is_final:
            reason = self._ends.wrong_end(job)
            self._check("every end is deserved", not reason, f"{job.job_id} {job.state}: {reason} ({job.reason})")
        early = self._ends.early_failures(job, with_excused=False)
        is_enough = len(early) <= EARLY_FAILURES + 1
        self._check("a program that fails at once is started twice at most", is_enough, f"{job.job_id}: {early}")
        self._check_failed_tasks(job, early)

    def _check_failed_tasks(self, job: Job, early: Sequence[str]) -> None:
        if job.definition.nodes > 1:
            return  # which of its ranks met a fault is not what its others show
        failed = self._account.failed_tasks
        tasks = self._invariants.tasks[job.job_id]
        is_stopped = bool(tasks.keys() & self._rare_faults.stopped_by_others)
        is_called_off = job.job_id in self._workload.cancelled or is_stopped
        is_over = is_called_off or self._was_late_when_it_failed(job)
        failed.check_job(job, tasks, self._is_told, is_called_off=is_over)
        if early and not is_called_off:
            failed.check_early_failure(job, tasks, early[0], self._account.useless.tried)

    def _was_late_when_it_failed(self, job: Job) -> bool:
        """Return whether the time of a job was over when the last of its tasks ended that met a fault."""
        tasks = self._invariants.tasks[job.job_id]
        met = self._account.failed_tasks.met
        ends = [at for arn, task in tasks.items() if arn in met and (at := timestamp(task, "stoppedAt")) is not None]
        is_timed_out = job.state is JobState.TIMED_OUT
        return is_timed_out and bool(ends) and self._times.was_late(job, max(ends) + CLOCK_SKEW)

    def _is_told(self, arn: str, task: Mapping[str, object]) -> bool:
        """Return whether ECS described the end of a task for as long as it documents, and named it before."""
        is_named = not self._facts.is_unknown(arn, timestamp(task, "stoppedAt"))
        return is_named and not self._times.is_end_unknown(arn, task)

    def _was_unlisted(self, arn: str, stopped_at: datetime | None) -> bool:
        """Return whether services were away nearly as long as ECS lists a stopped task, and RunTask never named it."""
        if stopped_at is None or arn in self._facts.named:
            return False
        return self._facts.outage_time(stopped_at, stopped_at + STOPPED_KEPT) >= STOPPED_KEPT - _LAUNCH_REPEATED

    def _check_stops(self, job: Job) -> None:
        stops = self._invariants.stops[job.job_id]
        tasks = self._invariants.tasks[job.job_id]
        if not job.state.is_final:
            return
        for arn, task in tasks.items():
            # Nobody told of a task whose RunTask was not answered, and whose events were lost, while ECS described it.
            stopped_at = timestamp(task, "stoppedAt")
            is_unknown = self._facts.is_unknown(arn, stopped_at)
            # Nor did the job hear of one that ECS hid for longer than it documents, and that outlived it.
            is_later = stopped_at is not None and job.ended_at is not None and job.ended_at <= stopped_at
            is_unknown = is_unknown or (arn in self._invariants.hidden and is_later)
            is_unplaced = self._facts.is_unplaced(arn) or self._was_unlisted(arn, stopped_at)
            is_unknown = is_unknown or (job.definition.nodes > 1 and is_unplaced)
            known = stops.keys() | self._invariants.orphans.keys()
            is_recorded = not known.isdisjoint(peers_of(self._invariants.tasks[job.job_id], arn)) or is_unknown
            self._check("every stop is accounted for", is_recorded, f"{job.job_id}: {arn[-6:]} has no reason")
        for arn, stop in stops.items():
            wrong = self._wrong_reason(job, arn, stop)
            self._check("a stop's reason is its cause", not wrong, f"{job.job_id}: {arn[-6:]} {stop.kind}: {wrong}")
            self._times.check_stopped_in_time(job, arn, tasks.get(arn, {}))
            self._run_times.check_end(job, arn, stop)
        failures = sum(is_failure(stop.kind) for stop in stops.values())
        self._check("failures are those of the stops", failures == job.totals.failures, f"{job.job_id}: {failures}")

    def _wrong_reason(self, job: Job, arn: str, stop: Stop) -> str:
        """Return why a stop is not what happened to any of the tasks that are recorded with it; empty if it is."""
        peers = peers_of(self._invariants.tasks[job.job_id], arn)
        recorded = [each for each in peers if each in self._invariants.recorded_at]
        wrong = [self._wrong_reason_of(job, each, stop) for each in recorded]
        return "" if "" in wrong else wrong[0]

    def _wrong_reason_of(self, job: Job, arn: str, stop: Stop) -> str:
        task = self._invariants.tasks[job.job_id].get(arn, {})
        facts = StopFacts(
            ending=self._account.trainings.logs[job.job_id].endings.get(arn, "never started"),
            has_started="startedAt" in task,
            is_unpullable=is_unpullable(str(task.get("stoppedReason", ""))),
            is_asked=arn in self._facts.stop_asked_at,
            is_lost=self._times.is_end_unknown(arn, task),
            is_threatened=self._facts.was_threatened(self._facts.host_of(arn)),
            is_told=self._ends.is_told_of_end(arn),
            is_cancelled=job.job_id in self._workload.cancelled,
            is_stopped_by_others=arn in self._rare_faults.stopped_by_others,
            is_deserted=arn in self._account.trainings.logs[job.job_id].deserted,
            is_late=self._times.was_late(job, self._invariants.recorded_at[arn]),
            is_refused=self._account.failed_tasks.was_refused(arn),
            has_peers=len(peers_of(self._invariants.tasks[job.job_id], arn)) > 1,
        )
        if stop.stopped_reason.startswith(UNKNOWN_TASK) and not facts.is_lost:
            return "ECS described it"
        return "" if is_cause(stop.kind, facts) else f"its program {facts.ending}"

    def _check_cost(self, job: Job) -> None:
        if not job.state.is_final:
            return
        bill = 0.0
        slack = 0.000001
        ran = 0.0
        unknown = 0.000001
        for arn in self._invariants.stops[job.job_id]:
            attempt = self._invariants.attempts[arn]
            self._check_price(job, attempt)
            self._check_reserved(arn, attempt)
            price = attempt_price(attempt).usd_per_hour
            seconds = run_seconds(self._run_times.whole(job, arn))
            ran = ran + seconds
            bill = bill + seconds / 3600 * price
            left_open = (TIMESTAMP_PRECISION + self._run_times.unknown_time(job, arn)).total_seconds()
            unknown = unknown + left_open
            slack = slack + left_open / 3600 * price
        message = f"{job.job_id}: {job.totals.run_seconds:.3f} s, not {ran:.3f} s"
        self._check("the record's run time is that of the tasks", abs(ran - job.totals.run_seconds) <= unknown, message)
        is_right = abs(bill - job.totals.cost_usd) <= slack
        self._check(
            "the record's cost is the bill", is_right, f"{job.job_id}: {job.totals.cost_usd:.6f}, billed {bill:.6f}"
        )

    def _check_price(self, job: Job, attempt: Attempt) -> None:
        """Check that a task by a capacity provider on spot costs what EC2 told of its zone before it was placed."""
        placement = attempt.placement
        price = attempt_price(attempt)
        is_told = placement.capacity_provider and placement.offering.purchase is PurchaseOption.SPOT
        if not is_told or attempt.zone is None:
            return
        name = placement.offering.instance_type
        until = placement.requested_at + CLOCK_SKEW
        known = [each for each in self._account.scenario.spot_prices
                 if (each.instance_type, each.zone) == (name, attempt.zone)]  # fmt: skip
        since = until - PRICES_KEPT
        if price.basis is not CostBasis.PRICE:
            failed_at = self._account.calls.failed_at["ec2:describe_spot_price_history"]
            is_unread = any(since <= at <= until for at in failed_at)
            self._check("a price that EC2 told is known", is_unread, f"{job.job_id}: {price.basis} in {attempt.zone}")
            return
        earlier = [each for each in known if each.since is None or each.since <= since]
        told = {each.price_usd_per_hour for each in known if each.since and since < each.since <= until}
        told |= {earlier[-1].price_usd_per_hour} if earlier else set()
        message = f"{job.job_id}: {price.usd_per_hour} in {attempt.zone}, EC2 told {sorted(told)}"
        self._check("a task costs what its zone does", price.usd_per_hour in told, message)

    def _check_reserved(self, arn: str, attempt: Attempt) -> None:
        """Check that a task costs nothing more in a reservation, and on any other machine of our own its price.

        Nobody tells the application when a reservation is over, from when on EC2 bills its instances on demand.
        """
        line = self._account.machines.bills.get(self._facts.host_of(arn))
        price = attempt_price(attempt)
        is_reserved = attempt.placement.offering.purchase is PurchaseOption.RESERVED
        is_right = line is None or (line.is_reserved == is_reserved and not (is_reserved and price.usd_per_hour))
        self._check("a task costs nothing more in a reservation alone", is_right, f"{arn[-6:]}: {price}")

    def _check_timeline(self, job: Job) -> None:
        timeline = self._invariants.timelines[job.job_id]
        moments = [entry.at for entry in timeline]
        is_ordered = all(later >= earlier - CLOCK_SKEW for earlier, later in itertools.pairwise(moments))
        self._check("the timeline is in order", is_ordered, job.job_id)
        is_first = bool(timeline) and timeline[0].event in {"accepted", "failed"}
        is_last = not job.state.is_final or any(entry.state is job.state for entry in timeline)
        self._check("the timeline tells the beginning and the end", is_first and is_last, job.job_id)
