"""The transition table of machines: (state, event, guard) → action. Every valid transition is a row.

`decide` runs the first row that matches; an event without a row is ignored, with a note.
"""

from dataclasses import replace
from datetime import datetime

from relaunch.core.machines import absent_agents, ending, living, requesting
from relaunch.core.machines.charges import with_holdings
from relaunch.core.machines.decision import MachineDecision, ignore
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
from relaunch.core.machines.machine import AskFleet, ChargeJobs, Machine, MachineEffect, MachineState, TerminateInstance
from relaunch.core.transitions.table import always, decide_by, make_rows


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
    """Return whether EC2 announces an interruption that costs nothing, of a machine that ends or was warned before.

    An interruption that did not come may be announced again, and EC2 is left more time then; in all not more than the
    machine's first hour.
    """
    until = ending.left_until(machine, event)
    return until is not None and (machine.left_until is None or until > machine.left_until)


def is_news_before_the_charge(machine: Machine, event: MachineWarned) -> bool:
    """Return whether such an announcement comes late, of a machine that is gone and not charged yet.

    After an hour EC2 does not say any more why an instance ended, which decides what is billed.
    """
    return _is_uncharged(machine) and is_news_of_the_end(machine, event)


def is_earlier_end(machine: Machine, event: InstanceSeen) -> bool:
    """Return whether a machine that is gone and not charged yet had ended sooner than was known: events come late."""
    was_later = machine.ended_at is not None and event.at < machine.ended_at
    return _is_uncharged(machine) and is_over(machine, event) and was_later


def _is_uncharged(machine: Machine) -> bool:
    return any(isinstance(each, ChargeJobs) for each in machine.pending)


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


TABLE = make_rows(
    _STATES_BY_CODE,
    ("Q", FleetAsked, always, requesting.ask_fleet, ""),
    ("Q", FleetAnswered, always, requesting.fleet_answered, "QSEG"),
    ("Q", RequestExpired, always, requesting.request_expired, "G"),
    ("G", FleetAnswered, is_launched, requesting.launched_after_all, "E"),
    ("S", NodeSeen, is_usable_node, living.node_seen, "SR"),
    ("S", NodeSeen, is_draining_node, living.node_draining, "S"),
    ("R", NodeSeen, absent_agents.is_agent_back, absent_agents.agent_back, ""),
    ("R", AgentSeen, absent_agents.is_agent_news, absent_agents.agent_seen, "RE"),
    ("SRE", InstanceSeen, is_over, ending.instance_ending, "EG"),
    ("SR", InstanceSeen, reappears, living.instance_alive, ""),
    ("E", InstanceSeen, is_own, ending.terminate_again, ""),
    ("S", InstanceMissing, always, ending.instance_missing, "SG"),
    ("R", InstanceMissing, always, ending.instance_missing, "RG"),
    ("E", InstanceMissing, always, ending.instance_missing, "EG"),
    ("S", MachineWarned, is_first_warning, living.machine_warned, "E"),
    ("R", MachineWarned, is_first_warning, living.machine_warned, "RE"),
    ("RE", MachineWarned, is_news_of_the_end, ending.leave_to_ec2, ""),
    ("G", MachineWarned, is_news_before_the_charge, ending.leave_to_ec2, ""),
    ("G", InstanceSeen, is_earlier_end, ending.note_earlier_end, ""),
    ("QSR", ClaimAsked, has_room, living.add_claim, ""),
    ("Q", ClaimReleased, is_last_claim_unasked, requesting.withdraw, "G"),
    ("Q", ClaimReleased, is_claimed, living.release_claim, "Q"),
    ("S", ClaimReleased, is_claimed, living.release_claim, "SE"),
    ("R", ClaimReleased, is_claimed, living.release_claim, "RE"),
    ("R", MachineAbandoned, is_claimed, living.abandon, "RE"),
    ("Q", MachineDue, always, requesting.wake_requested, ""),
    ("S", MachineDue, always, living.wake_starting, "SE"),
    ("R", MachineDue, always, living.wake_ready, "RE"),
    ("E", MachineDue, always, ending.wake_ending, ""),
)


def with_pending(machine: Machine, event: MachineEvent, decision: MachineDecision, _now: datetime) -> MachineDecision:
    """Return the decision with the effects that were pending before, as far as they still make sense."""
    if decision.is_ignored:
        return decision
    after = decision.machine
    kept = (each for each in machine.pending if each not in after.pending and _is_left(each, after, event))
    return replace(decision, machine=replace(after, pending=(*kept, *after.pending)))


def _is_left(effect: MachineEffect, after: Machine, event: MachineEvent) -> bool:
    """Return whether an effect that was pending before the event is still to be done after it."""
    match effect:
        case AskFleet():
            return after.state is MachineState.REQUESTED and not isinstance(event, FleetAsked | FleetAnswered)
        case TerminateInstance():
            return after.state is MachineState.ENDING and not isinstance(event, MachineWarned)
        case ChargeJobs():
            return after.state is MachineState.GONE
        case _:
            return True


COMPLETIONS = (with_pending, with_holdings)
"""What holds after every action: no effect is lost, and it is known who pays the machine."""


def decide(machine: Machine, event: MachineEvent, now: datetime, limits: MachineLimits) -> MachineDecision:
    """Return the decision of the first matching row; an ignored decision if there is none."""
    decision: MachineDecision | None = decide_by(TABLE, COMPLETIONS, machine, event, now, limits)
    return decision or ignore(machine, f"{type(event).__name__} means nothing to a machine that is {machine.state}")
