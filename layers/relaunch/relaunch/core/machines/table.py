"""The transition table of machines: (state, event, guard) → action. Every valid transition is a row.

`decide` runs the first row that matches; an event without a row is ignored, with a note.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from relaunch.core.machines import absent_agents, ending, living, requesting
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.events import (
    AgentSeen,
    ClaimAsked,
    ClaimReleased,
    FleetAnswered,
    FleetAsked,
    InstanceLaunched,
    InstanceMissing,
    InstanceSeen,
    MachineAbandoned,
    MachineDue,
    MachineEvent,
    MachineWarned,
    NodeSeen,
    RequestExpired,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import AskFleet, Machine, MachineEffect, MachineState, TerminateInstance
from relaunch.core.machines.moves import ignore

# The event has the type of the row's `event` column, which the type system cannot express.
Guard = Callable[[Machine, Any], bool]
Action = Callable[[Machine, Any, datetime, MachineLimits], MachineDecision]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the action to run in these states, on this event, if the guard returns true.

    `targets` are the possible next states; empty if the state does not change.
    """

    states: frozenset[MachineState]
    event: type[MachineEvent]
    guard: Guard
    action: Action
    targets: frozenset[MachineState]


def always(_machine: Machine, _event: MachineEvent) -> bool:
    """Return True."""
    return True


def is_launched(_machine: Machine, event: FleetAnswered) -> bool:
    """Return whether EC2 launched the instance."""
    return isinstance(event.answer, InstanceLaunched)


def is_own(machine: Machine, event: InstanceSeen) -> bool:
    """Return whether the instance is that of the machine."""
    return machine.instance_id == event.observation.instance_id


def is_over(machine: Machine, event: InstanceSeen) -> bool:
    """Return whether the instance is that of the machine, and ends or has ended."""
    return is_own(machine, event) and not event.observation.state.is_alive


def reappears(machine: Machine, event: InstanceSeen) -> bool:
    """Return whether EC2 knows the instance again."""
    return is_own(machine, event) and machine.unseen_since is not None


def is_usable_node(_machine: Machine, event: NodeSeen) -> bool:
    """Return whether the node takes tasks."""
    return event.is_active


def is_draining_node(_machine: Machine, event: NodeSeen) -> bool:
    """Return whether the node has registered and takes no tasks any more."""
    return event.is_draining


def is_first_warning(machine: Machine, _event: MachineWarned) -> bool:
    """Return whether the machine was not warned before."""
    return machine.warned_at is None


def is_news_of_the_end(machine: Machine, event: MachineWarned) -> bool:
    """Return whether EC2 announces an interruption that costs nothing, of a machine that ends or was warned before."""
    is_first = not event.is_rebalance and machine.left_until is None
    return is_first and ending.left_until(machine, event.at) is not None


def has_room(machine: Machine, event: ClaimAsked) -> bool:
    """Return whether the machine has room for the claim of a job that has none on it."""
    return machine.claim_of(event.claim.job_id) is None and machine.accepts(event.claim.resources)


def is_claimed(machine: Machine, event: ClaimReleased | MachineAbandoned) -> bool:
    """Return whether the job has a claim on the machine."""
    return machine.claim_of(event.job_id) is not None


def is_last_claim_unasked(machine: Machine, event: ClaimReleased) -> bool:
    """Return whether the job has the only claim, and EC2 was not asked yet."""
    is_last = is_claimed(machine, event) and len(machine.claims) == 1
    return is_last and machine.asked_at is None


_STATES_BY_CODE = {
    "Q": MachineState.REQUESTED,
    "S": MachineState.STARTING,
    "R": MachineState.READY,
    "E": MachineState.ENDING,
    "G": MachineState.GONE,
}


def _row(states: str, event: type[MachineEvent], guard: Guard, action: Action, targets: str) -> Row:
    return Row(_states(states), event, guard, action, _states(targets))


def _states(codes: str) -> frozenset[MachineState]:
    return frozenset(_STATES_BY_CODE[code] for code in codes)


TABLE: tuple[Row, ...] = (
    _row("Q", FleetAsked, always, requesting.ask_fleet, ""),
    _row("Q", FleetAnswered, always, requesting.fleet_answered, "QSEG"),
    _row("Q", RequestExpired, always, requesting.request_expired, "G"),
    _row("G", FleetAnswered, is_launched, requesting.launched_after_all, "E"),
    _row("S", NodeSeen, is_usable_node, living.node_seen, "SR"),
    _row("S", NodeSeen, is_draining_node, living.node_draining, "S"),
    _row("R", NodeSeen, absent_agents.is_agent_back, absent_agents.agent_back, ""),
    _row("R", AgentSeen, absent_agents.is_agent_news, absent_agents.agent_seen, "RE"),
    _row("SRE", InstanceSeen, is_over, ending.instance_ending, "EG"),
    _row("SR", InstanceSeen, reappears, living.instance_alive, ""),
    _row("E", InstanceSeen, is_own, ending.terminate_again, ""),
    _row("S", InstanceMissing, always, ending.instance_missing, "SG"),
    _row("R", InstanceMissing, always, ending.instance_missing, "RG"),
    _row("E", InstanceMissing, always, ending.instance_missing, "EG"),
    _row("S", MachineWarned, is_first_warning, living.machine_warned, "E"),
    _row("R", MachineWarned, is_first_warning, living.machine_warned, "RE"),
    _row("RE", MachineWarned, is_news_of_the_end, ending.leave_to_ec2, ""),
    _row("QSR", ClaimAsked, has_room, living.add_claim, ""),
    _row("Q", ClaimReleased, is_last_claim_unasked, requesting.withdraw, "G"),
    _row("Q", ClaimReleased, is_claimed, living.release_claim, "Q"),
    _row("S", ClaimReleased, is_claimed, living.release_claim, "SE"),
    _row("R", ClaimReleased, is_claimed, living.release_claim, "RE"),
    _row("R", MachineAbandoned, is_claimed, living.abandon, "RE"),
    _row("Q", MachineDue, always, requesting.wake_requested, ""),
    _row("S", MachineDue, always, living.wake_starting, "SE"),
    _row("R", MachineDue, always, living.wake_ready, "RE"),
    _row("E", MachineDue, always, ending.wake_ending, ""),
)


def decide(machine: Machine, event: MachineEvent, now: datetime, limits: MachineLimits) -> MachineDecision:
    """Return the decision of the first matching row; an ignored decision if there is none.

    Effects that are still pending stay so, as far as they still make sense.
    """
    for row in TABLE:
        if machine.state in row.states and isinstance(event, row.event) and row.guard(machine, event):
            decision = row.action(machine, event, now, limits)
            if decision.is_ignored:
                return decision
            after = decision.machine
            kept = (each for each in machine.pending if each not in after.pending and _is_left(each, after, event))
            pending = (*kept, *after.pending)
            return replace(decision, machine=replace(after, pending=pending), action=row.action.__name__)
    return ignore(machine, f"{type(event).__name__} means nothing to a machine that is {machine.state}")


def _is_left(effect: MachineEffect, after: Machine, event: MachineEvent) -> bool:
    """Return whether an effect that was pending before the event is still to be done after it."""
    match effect:
        case AskFleet():
            return after.state is MachineState.REQUESTED and not isinstance(event, FleetAsked | FleetAnswered)
        case TerminateInstance():
            return after.state is MachineState.ENDING and not isinstance(event, MachineWarned)
        case _:
            return True
