"""Apply an event to a machine."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from relaunch.core.jobs.job import MACHINES_SLOT
from relaunch.core.lifecycle.metrics import machine_metrics
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.events import MachineEvent
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    ChargeJobs,
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
from relaunch.core.offerings.spot_runs import change_by_failure, change_by_launch
from relaunch.ports import JobDependencies, StaleWriteError
from relaunch.usecases.lifecycle import Lifecycle
from relaunch.usecases.reopen_offerings import learn_pool

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
    return MachineLifecycle(deps).advance(machine_id, event_for)


def apply_machine_event(machine: Machine, event: MachineEvent, deps: JobDependencies) -> Machine:
    """Decide on a loaded machine, save the decision, and do its effects; return the saved machine.

    Raises:
        StaleWriteError: the machine was changed since it was loaded.
    """
    return MachineLifecycle(deps).apply(machine, event)


def finish_effects(machine: Machine, deps: JobDependencies) -> Machine:
    """Do the pending effects, then save that they are done.

    Those that call EC2 stay pending: only the consumer of the `machines` queue may call it, and is asked to.

    Raises:
        TransientError: an effect failed; it stays pending and is repeated when the machine is loaded next.
    """
    return MachineLifecycle(deps).finish(machine)


def save_done(machine: Machine, left: tuple[MachineEffect, ...], deps: JobDependencies) -> Machine:
    """Save which effects of a machine are left; return the machine."""
    return MachineLifecycle(deps).save_done(machine, left)


class MachineLifecycle(Lifecycle[Machine, MachineEvent, MachineDecision]):
    """What advances machines."""

    kind = "machine"

    def load(self, machine_id: str) -> Machine | None:
        """Load a machine."""
        return self.deps.machines.load_machine(machine_id)

    def decide(self, machine: Machine, event: MachineEvent, now: datetime) -> MachineDecision:
        """Return the decision of the transition table."""
        return decide(machine, event, now, self.deps.limits.machines)

    def save(self, machine: Machine, decision: MachineDecision, now: datetime) -> Machine:
        """Save a decision and record its metrics."""
        saved = self.deps.machines.save_machine(decision)
        self.deps.metrics.record(*machine_metrics(machine, decision, now))
        return saved

    def left(self, machine: Machine) -> tuple[MachineEffect, ...]:
        """Return those that call EC2: only the consumer of the `machines` queue may do them, and is asked to."""
        return tuple(effect for effect in machine.pending if isinstance(effect, Ec2Effect))

    def save_done(
        self, machine: Machine, left: tuple[MachineEffect, ...], _events: Sequence[MachineEvent] = ()
    ) -> Machine:
        """Save that all effects but those left are done."""
        if left == machine.pending:
            return machine
        wake_at = None if machine.state is MachineState.GONE and not left else machine.wake_at
        try:
            return self.deps.machines.save_machine(MachineDecision(replace(machine, pending=left, wake_at=wake_at)))
        except StaleWriteError:
            # Another writer has repeated these effects already.
            return machine

    def perform(self, machine: Machine, effect: MachineEffect) -> None:
        """Do an effect; none brings an event about."""
        deps = self.deps
        match effect:
            case AskFleet() | TerminateInstance() | DeregisterNode() | ChargeJobs():
                delay_seconds = effect.delay_seconds if isinstance(effect, AskFleet) else 0
                deps.machine_queue.request_calls(machine.machine_id, delay_seconds)
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
                if machine.request.size > 1:
                    learn_pool(offering, change_by_launch(offering, at), deps, machine.request.size)
            case ForgetUnready(offerings, at):
                deps.machines.settle_start(offerings, machine, Worth.USEFUL)
                deps.capacity.forget_unready(offerings, at)
            case _:
                assert_never(effect)

    def log(self, machine: Machine, event: MachineEvent, decision: MachineDecision) -> None:
        """Log a decision."""
        after = decision.machine
        is_told = after.timeline[-1:] != machine.timeline[-1:]
        self.deps.log.decided(
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
