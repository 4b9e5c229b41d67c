"""Reconcile due machines with EC2 and the cluster, in case events were lost, and find instances without a machine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from relaunch.core.jobs.effects import ReleaseMachine
from relaunch.core.jobs.job import claimed_machines
from relaunch.core.lifecycle.events import HostWarned
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, leak_metrics
from relaunch.core.machines.events import (
    ClaimAsked,
    ClaimReleased,
    FleetAnswered,
    InstanceLaunched,
    InstanceMissing,
    InstanceObservation,
    InstanceSeen,
    MachineDue,
    MachineEvent,
    MachineWarned,
)
from relaunch.core.machines.groups import member_ids
from relaunch.core.machines.living import HANDOVER_TIME, HEARTBEAT
from relaunch.core.machines.machine import Claim, Machine, MachineState
from relaunch.ports import FleetDependencies, PortError, ReconcileDependencies, Termination
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.look_at_agents import Agents
from relaunch.usecases.observe_machine import node_seen

# More than one invocation has time for.
_MAX_MACHINES = 1_000
_MAX_DESCRIBED = 100
_INTERVAL_MINUTES = 5
# A machine is looked at every ten minutes at least: one that was due for so long is of a table that was restored from a
# backup, or nobody could look.
_UNWATCHED = HEARTBEAT
_SWEEP_MINUTE = 3


def reconcile_machines(
    deps: ReconcileDependencies,
    has_time: Callable[[], bool] = lambda: True,
    on_looked_at: Callable[[Machine], object] = lambda _machine: None,
) -> int:
    """Reconcile due machines, most overdue first, while there is time; return their number.

    A machine with an error stays due for the next call and does not delay the others. `on_looked_at` is called with
    each of them, as it was before.
    """
    due = deps.machines.load_due(deps.clock.now(), _MAX_MACHINES)
    looked_at = 0
    agents = Agents(deps)
    for start in range(0, len(due), _MAX_DESCRIBED):
        loaded = (_load(each, deps) for each in due[start : start + _MAX_DESCRIBED])
        machines = [machine for machine in loaded if machine is not None]
        seen = _describe(machines, deps)
        for machine in machines:
            if not has_time():
                return looked_at
            looked_at += 1
            on_looked_at(machine)
            try:
                _look(machine, seen, agents, deps)
            except PortError as error:
                _postpone(machine.machine_id, error, deps)
    return looked_at


def _load(machine_id: str, deps: FleetDependencies) -> Machine | None:
    try:
        return deps.machines.load_machine(machine_id)
    except PortError as error:
        _postpone(machine_id, error, deps)
        return None


def _postpone(machine_id: str, error: PortError, deps: FleetDependencies) -> None:
    deps.log.decided("postponed", machine_id=machine_id, reason=str(error))


def _describe(machines: Sequence[Machine], deps: FleetDependencies) -> Mapping[str, InstanceObservation | None]:
    """Describe the instances of machines; empty on an error, so that only `wake_at` of the machines is handled."""
    try:
        return deps.fleet.describe([machine.instance_id for machine in machines if machine.instance_id])
    except PortError as error:
        deps.log.decided("instances not described", reason=str(error))
        return {}


def _look(
    machine: Machine, seen: Mapping[str, InstanceObservation | None], agents: Agents, deps: FleetDependencies
) -> None:
    if machine.wake_at is not None and deps.clock.now() - machine.wake_at >= _UNWATCHED:
        _claim_for_strangers(machine, deps)
    for event in _observed(machine, seen, deps):
        advance_machine(machine.machine_id, partial(_same, event), deps)
    if machine.state is MachineState.READY and machine.away_since is not None and (found := agents.look(machine)):
        advance_machine(machine.machine_id, partial(_same, found), deps)
    if machine.leave_by is not None:
        _warn_jobs(machine, machine.leave_by, deps)
    advance_machine(machine.machine_id, lambda saved: _due(saved, deps), deps)


def _claim_for_strangers(machine: Machine, deps: FleetDependencies) -> None:
    """Claim a machine for the tasks on it that no claim accounts for: it is not ended while they run.

    The table may be older than they are, as after its recovery from a backup. What room they take is not known.
    """
    now = deps.clock.now()
    tasks = deps.targets.ecs.find_tasks_on(machine.instance_id) if machine.instance_id else ()
    for owner in (task.owner for task in tasks if task.owner is not None):
        if machine.claim_of(owner.job_id) is None:
            claim = Claim(owner.job_id, owner.attempt_number, machine.free, now)
            advance_machine(machine.machine_id, partial(_same, ClaimAsked(claim)), deps)


def _warn_jobs(machine: Machine, leave_by: datetime, deps: FleetDependencies) -> None:
    """Warn the jobs of a machine that is abandoned, as if EC2 took it away: their tasks save, and go on elsewhere."""
    warned = HostWarned(
        machine.instance_id or "",
        leave_by - HANDOVER_TIME,
        ends_at=leave_by,
        cause="a stop that the host does not confirm",
    )
    for claim in machine.claims:
        advance_job(claim.job_id, lambda _job: warned, deps)


def _same(event: MachineEvent, _machine: Machine) -> MachineEvent:
    return event


def _observed(
    machine: Machine, seen: Mapping[str, InstanceObservation | None], deps: FleetDependencies
) -> Iterator[MachineEvent]:
    if machine.instance_id is not None and machine.instance_id in seen:
        observation = seen[machine.instance_id]
        yield InstanceMissing() if observation is None else InstanceSeen(observation, deps.clock.now())
    if machine.state is MachineState.STARTING and machine.instance_id:
        # One that came before EC2's answer was saved found no machine.
        if (warned_at := deps.jobs.load_warning(machine.instance_id)) is not None:
            yield MachineWarned(warned_at)
        node = deps.targets.ecs.find_node_of(machine.instance_id)
        if node is not None:
            yield node_seen(node, deps)
    for claim in machine.claims:
        if (released := _find_release(claim, machine, deps)) is not None:
            yield released


def _find_release(claim: Claim, machine: Machine, deps: FleetDependencies) -> ClaimReleased | None:
    """Return the release of a claim whose job does not need the machine; None where that cannot be found out.

    Of the eight jobs of a machine each may have an outage, none of which keeps the machine from being due. A task of a
    job that does not know of it, as it was restored from a backup, ends by itself.
    """
    try:
        job = deps.jobs.load_job(claim.job_id)
        if job is not None and machine.machine_id in claimed_machines(job):
            return None
        tasks = deps.targets.ecs.find_tasks_on(machine.instance_id) if machine.instance_id else ()
    except PortError as error:
        deps.log.decided("postponed", machine_id=machine.machine_id, job_id=claim.job_id, reason=str(error))
        return None
    if any(task.owner is not None and task.owner.job_id == claim.job_id for task in tasks):
        return None
    # A job that could not release it yet has saved what is wrong with the machine.
    saved = [each for each in (job.pending if job is not None else ()) if isinstance(each, ReleaseMachine)]
    own = next((each for each in saved if each.machine_id == machine.machine_id), None)
    if own is None:
        return ClaimReleased(claim.job_id, "its job does not need it")
    return ClaimReleased(claim.job_id, own.reason, is_unusable=own.is_unusable, is_unused=own.is_unused)


def _due(machine: Machine, deps: FleetDependencies) -> MachineDue | None:
    return MachineDue() if machine.wake_at is not None and machine.wake_at <= deps.clock.now() else None


def is_instance_sweep_due(now: datetime) -> bool:
    """Return whether the call at this minute sweeps the instances: never one that also sweeps the cluster.

    An instance that nobody accounts for is paid until a sweep finds it, and any call of one may fail.
    """
    return now.minute % _INTERVAL_MINUTES == _SWEEP_MINUTE


def sweep_instances(deps: FleetDependencies, has_time: Callable[[], bool] = lambda: True) -> int:
    """Compare the instances with the tag of this stack with the machines; return how many no machine accounts for.

    A machine is saved before EC2 is asked for its instance, and EC2 is not asked any more once it is gone: an instance
    without a machine is a leak. It is looked at twice, the second time strongly consistent, before it is terminated.
    While machines are off those that were launched before may live. No task is placed on a leak: one that has a task is
    of a machine that the table has lost, as after its recovery from a backup, and is left until the task ends.
    """
    suspects: list[InstanceObservation] = []
    try:
        for page in deps.fleet.list_instances():
            suspects += [seen for seen in page if has_time() and _is_suspect(seen, deps)]
        leaked = [seen for seen in suspects if seen.state.is_alive and _is_suspect(seen, deps) and _is_free(seen, deps)]
        _terminate(leaked, deps)
    except PortError as error:
        deps.log.decided("postponed", reason=f"sweeping the instances: {error}")
        return 0
    for seen in leaked:
        deps.log.decided("leaked", instance_id=seen.instance_id, machine_id=seen.machine_id or None, is_alert=True)
    return len(leaked)


def _terminate(leaked: Sequence[InstanceObservation], deps: FleetDependencies) -> None:
    # Counted first, also where EC2 does not answer. No item says that it was counted: it is again while it lives.
    deps.metrics.record(*leak_metrics(len(leaked)))
    if not leaked:
        return
    # One that EC2 refuses or does not know does not keep it from ending the others.
    ended = deps.fleet.terminate([seen.instance_id for seen in leaked])
    refused = [instance_id for instance_id, answer in ended.items() if answer is Termination.REFUSED]
    if refused:
        deps.metrics.record(MetricDatum(Metric.TERMINATIONS_REFUSED, len(refused)))
    for instance_id in refused:
        deps.log.decided("not terminated", instance_id=instance_id, is_alert=True)


def _is_suspect(seen: InstanceObservation, deps: FleetDependencies) -> bool:
    """Return whether no machine accounts for the instance; one of which that cannot be found out is left alone."""
    try:
        return not _is_accounted_for(seen, deps)
    except PortError as error:
        deps.log.decided("postponed", instance_id=seen.instance_id, reason=str(error))
        return False


def _is_free(seen: InstanceObservation, deps: FleetDependencies) -> bool:
    """Return whether no task is on the instance; one of which that cannot be found out is left alone."""
    try:
        tasks = deps.targets.ecs.find_tasks_on(seen.instance_id)
    except PortError as error:
        deps.log.decided("postponed", instance_id=seen.instance_id, reason=str(error))
        return False
    if tasks:
        deps.log.decided(
            "left",
            instance_id=seen.instance_id,
            tasks=len(tasks),
            reason="tasks are on it, and no machine has it",
            is_alert=True,
        )
    return not tasks


def _is_accounted_for(seen: InstanceObservation, deps: FleetDependencies) -> bool:
    """Return whether a machine has the instance; if so, it handles what is seen.

    Raises:
        PortError: it could not be found out.
    """
    machine = deps.machines.load_machine(seen.machine_id) if seen.machine_id else None
    if machine is None:
        return False
    if machine.request.size > 1:
        return _is_of_group(seen, machine, deps)
    if machine.instance_id == seen.instance_id and machine.state is not MachineState.GONE:
        return True
    if seen.offering is None or machine.instance_id not in (None, seen.instance_id):
        return False
    # EC2's answer was lost, or came after the machine was given up.
    launched = FleetAnswered(InstanceLaunched(seen.instance_id, seen.offering, at=seen.launched_at))
    return advance_machine(machine.machine_id, lambda _machine: launched, deps) is not None


def _is_of_group(seen: InstanceObservation, first: Machine, deps: FleetDependencies) -> bool:
    """Return whether a machine of the group has the instance, or may get it: a request of it is not answered yet.

    One that came after all of its group were given up is given to one of them, which ends it.
    """
    members = [deps.machines.load_machine(each) for each in member_ids(first.machine_id, first.request.size)]
    known = [each for each in members if each is not None and each.state is not MachineState.GONE]
    if any(each.instance_id == seen.instance_id for each in known):
        return True
    waiting = [each for each in known if each.state is MachineState.REQUESTED]
    for each in waiting:
        deps.machine_queue.request_calls(each.machine_id)
    if waiting or seen.offering is None:
        return bool(waiting)
    without = (each for each in members if each is not None and each.instance_id is None)
    late = next(without, None)
    if late is None:
        return False
    launched = FleetAnswered(InstanceLaunched(seen.instance_id, seen.offering, at=seen.launched_at))
    return advance_machine(late.machine_id, lambda _machine: launched, deps) is not None
