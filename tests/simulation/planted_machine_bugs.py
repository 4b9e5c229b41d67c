"""Bugs in what is done with machines of our own, which the simulation must find."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.dynamodb import machine_items
from relaunch.adapters.aws.ecs import run_task
from relaunch.adapters.aws.ecs.placement_constraints import instance_type_is
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle import machine_waits, moves, running
from relaunch.core.lifecycle import table as job_table
from relaunch.core.lifecycle.decision import HEARTBEAT, Decision
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.machines import ending
from relaunch.core.machines.decision import MachineDecision, set_next_check
from relaunch.core.machines.events import NodeSeen
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState, Resources
from relaunch.usecases import choose_placement
from relaunch.usecases import claim_machine as claiming
from relaunch.usecases import observe_capacity as warning
from relaunch.usecases import observe_machine as observing
from relaunch.usecases.claim_machine import claim_machine
from relaunch_local.in_memory import machines as stored
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.simulation.aws import machine_table as indexes
from simulation.broken_parts import Planting, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import machine_action, patched, patched_in

_NOTHING = timedelta(0)
_HUGE = Resources(1_000_000, 1_000_000, 64.0, 64)
_LATER = timedelta(minutes=1)


def _not_released(is_forgotten: Callable[[Job], bool]) -> Planting:
    original = machine_waits.with_releases

    def with_releases(before: Job, event: JobEvent, decision: Decision, now: datetime) -> Decision:
        return decision if is_forgotten(decision.job) else original(before, event, decision, now)

    completions = tuple(with_releases if each is original else each for each in job_table.COMPLETIONS)
    return lambda: patched(job_table, COMPLETIONS=completions)


def _forgotten_last_moment() -> AbstractContextManager[object]:
    return patched_in((moves, running), next_look=lambda _job, now: now + HEARTBEAT)


def _has_stopped(job: Job) -> bool:
    return job.state is JobState.WAITING and job.attempt is not None and job.attempt.stop is not None


def _unconditional(original: Callable[..., None]) -> Callable[..., None]:
    def check(self: InMemoryMachines, decisions: Any) -> None:
        known = {each.machine.machine_id: self.load_machine(each.machine.machine_id) for each in decisions}
        current = [
            replace(each, machine=replace(each.machine, version=found.version))
            if (found := known[each.machine.machine_id])
            else each
            for each in decisions
        ]
        original(self, current)

    return check


def _with_all_accelerators(original: Callable[..., NodeSeen]) -> Callable[..., NodeSeen]:
    return lambda seen, deps: replace(original(seen, deps), registered=_HUGE)


def _never_ended(machine: Machine, _event: object, now: datetime, _limits: MachineLimits) -> MachineDecision:
    return set_next_check(machine, now + _LATER)


def _ended_when_due(machine: Machine, _event: object, now: datetime, _limits: MachineLimits) -> MachineDecision:
    return ending.terminate(machine, now, event="idle", detail="")


@contextmanager
def _taking_claims_when_warned() -> Iterator[None]:
    def accepts(self: Machine, resources: Resources) -> bool:
        return self.state.is_usable and not self.is_unusable and self.free.holds(resources)

    def has_room(machine: Machine) -> bool:
        return machine.state.is_usable and not machine.is_unusable

    unasked = patched(claiming, _was_warned=lambda _machine, _deps: False)
    with unasked, patched(Machine, accepts=accepts), patched_in((stored, indexes, machine_items), has_room=has_room):
        yield


def _any_machine(self: InMemoryMachines, _instance_id: str) -> str | None:
    starting = [each for each in self._machines.values() if each.instance_id and each.state is MachineState.STARTING]
    return starting[-1].machine_id if starting else None


def _claimed_unread(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda job, selection, deps: claim_machine(job, selection, deps, is_handover=job.state is JobState.STOPPING)


MACHINE_BUGS = (
    PlantedBug(
        "machine-not-released-on-cancel",
        "a job that is cancelled keeps its claim",
        _not_released(lambda job: job.state is JobState.CANCELLED),
        "a job releases what it does not need",
    ),
    PlantedBug(
        "machine-not-released-on-stop",
        "a job whose task has stopped keeps its claim on the machine",
        _not_released(_has_stopped),
        "a job releases what it does not need",
    ),
    PlantedBug(
        "machine-saves-unconditional",
        "a machine is saved whatever its version",
        replaced(InMemoryMachines, "check", _unconditional),
        "the counters are what lives",
        30,
    ),
    PlantedBug(
        "ready-without-accelerators",
        "a machine is ready before its agent has registered all its GPUs",
        replaced(observing, "node_seen", _with_all_accelerators),
        "a machine that is ready has all its accelerators",
        60,
    ),
    PlantedBug(
        "free-hour-paid",
        "a machine that EC2 is about to interrupt within its first hour is terminated",
        lambda: patched(ending, _FREE_HOUR=_NOTHING),
        "no machine warned in its first hour is billed because of us",
        60,
    ),
    PlantedBug(
        "machine-ended-when-looked-at",
        "a machine is ended when it is looked at, whoever needs it",
        machine_action("wake_ready", _ended_when_due),
        "no sound machine ends that a job needs",
    ),
    PlantedBug(
        "registration-deadline-ignored",
        "a machine that does not register is waited for without end",
        machine_action("wake_starting", _never_ended),
        "a machine is ready in time or ended",
        60,
    ),
    PlantedBug(
        "warned-machine-takes-claims",
        "a machine that EC2 takes away takes more jobs",
        _taking_claims_when_warned,
        "a machine that was warned takes no claims",
        330,
    ),
    PlantedBug(
        "room-not-looked-for",
        "a job requests a machine of its own whatever has room",
        replaced(claiming, "_join", lambda _original: lambda _job, _selection, _deps: None),
        "no machine is requested beside a ready one like it that has room",
        30,
    ),
    PlantedBug(
        "node-of-another-instance",
        "a machine takes the registration of any instance for its own",
        lambda: patched(InMemoryMachines, find_by_instance=_any_machine),
        "a machine's node is its instance",
        30,
    ),
    PlantedBug(
        "placed-anywhere",
        "RunTask may place the task of a machine on another instance",
        changed(run_task, constraint_of=lambda request: instance_type_is(request.offering.instance_type)),
        "a task runs on the machine it was placed for",
        60,
    ),
    PlantedBug(
        "idle-machine-kept",
        "a machine that is kept warm is never ended",
        machine_action("wake_ready", _never_ended),
        "no instance lives that nobody needs",
        140,
    ),
    PlantedBug(
        "machine-for-unreadable-checkpoints",
        "a machine is requested for a job that cannot read its checkpoints",
        replaced(choose_placement, "_claim", _claimed_unread),
        "no machine is requested for unreadable checkpoints",
        100,
    ),
    PlantedBug(
        "last-moment-forgotten",
        "a task that trains on after a warning is looked at like any other",
        _forgotten_last_moment,
        "a task that trains on is looked at at its last moment",
        30,
    ),
    PlantedBug(
        "warning-done-before-the-stop",
        "a warning is handled once its task trains on",
        replaced(warning, "_stop_in_time", lambda _original: lambda _job, _deps: 0),
        "a warned task is asked to stop",
        30,
    ),
    PlantedBug(
        "stopped-at-each-notice",
        "a task is stopped when EC2 gives notice of its machine, though the stack lets it train on",
        changed(running, may_keep_training=lambda _job, _limits: False),
        "a task trains on until its last moment where the stack wants it",
        within=30,
    ),
)
