"""Invariants of machines of our own, checked at every write, every call of EC2, and every minute of an instance."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.machines.decision import MachineTotals, micro_usd
from relaunch.core.machines.groups import first_id_of, member_ids
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState, RememberFailures, TerminateInstance
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG
from relaunch.core.offerings.capacity_memory import is_scope
from relaunch_local.ecs import Clock, EcsSimulator, Event
from relaunch_local.ecs.engine.model import BillLine, Instance, InstanceState, StateReason
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.claims import Claims, SeesMachines
from relaunch_local.simulation.checks.constraints import find_violated
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.members import instances_of, is_of_a_part, machine_of
from relaunch_local.simulation.checks.readiness import CLOCK_SKEW, Readiness, is_ready

UNNEEDED_GRACE = timedelta(minutes=45)
"""How long an instance may live that nobody needs.

After an unknown outcome EC2 is asked again for two minutes and the instance looked for during six; what no machine
accounts for is found by a sweep, every five minutes, but with many faults half of them fail, and so do calls.
"""
# A machine that is not ready in time is ended by its next check, which with many faults is late by some minutes.
_START_GRACE = timedelta(minutes=20)
# An answer that was lost is made up for by the instance's tags within some minutes, a lost event by a look every ten.
_RECORDED_LATE = timedelta(minutes=45)
_MINUTE = 60.0

# What EC2 says of one type in one zone, an error of its own included. Throttling, permissions, quotas and limits say
# nothing about that.
_ABOUT_POOLS = frozenset(
    {
        "InsufficientInstanceCapacity",
        "UnfulfillableCapacity",
        "Unsupported",
        "SpotMaxPriceTooLow",
        "ReservationCapacityExceeded",
        "InvalidCapacityReservationState",
        "InvalidFleetConfiguration",
        "InternalError",
        "TheSpanishInquisition",
    }
)


@dataclass(slots=True)
class MachineInvariants:
    """Checks machines of our own, and the instances that EC2 Fleet launches."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _limits: MachineLimits
    _jobs: dict[str, Job]
    """The jobs as they were saved last."""
    _objects: ObjectStore
    _facts: AccountFacts
    _failed_at: Mapping[str, Sequence[datetime]]
    machines: dict[str, Machine] = field(default_factory=dict)
    """The machines as they were saved last."""
    hosts: dict[str, Instance] = field(default_factory=dict)
    """Every instance that EC2 Fleet launched, those that ended included."""
    bills: dict[str, BillLine] = field(default_factory=dict)
    on_termination: Callable[[str], None] = lambda _instance_id: None
    """Called with each instance that TerminateInstances names."""
    misled: set[str] = field(default_factory=set)
    """Machines of which EC2 said that it launched none, and had."""
    _simulator: EcsSimulator = field(init=False)
    _store: SeesMachines = field(init=False)
    refused: dict[str, list[tuple[tuple[str, str] | None, str]]] = field(default_factory=lambda: defaultdict(list))
    """By machine: what EC2 refused (a type in a zone, or everything), and the code."""
    _needed_at: dict[str, datetime] = field(default_factory=dict)
    _accounted_at: dict[str, datetime] = field(default_factory=dict)
    _claimed_at: dict[str, datetime] = field(default_factory=dict)
    """By machine: when a job was last seen to claim and need it."""
    terminations: dict[str, datetime] = field(default_factory=dict)
    """By instance: when the application last asked EC2 to terminate it."""
    _revived: set[str] = field(default_factory=set)
    """Machines whose instance came to light after they were gone: no limit holds for those."""
    _placed: set[str] = field(default_factory=set)
    _leaks: set[str] = field(default_factory=set)

    claims: Claims = field(init=False)
    _readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        """Check the claims of the same jobs, and the instances on the same clock."""
        self.claims = Claims(self._clock, self._check, self._jobs, self._objects, self._facts, self._limits)
        self._readiness = Readiness(self._clock, self._failed_at)

    def watch(self, simulator: EcsSimulator, store: SeesMachines) -> None:
        """Watch the instances of a region; `store` has the true content of the table."""
        self._simulator = simulator
        self._store = store
        self.claims.store = store
        simulator.subscribe(self._observe)

    def machine_saved(self, machine: Machine) -> None:
        """Check a machine that was created or saved, after everything that was saved with it."""
        before = self.machines.get(machine.machine_id)
        self.machines[machine.machine_id] = machine
        if self._claimants(machine) or (before is not None and self._claimants(before)):
            self._claimed_at[machine.machine_id] = self._clock.now()
        if machine.warned_at is not None:
            is_given = self._facts.gave_notice(machine.instance_id or "", machine.warned_at)
            self._check("a warning of a machine that is recorded was given", is_given, machine.machine_id)
        self._check_state(before, machine)
        self.claims.machine_saved(before, machine)
        self._check_effects(before, machine)
        self._check_totals(before, machine)

    def fleet_asked(self, machine_id: str) -> None:
        """Check that it is known that EC2 is asked for the instance of a machine, before it is."""
        machine = self._store.load_machine(machine_id)
        is_known = machine is not None and machine.asked_at is not None
        self._check("it is saved that EC2 is asked before it is", is_known, machine_id)

    def fleet_refused(self, machine_id: str, pool: tuple[str, str] | None, code: str) -> None:
        """Record a refusal of a type in a zone; None: of the whole request."""
        self.refused[machine_id].append((pool, code))

    def fleet_misled(self, machine_id: str) -> None:
        """Record a machine of which EC2 said that it launched none, and had."""
        self.misled.add(machine_id)

    def termination_asked(self, instance_id: str) -> None:
        """Check that nobody needs an instance that is about to be terminated."""
        self.terminations[instance_id] = self._clock.now()
        self.on_termination(instance_id)
        machine = self._machine_of(instance_id)
        is_its = machine is not None and machine.instance_id == instance_id
        needed = [each.job_id for each in machine.claims] if machine and is_its and machine.state.is_usable else []
        self._check("no machine is terminated that a job claims", not needed, f"{instance_id}: {', '.join(needed)}")

    def termination_ignored(self, instance_id: str) -> None:
        """Note that EC2 says it ends an instance, and does not: until it is asked again, nobody can do more."""
        self._needed_at[instance_id] = self._clock.now()

    def check_end(self) -> None:
        """Check a run in which nothing happens any more."""
        for instance_id, host in self.hosts.items():
            self._check("nothing of ours lives at the end", not host.is_alive, instance_id)
        for machine_id, machine in self.machines.items():
            is_over = machine.state is MachineState.GONE and not machine.pending
            self._check("every machine is gone at the end", is_over, f"{machine_id} is {machine.state}")
            self._check_bill(machine)
        totals = self._store.load_totals()
        self._check("the counters of machines are 0 at the end", totals == MachineTotals(), str(totals))

    def _machine_of(self, instance_id: str) -> Machine | None:
        host = self.hosts.get(instance_id)
        machine_id = machine_of(host, self.machines) if host else ""
        return self._store.load_machine(machine_id) if machine_id else None

    def _check_state(self, before: Machine | None, machine: Machine) -> None:
        name = machine.machine_id
        now = self._clock.now()
        if before is not None:
            is_same = before.instance_id in (None, machine.instance_id)
            self._check("a machine keeps its instance", is_same, f"{name}: {before.instance_id}, {machine.instance_id}")
            is_frozen = before.request == machine.request
            self._check("a request never changes", is_frozen, name)
            self._check_start(before, machine, now)
        if machine.node and machine.instance_id in self.hosts and (before is None or before.node != machine.node):
            is_own = self.hosts[machine.instance_id].arn == machine.node
            self._check("a machine's node is its instance", is_own, f"{name}: {machine.node}")
        became = machine.state if before is None or before.state is not machine.state else None
        if became is MachineState.READY:
            self._check_ready(machine)
        elif became is MachineState.GONE:
            living = [each for each in self._instances_of(name) if each.state is not InstanceState.TERMINATED]
            message = ", ".join(f"{each.instance_id} is {each.state.value}" for each in living)
            is_over = not living or (
                first_id_of(name) in self.misled and before is not None and before.instance_id is None
            )
            self._check("a machine that is gone has no instance", is_over, f"{name}: {message}")
        elif before is not None and before.state is MachineState.GONE and became is not None:
            has_come = bool(self._instances_of(name))
            self._check("a machine that was gone comes back with its instance only", has_come, name)
            self._revived.add(name)
        if before is not None and before.state.is_usable and became is MachineState.ENDING:
            self._check_ended(before, machine)

    def _check_start(self, before: Machine, machine: Machine, now: datetime) -> None:
        if before.state is not MachineState.STARTING or before.launched_at is None:
            return
        took = now - before.launched_at
        allowed = self._limits.registration_deadline_of(_type_of(before)) + _START_GRACE
        in_time = took <= allowed + self._facts.outage_time(before.launched_at, now)
        self._check("a machine is ready in time or ended", in_time, f"{machine.machine_id}: {took}")

    def _check_ready(self, machine: Machine) -> None:
        host = self.hosts.get(machine.instance_id or "")
        has_all = host is not None and is_ready(host)
        self._check("a machine that is ready has all its accelerators", has_all, machine.machine_id)

    def _check_ended(self, before: Machine, machine: Machine) -> None:
        """Check that a sound machine is not ended while jobs need it."""
        host = self.hosts.get(machine.instance_id or "")
        is_sound = host is not None and host.is_alive and not self._is_doubtful(host, before.state)
        jobs = self._claimants(before) if is_sound and not is_of_a_part(machine, self.hosts.values()) else ()
        self._check("no sound machine ends that a job needs", not jobs, f"{machine.machine_id}: {', '.join(jobs)}")

    def _is_doubtful(self, host: Instance, state: MachineState) -> bool:
        """Return whether EC2 takes an instance away, a task on it did not start, or it was not ready in time."""
        # Whoever ends it may have looked before its deadline, or not while it was ready, and its agent is away again.
        facts = self._facts
        allowed = self._limits.registration_deadline_of(host.instance_type) - CLOCK_SKEW
        deadline = self.bills[host.instance_id].launched_at + allowed
        ready_at = self._readiness.ready_at(host)
        is_late = ready_at >= deadline or self._readiness.is_long_away(host)
        if state is MachineState.STARTING and not host.agent_connected and self._clock.now() >= deadline:
            is_late |= all(at < ready_at - CLOCK_SKEW for at in facts.shown_nodes[host.instance_id])
        return is_late or facts.was_threatened(host.instance_id) or facts.failed_to_start_on(host.instance_id)

    def _instances_of(self, machine_id: str) -> list[Instance]:
        return instances_of(self.machines[machine_id], self.hosts.values(), self.machines)

    def _check_effects(self, before: Machine | None, machine: Machine) -> None:
        for effect in machine.pending:
            if isinstance(effect, RememberFailures) and (before is None or effect not in before.pending):
                self._check_failures(machine, effect)
        if before is None or machine.state is not MachineState.ENDING:
            return
        for effect in before.pending:
            if isinstance(effect, TerminateInstance) and effect not in machine.pending:
                is_done = effect.instance_id in self.terminations or self._is_left_to_ec2(effect.instance_id)
                self._check("a machine's effect is done before it is forgotten", is_done, machine.machine_id)

    def _is_left_to_ec2(self, instance_id: str) -> bool:
        """Return whether EC2 warned of the instance within its first hour, which it does not bill if it ends it."""
        warned_at = self._facts.warned_at(instance_id)
        return warned_at is not None and warned_at - self.bills[instance_id].launched_at < timedelta(hours=1)

    def _check_failures(self, machine: Machine, effect: RememberFailures) -> None:
        """Check that a type in a zone is avoided only for what EC2 said of it, or of the whole request."""
        told = self.refused[machine.machine_id]
        for failure in effect.failures:
            key = failure.offering
            if failure.is_unready:
                is_right = self._was_unready(machine) and (is_scope(key) or key == machine.offering)
                self._check(
                    "only a machine that was not ready shuts a pool so", is_right, f"{key}: {machine.machine_id}"
                )
                continue
            if is_scope(key):
                continue
            codes = {code for pool, code in told if pool in (None, (key.instance_type, key.zone))}
            is_about_it = bool(codes & _ABOUT_POOLS)
            self._check("only a lack of capacity shuts a pool", is_about_it, f"{key}: {', '.join(sorted(codes))}")

    def _was_unready(self, machine: Machine) -> bool:
        """Return whether the instance was not ready by its deadline, or ended before it was, not by EC2's choice."""
        host = self.hosts.get(machine.instance_id or "")
        if host is None:
            return False
        deadline = self.bills[host.instance_id].launched_at
        deadline += self._limits.registration_deadline_of(host.instance_type)
        # Its agent may have been away when the deadline came, and have been back for moments when that was decided.
        ready_at = self._readiness.ready_at(host)
        is_late = max(ready_at, self._readiness.connected_at(host) or ready_at) >= deadline - CLOCK_SKEW
        return is_late or host.state_reason in (StateReason.LAUNCH_ERROR, StateReason.INSTANCE_INITIATED)

    def _check_totals(self, before: Machine | None, machine: Machine) -> None:
        if not all(each in self.machines for each in member_ids(machine.machine_id, machine.request.size)):
            return  # the others of its group are saved with it
        living = [each for each in self.machines.values() if each.state is not MachineState.GONE]
        expected = MachineTotals(len(living), sum(micro_usd(each.usd_per_hour) for each in living))
        totals = self._store.load_totals()
        self._check("the counters are what lives", totals == expected, f"{totals}, not {expected}")
        if before is not None:
            return
        # Only a new machine is refused by a limit.
        extra = [each for each in living if each.machine_id in self._revived]
        limits = self._limits
        count = totals.machines - len(extra)
        is_kept = not limits.max_machines or count <= limits.max_machines
        self._check("no more machines than allowed", is_kept, f"{machine.machine_id}: {count}")
        usd = totals.micro_usd_per_hour - sum(micro_usd(each.usd_per_hour) for each in extra)
        is_kept = not limits.max_usd_per_hour or usd <= micro_usd(limits.max_usd_per_hour)
        self._check("no more money per hour than allowed", is_kept, f"{machine.machine_id}: {usd}")

    def _check_bill(self, machine: Machine) -> None:
        """Check that the record has the hours that EC2 bills, as far as calls and events were late."""
        line = self.bills.get(machine.instance_id or "")
        if line is None or machine.launched_at is None:
            return
        late = machine.launched_at - line.launched_at
        is_right = -CLOCK_SKEW <= late <= _RECORDED_LATE
        self._check("a launch is recorded when it is billed", is_right, f"{machine.machine_id}: {late} later")
        if machine.ended_at is not None and line.billing_ended_at is not None:
            late = machine.ended_at - line.billing_ended_at
            allowed = _RECORDED_LATE + self._facts.outage_time(line.billing_ended_at, machine.ended_at)
            is_right = -CLOCK_SKEW <= late <= allowed
            self._check("an end is recorded when billing ends", is_right, f"{machine.machine_id}: {late} later")

    def _observe(self, event: Event) -> None:
        detail = event["detail"]
        if event["detail-type"] == "EC2 Instance State-change Notification" and detail["state"] == "pending":
            self._launched(detail["instance-id"])
        elif event["detail-type"] == "ECS Container Instance State Change":
            self._readiness.agent_changed(detail["containerInstanceArn"], is_connected=detail["agentConnected"])
        elif event["detail-type"] == "ECS Task State Change" and detail.get("containerInstanceArn"):
            self._check_place(detail["taskArn"], str(detail.get("startedBy", "")), detail["containerInstanceArn"])

    def _launched(self, instance_id: str) -> None:
        host = self._simulator.instances.by_id[instance_id]
        if host.fleet is None:
            return
        self.hosts[instance_id] = host
        self.bills[instance_id] = self._simulator.instances.bill[-1]
        self._needed_at[instance_id] = self._accounted_at[instance_id] = self._clock.now()
        machine_id = host.tags.get(MACHINE_TAG, "")
        every = [each for each in self.hosts.values() if each.tags.get(MACHINE_TAG) == machine_id]
        size = self._size_of(machine_id)
        self._check("one machine has one instance", len(every) <= size, f"{machine_id}: {len(every)}")
        self._check_count(machine_id)
        job = self._jobs.get(host.tags.get(JOB_TAG, ""))
        violated = find_violated(self._simulator, job.definition.task_definition, host) if job else ""
        message = f"{host.instance_type} in {host.zone} for {violated}"
        self._check("no machine is bought on which ECS places no task of its job", not violated, message)
        self._clock.call_later(_MINUTE, lambda: self._look_at(host))

    def _size_of(self, machine_id: str) -> int:
        return self.machines[machine_id].request.size if machine_id in self.machines else 1

    def _check_count(self, machine_id: str) -> None:
        """Check that the limit holds of what EC2 has, which counts until it is terminated, however long that takes."""
        unknown = self.misled | self._revived
        hosts = [each for each in self.hosts.values() if each.state is not InstanceState.TERMINATED]
        names = ({each.tags.get(MACHINE_TAG, ""), machine_of(each, self.machines)} for each in hosts)
        count = sum(unknown.isdisjoint(each) for each in names)
        most = self._limits.max_machines
        self._check("EC2 has no more machines than allowed", not most or count <= most, f"{machine_id}: {count}")

    def _look_at(self, host: Instance) -> None:
        """Check an instance every minute for as long as it lives."""
        if not host.is_alive:
            return
        now = self._clock.now()
        machine = self._machine_of(host.instance_id)
        self._readiness.look_at(host)
        is_its = machine is not None and machine.instance_id == host.instance_id
        if machine is not None and is_its and machine.state is not MachineState.GONE:
            self._accounted_at[host.instance_id] = now
            if self._claimants(machine):
                self._claimed_at[machine.machine_id] = now
            if machine.state.is_usable and self._is_warm(machine, now):
                self._needed_at[host.instance_id] = now
        message = f"{host.instance_id} of {host.tags.get(MACHINE_TAG)}"
        unaccounted = now - self._accounted_at[host.instance_id]
        unneeded = now - self._needed_at[host.instance_id]
        if host.instance_id not in self._leaks:
            is_known = unaccounted <= UNNEEDED_GRACE + self._facts.outage_time(now - unaccounted, now)
            is_needed = unneeded <= UNNEEDED_GRACE + self._facts.outage_time(now - unneeded, now)
            self._check("every instance of ours is accounted for", is_known, f"{message} for {unaccounted}")
            self._check("no instance lives that nobody needs", is_needed, f"{message} for {unneeded}")
            if not (is_known and is_needed):
                self._leaks.add(host.instance_id)
        self._clock.call_later(_MINUTE, lambda: self._look_at(host))

    def _claimants(self, machine: Machine) -> Sequence[str]:
        """Return the jobs that claim a machine and need it."""
        jobs = ((each.job_id, self._jobs.get(each.job_id)) for each in machine.claims)
        return [job_id for job_id, job in jobs if job is not None and machine.machine_id in claimed_machines(job)]

    def _is_warm(self, machine: Machine, now: datetime) -> bool:
        """Return whether the warm time of a machine is not over since jobs claimed it, or since its launch."""
        claimed_at = self._claimed_at.get(machine.machine_id, self.bills[machine.instance_id or ""].launched_at)
        return now - claimed_at <= self._limits.warm_time

    def _check_place(self, task_arn: str, started_by: str, node: str) -> None:
        """Check that a task of a job runs on the machine that it was placed for."""
        if task_arn in self._placed:
            return
        self._placed.add(task_arn)
        job_id, _, number = started_by.rpartition("/")
        job = self._jobs.get(job_id)
        attempt = job.attempt if job else None
        if attempt is None or str(attempt.number) != number.partition(".")[0]:
            return
        host = next((each for each in self.hosts.values() if each.arn == node), None)
        ranks = attempt.placement.ranks
        wanted = ", ".join(filter(None, (each.machine_id for each in ranks)))
        if host is None and not wanted:
            return
        found = machine_of(host, self.machines) if host else "an instance of a capacity provider"
        message = f"{started_by}: {task_arn[-6:]} is on {found}, not on {wanted or 'one of a capacity provider'}"
        is_its = any(each.machine_id == found and each.task_id in {"", task_arn} for each in ranks)
        self._check("a task runs on the machine it was placed for", is_its, message)


def _type_of(machine: Machine) -> str:
    return machine.offering.instance_type if machine.offering is not None else ""
