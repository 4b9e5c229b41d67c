"""Bugs in what is done with machines of our own, which the simulation must find."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.ec2 import create_fleet, fleet, fleet_errors
from relaunch.adapters.aws.ecs import run_task
from relaunch.adapters.aws.ecs.placement_constraints import instance_type_is
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle import machine_waits, moves, refusal_waits, running, unconfirmed_stops
from relaunch.core.lifecycle import table as job_table
from relaunch.core.lifecycle.decision import HEARTBEAT, Decision
from relaunch.core.lifecycle.events import JobEvent
from relaunch.core.machines import absent_agents, ending, living, requesting, table
from relaunch.core.machines.decision import MachineDecision, MachineTotals, micro_usd, set_next_check
from relaunch.core.machines.events import FleetRefused, InstanceState, MachineEvent, NodeSeen, RefusalKind
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState, Resources
from relaunch.usecases import advance_machine as advancing
from relaunch.usecases import claim_machine as claiming
from relaunch.usecases import launch_attempt as launching
from relaunch.usecases import look_at_agents, make_ec2_calls
from relaunch.usecases import observe_capacity as warning
from relaunch.usecases import observe_machine as observing
from relaunch.usecases import reconcile_machines as reconciling
from relaunch.usecases.claim_machine import claim_machine
from relaunch_local.in_memory import machines as stored
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.simulation.aws import fleet as fleet_faults
from relaunch_local.simulation.aws import machine_table as indexes
from relaunch_local.simulation.faults import absent_agents as absent_hosts
from relaunch_local.simulation.faults import silent_hosts
from simulation.broken_parts import Planting, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in

_NOTHING, _DAY = timedelta(0), timedelta(days=1)
_HUGE = Resources(1_000_000, 1_000_000, 64.0, 64)
_LATER, _TEN_MINUTES = timedelta(minutes=1), timedelta(minutes=10)
_AWAY = (absent_agents, look_at_agents)


def _rows_without(action: str) -> Planting:
    def plant() -> AbstractContextManager[object]:
        kept = tuple(row for row in table.TABLE if row.action.__name__ != action)
        if kept == table.TABLE:
            raise LookupError(f"no row with {action}")
        return patched(table, TABLE=kept)

    return plant


def _action(name: str, replacement: Callable[..., MachineDecision]) -> Planting:
    rows = [replace(row, action=replacement) if row.action.__name__ == name else row for row in table.TABLE]
    return lambda: patched(table, TABLE=tuple(rows))


@contextmanager
def _machines_for_ever() -> Iterator[None]:
    owners = (machine_waits, refusal_waits, claiming)
    with patched(machine_waits, _FAILED_MACHINES=10**9), patched_in(owners, next_machine_at=lambda _job, now: now):
        yield


@contextmanager
def _unconfirmed(**limits: timedelta) -> Iterator[None]:
    # A machine of our own ends for its agent otherwise.
    with patched(unconfirmed_stops, **limits), patched_in(_AWAY, AWAY_LIMIT=_DAY, DOUBT_LIMIT=_DAY):
        yield


def _absent_agents() -> AbstractContextManager[object]:
    return patched(absent_hosts, _SHARE=1.0, _EVERY=1, _FIRST=0)


def _silent_hosts() -> AbstractContextManager[object]:
    return patched(silent_hosts, _SILENT_SHARE=1.0, _EVERY=1, _FIRST=0)


def _refused_calls() -> AbstractContextManager[object]:
    return patched(fleet_faults, REFUSED_SHARE=0.5)


def _untrue_answers() -> AbstractContextManager[object]:
    return patched(fleet_faults, UNTRUE_SHARE=0.5)


def _token_of_each_call() -> AbstractContextManager[object]:
    numbers = itertools.count()
    original = fleet.build_create_fleet
    return patched(fleet, build_create_fleet=lambda request: {**original(request), "ClientToken": f"t{next(numbers)}"})


def _given_back_when_ending(original: Callable[..., MachineDecision]) -> Callable[..., MachineDecision]:
    def decide(machine: Machine, event: MachineEvent, now: datetime, limits: MachineLimits) -> MachineDecision:
        decision = original(machine, event, now, limits)
        was, became = machine.state, decision.machine.state
        price = micro_usd(decision.machine.usd_per_hour)
        if became is MachineState.ENDING and was.is_usable:
            return replace(decision, added=MachineTotals(-1, -price))
        return replace(decision, added=MachineTotals()) if was is MachineState.ENDING else decision

    return decide


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


def _with_its_agent(original: Callable[..., NodeSeen]) -> Callable[..., NodeSeen]:
    return lambda seen, deps: replace(original(seen, deps), is_connected=True)


def _kinds(wrong: RefusalKind) -> Planting:
    original = fleet_errors.kind_of

    def kind_of(code: str) -> RefusalKind:
        kind = original(code)
        return RefusalKind.NO_CAPACITY if kind is wrong else kind

    return lambda: patched_in((create_fleet, fleet_errors), kind_of=kind_of)


def _never_ended(machine: Machine, _event: object, now: datetime, _limits: MachineLimits) -> MachineDecision:
    return set_next_check(machine, now + _LATER)


def _ended_when_due(machine: Machine, _event: object, now: datetime, _limits: MachineLimits) -> MachineDecision:
    return ending.terminate(machine, now, event="idle")


def _asked_without_saving(original: Callable[..., Any]) -> Callable[..., Any]:
    def only_answers(saved: Machine, event: MachineEvent, deps: Any) -> Machine:
        machine: Machine = saved if type(event).__name__ == "FleetAsked" else original(saved, event, deps)
        return machine

    return only_answers


@contextmanager
def _taking_claims_when_warned() -> Iterator[None]:
    def accepts(self: Machine, resources: Resources) -> bool:
        return self.state.is_usable and not self.is_unusable and self.free.holds(resources)

    def has_room(machine: Machine) -> bool:
        return machine.state.is_usable and not machine.is_unusable

    with patched(Machine, accepts=accepts), patched_in((stored, indexes), has_room=has_room):
        yield


def _any_machine(self: InMemoryMachines, _instance_id: str) -> str | None:
    starting = [each for each in self._machines.values() if each.instance_id and each.state is MachineState.STARTING]
    return starting[-1].machine_id if starting else None


def _refused_when_uncertain(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _reason: FleetRefused(())


def _seen_as_terminated(original: Callable[..., MachineDecision]) -> Callable[..., MachineDecision]:
    def instance_ending(machine: Machine, event: Any, now: datetime, limits: MachineLimits) -> MachineDecision:
        seen = replace(event.observation, state=InstanceState.TERMINATED)
        return original(machine, replace(event, observation=seen), now, limits)

    return instance_ending


def _unlimited(name: str) -> Planting:
    original = MachineLimits.totals

    def totals(self: MachineLimits, *, is_handover: bool) -> MachineTotals:
        return replace(original(self, is_handover=is_handover), **{name: 0})

    return changed(MachineLimits, totals=totals)


def _raised_is_final(original: Callable[..., Any]) -> Callable[..., Any]:
    def answer_of_error(error: Any) -> Any:
        answer = original(error)
        return replace(answer, is_raised=False) if isinstance(answer, FleetRefused) else answer

    return answer_of_error


def _claimed_unread(_original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda job, selection, deps: claim_machine(job, selection, deps, is_handover=job.state is JobState.STOPPING)


MACHINE_BUGS = (
    PlantedBug(
        "token-of-each-call",
        "CreateFleet gets another client token each time the request of one machine is sent",
        _token_of_each_call,
        "one machine has one instance",
        30,
    ),
    PlantedBug(
        "counters-given-back-early",
        "the counters of machines go down when a machine ends, not when it is gone",
        replaced(advancing, "decide", _given_back_when_ending),
        "the counters are what lives",
    ),
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
        "ready-without-its-agent",
        "a machine is ready before its agent is connected",
        lambda: patched_in((observing, reconciling), node_seen=_with_its_agent(observing.node_seen)),
        "the agent of a machine that is ready was connected",
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
        "throttling-shuts-pools",
        "a throttled launch counts as a lack of capacity",
        _kinds(RefusalKind.THROTTLED),
        "only a lack of capacity shuts a pool",
        60,
    ),
    PlantedBug(
        "permission-shuts-pools",
        "a launch that is not permitted counts as a lack of capacity",
        _kinds(RefusalKind.NOT_PERMITTED),
        "only a lack of capacity shuts a pool",
        60,
    ),
    PlantedBug(
        "machine-ended-when-looked-at",
        "a machine is ended when it is looked at, whoever needs it",
        _action("wake_ready", _ended_when_due),
        "no sound machine ends that a job needs",
    ),
    PlantedBug(
        "no-answer-is-no-machine",
        "a CreateFleet that went unanswered counts as refused",
        replaced(fleet_errors, "FleetUncertain", _refused_when_uncertain),
        "a machine that is gone has no instance",
        60,
    ),
    PlantedBug(
        "asking-not-saved",
        "EC2 is asked before it is saved that it is",
        replaced(make_ec2_calls, "apply_machine_event", _asked_without_saving),
        "it is saved that EC2 is asked before it is",
    ),
    PlantedBug(
        "late-instance-ignored",
        "an instance that comes to light after its machine was given up is left alone",
        _rows_without("launched_after_all"),
        "every instance of ours is accounted for",
        90,
        world=_untrue_answers,
    ),
    PlantedBug(
        "registration-deadline-ignored",
        "a machine that does not register is waited for without end",
        _action("wake_starting", _never_ended),
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
        "money-cap-ignored",
        "machines may cost any price per hour",
        _unlimited("micro_usd_per_hour"),
        "no more money per hour than allowed",
        60,
    ),
    PlantedBug(
        "machine-cap-ignored",
        "there may be any number of machines",
        _unlimited("machines"),
        "no more machines than allowed",
        60,
    ),
    PlantedBug(
        "any-number-starts",
        "what starts is not counted when a machine is requested",
        replaced(requesting, "started", lambda _started: lambda *_parts: ()),
        "a cause costs few machines in a day",
        10,
        first=53_510,
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
        _action("wake_ready", _never_ended),
        "no instance lives that nobody needs",
        140,
    ),
    PlantedBug(
        "searched-too-short",
        "a request of unknown outcome is given up at once",
        lambda: patched(requesting, LOOKED_FOR=_NOTHING, SENT_AGAIN_FOR=_NOTHING),
        "a machine that is gone has no instance",
        60,
    ),
    PlantedBug(
        "refusal-after-no-answer-is-final",
        "a refused call ends the search for the instance of an earlier one",
        replaced(fleet, "answer_of_error", _raised_is_final),
        "a machine that is gone has no instance",
        100,
        world=_refused_calls,
    ),
    PlantedBug(
        "gone-when-shutting-down",
        "a machine is gone when its instance begins to shut down",
        _action("instance_ending", _seen_as_terminated(ending.instance_ending)),
        "a machine that is gone has no instance",
    ),
    PlantedBug(
        "unseen-is-gone",
        "an instance that EC2 does not know for a moment is gone",
        changed(ending, MISSING_GRACE=_NOTHING),
        "a machine that is gone has no instance",
        60,
    ),
    PlantedBug(
        "machine-for-unreadable-checkpoints",
        "a machine is requested for a job that cannot read its checkpoints",
        replaced(launching, "_claim", _claimed_unread),
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
        "machines-for-ever",
        "a job gets another machine at once, however many never ran its task",
        _machines_for_ever,
        "a job has few machines in a day that run no task",
        100,
    ),
    PlantedBug(
        "unready-not-remembered",
        "what does not become ready is bought by every job that has not tried it",
        changed(living, remember_unready=lambda *_given: ()),
        "a cause costs few machines in a day",
        100,
    ),
    PlantedBug(
        "refused-machines-of-others",
        "each job whose launches are refused buys probes of its own",
        changed(refusal_waits, useless_for_all=lambda *_given: AdmitWaiting()),
        "a cause costs few machines in a day",
        120,
    ),
    PlantedBug(
        "silent-machine-kept",
        "a machine of our own that does not confirm a stop is kept until its job ends",
        lambda: _unconfirmed(CONFIRMED_WITHIN=_DAY),
        "no machine of ours lives on with an unwanted task",
        60,
        world=_silent_hosts,
    ),
    PlantedBug(
        "stop-waited-for-for-ever",
        "a stop that no host confirms is waited for without an end",
        lambda: _unconfirmed(CONFIRMED_WITHIN=_DAY, STOP_LIMIT=_DAY),
        "a stop ends within its bound",
        90,
        world=_silent_hosts,
    ),
    PlantedBug(
        "absent-agent-kept",
        "a machine whose agent stays away is kept until its job ends",
        lambda: patched_in(_AWAY, AWAY_LIMIT=_DAY, IMPAIRED_LIMIT=_DAY),
        "no machine of ours lives on for an hour while its agent is away",
        60,
        world=_absent_agents,
    ),
    PlantedBug(
        "absent-agent-given-up-early",
        "a machine whose agent is away for ten minutes is ended",
        lambda: patched_in(_AWAY, AWAY_LIMIT=_TEN_MINUTES),
        "no machine is ended for its agent before its time",
        60,
        world=_absent_agents,
    ),
    PlantedBug(
        "outage-ends-machines",
        "machines are ended although most agents are away at once",
        lambda: patched_in(_AWAY, is_outage=lambda _agents, _away: False),
        "no machine is ended for its agent in an outage",
        90,
        world=_absent_agents,
    ),
    PlantedBug(
        "training-that-saves-is-lost",
        "a machine whose agent is away is ended although checkpoints arrive",
        changed(absent_agents, _CLOCK_MARGIN=_DAY),
        "no machine is ended for its agent while its training saves",
        60,
        world=_absent_agents,
    ),
)
