"""Apply an event to a machine: load, decide, save, act."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from relaunch.core.jobs.job import MACHINES_SLOT
from relaunch.core.lifecycle.metrics import machine_metrics
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.events import MachineEvent
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    DeregisterNode,
    Ec2Effect,
    ForgetUnready,
    Machine,
    MachineEffect,
    MachineState,
    RememberFailures,
    RememberLaunch,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.machines.starts import Worth, causes_of
from relaunch.core.machines.table import decide
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.pool_records import change_by_failure, change_by_launch
from relaunch.ports import JobDependencies, StaleWriteError
from relaunch.usecases.learn_pool import learn_pool

# Each conflict means that another write succeeded; this many in a row are a fault.
_ATTEMPTS = 6
# One place is free; a job that needs several machines' worth of money, or is over by now, must not block the others.
_ADMITTED_JOBS = 3


def advance_machine(
    machine_id: str, event_for: Callable[[Machine], MachineEvent | None], deps: JobDependencies
) -> Machine | None:
    """Load a machine, finish its pending effects, and apply the event that `event_for` returns for it.

    Returns the machine after that, None if it does not exist.

    Raises:
        StaleWriteError: other writers saved the machine several times in a row; retry.
    """
    for _ in range(_ATTEMPTS):
        machine = deps.machines.load_machine(machine_id)
        if machine is None:
            deps.log.decided("ignored", machine_id=machine_id, reason="no such machine")
            return None
        try:
            machine = finish_effects(machine, deps)
            event = event_for(machine)
            return machine if event is None else apply_machine_event(machine, event, deps)
        except StaleWriteError:
            continue
    raise StaleWriteError(f"machine {machine_id} was saved by others {_ATTEMPTS} times while it was being decided on")


def apply_machine_event(machine: Machine, event: MachineEvent, deps: JobDependencies) -> Machine:
    """Decide on a loaded machine, save the decision, and do its effects; return the saved machine.

    Raises:
        StaleWriteError: the machine was changed since it was loaded.
    """
    now = deps.clock.now()
    decision = decide(machine, event, now, deps.limits.machines)
    _log(machine, event, decision, deps)
    if decision.is_ignored:
        return machine
    saved = deps.machines.save_machine(decision)
    deps.metrics.record(*machine_metrics(machine, decision, now))
    return finish_effects(saved, deps)


def finish_effects(machine: Machine, deps: JobDependencies) -> Machine:
    """Do the pending effects, then save that they are done.

    Those that call EC2 stay pending: only the consumer of the `machines` queue may call it, and is asked to.

    Raises:
        TransientError: an effect failed; it stays pending and is repeated when the machine is loaded next.
    """
    if not machine.pending:
        return machine
    for effect in machine.pending:
        _perform(machine, effect, deps)
    return save_done(machine, tuple(effect for effect in machine.pending if isinstance(effect, Ec2Effect)), deps)


def save_done(machine: Machine, left: tuple[MachineEffect, ...], deps: JobDependencies) -> Machine:
    """Save which effects of a machine are left; return the machine."""
    if left == machine.pending:
        return machine
    wake_at = None if machine.state is MachineState.GONE and not left else machine.wake_at
    try:
        return deps.machines.save_machine(MachineDecision(replace(machine, pending=left, wake_at=wake_at)))
    except StaleWriteError:
        # Another writer has repeated these effects already.
        return machine


def _perform(machine: Machine, effect: MachineEffect, deps: JobDependencies) -> None:
    match effect:
        case AskFleet() | TerminateInstance() | DeregisterNode():
            delay_seconds = effect.delay_seconds if isinstance(effect, AskFleet) else 0
            deps.machine_queue.attend(machine.machine_id, delay_seconds)
        case TellJobs(job_ids):
            _request_launches(job_ids, deps)
        case AdmitJobs():
            over = causes_of(machine) if machine.state is MachineState.GONE else ()
            deps.machines.settle_start(over, machine, Worth.UNKNOWN)
            admit_jobs(deps)
        case RememberFailures(failures):
            _remember_failures(machine, failures, deps)
        case RememberLaunch(offering, at):
            learn_pool(offering, change_by_launch(offering, at), deps)
        case ForgetUnready(offerings, at):
            deps.machines.settle_start(offerings, machine, Worth.USEFUL)
            deps.capacity.forget_unready(offerings, at)


def _remember_failures(machine: Machine, failures: Sequence[CapacityFailure], deps: JobDependencies) -> None:
    unready = tuple(each.offering for each in failures if each.is_unready)
    deps.machines.settle_start(unready, machine, Worth.USELESS)
    for failure in failures:
        deps.capacity.remember(failure)
        learn_pool(failure.offering, change_by_failure(failure), deps)


def admit_jobs(deps: JobDependencies) -> None:
    """Request the launch of the jobs that have waited longest for a limit on machines."""
    _request_launches(deps.jobs.load_waiting(MACHINES_SLOT, _ADMITTED_JOBS), deps)


def _request_launches(job_ids: Iterable[str], deps: JobDependencies) -> None:
    for job_id in job_ids:
        deps.launches.request_launch(job_id)


def _log(machine: Machine, event: MachineEvent, decision: MachineDecision, deps: JobDependencies) -> None:
    after = decision.machine
    is_told = after.timeline[-1:] != machine.timeline[-1:]
    deps.log.decided(
        "ignored" if decision.is_ignored else "advanced",
        machine_id=machine.machine_id,
        event_name=type(event).__name__,
        action=decision.action or None,
        state=str(machine.state),
        next_state=str(after.state),
        instance_id=after.instance_id,
        # Once for each machine that somebody has to do something about, and again while its instance does not end.
        is_alert=(after.is_alert and (not machine.is_alert or after.told_at != machine.told_at)) or None,
        reason=decision.note or (after.timeline[-1].detail if is_told else None),
    )
