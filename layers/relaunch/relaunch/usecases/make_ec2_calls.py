"""Do what EC2 is to be called for: request a machine, terminate its instance, deregister its node."""

from relaunch.core.lifecycle.metrics import machine_metrics
from relaunch.core.machines.decision import find_older, may_give_way
from relaunch.core.machines.ending import termination_refused
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetAnswered,
    FleetAsked,
    FleetRefused,
    InstanceLaunched,
    InstanceObservation,
    RequestExpired,
)
from relaunch.core.machines.groups import answer_of_found, answer_of_member, first_id_of, member_ids
from relaunch.core.machines.machine import (
    AskFleet,
    ChargeJobs,
    Consequence,
    DeregisterNode,
    Machine,
    MachineEffect,
    MachineState,
    TerminateInstance,
)
from relaunch.core.machines.refusals import find_failures
from relaunch.core.machines.requesting import expiry_reason, is_surely_absent, may_send, settles
from relaunch.core.offerings.spot_runs import change_by_failure
from relaunch.ports import FleetDependencies, NotGrantedError, PortError, StaleWriteError, Termination, TransientError
from relaunch.usecases.advance_machine import advance_machine, apply_machine_event, finish_effects, save_done
from relaunch.usecases.charge_jobs import charge_jobs
from relaunch.usecases.reopen_offerings import learn_pool

_OFF = "the stack requests no machines of its own any more"
_LOOK_SECONDS = 30
# Each costs a read.
_MAX_LOOKED_AT = 10
# A machine has room for a few jobs; more conflicts in a row are a fault.
_ATTEMPTS = 6


def make_ec2_calls(machine_id: str, deps: FleetDependencies) -> Machine | None:
    """Do the pending calls of EC2 for a machine, as far as possible now; may be called repeatedly.

    Returns the machine after that, None if it does not exist.

    Raises:
        TransientError: a temporary error; retry.
    """
    machine = deps.machines.load_machine(machine_id)
    if machine is None:
        deps.log.decided("ignored", machine_id=machine_id, reason="no such machine")
        return None
    machine = _end(machine, deps)
    return _request(machine, deps) if machine.state is MachineState.REQUESTED else machine


def _end(machine: Machine, deps: FleetDependencies) -> Machine:
    """Do what follows the end of a machine; none waits for another one that cannot be done now.

    ECS may not answer for hours, and EC2 tells for one hour only why an instance ended, and whether it is billed.
    """
    failed: dict[MachineEffect, PortError] = {}
    for effect in machine.pending:
        try:
            if isinstance(effect, TerminateInstance):
                if deps.fleet.terminate([effect.instance_id])[effect.instance_id] is Termination.REFUSED:
                    machine = _note_refused(machine, deps)
            elif isinstance(effect, DeregisterNode):
                deps.targets.ecs.deregister(effect.node)
            elif isinstance(effect, ChargeJobs):
                charge_jobs(machine, deps)
        except (TransientError, NotGrantedError) as error:
            failed[effect] = error
    done = TerminateInstance | DeregisterNode | ChargeJobs
    left = tuple(each for each in machine.pending if each in failed or not isinstance(each, done))
    machine = save_done(machine, left, deps)
    for failure in failed.values():
        raise failure
    return machine if all(isinstance(each, AskFleet) for each in machine.pending) else finish_effects(machine, deps)


def _note_refused(machine: Machine, deps: FleetDependencies) -> Machine:
    """Note that EC2 refuses to terminate an instance that lives, as one that lost its tags; return the machine."""
    now = deps.clock.now()
    decision = termination_refused(machine, now)
    deps.log.decided(
        "not terminated",
        machine_id=machine.machine_id,
        instance_id=machine.instance_id,
        is_alert=not decision.is_ignored or None,
        reason=decision.machine.reason,
    )
    if decision.is_ignored:
        return machine
    try:
        saved = deps.machines.save_machine(decision)
    except StaleWriteError:
        # It is refused again as long as the instance lives.
        return machine
    deps.metrics.record(*machine_metrics(machine, decision, now))
    return saved


def _request(machine: Machine, deps: FleetDependencies) -> Machine | None:
    """Ask EC2 for the machine, by CreateFleet or RunInstances.

    A request of unknown outcome is looked for by the tags of its instance, and sent again with its client token; after
    a while it is only looked for, until it is certain that there is no instance. While machines are off none is sent.
    """
    if machine.request.place:
        return _follow_first(machine, deps)
    now = deps.clock.now()
    if machine.asked_at is not None and (found := _find(machine, deps)):
        return _answer(machine, found, deps)
    is_on = deps.machine_settings.is_on
    if is_on and may_send(machine, now):
        return _give_way(machine, deps) or _send(machine, deps)
    if is_surely_absent(machine, now):
        expired = RequestExpired(expiry_reason(machine)) if is_on else RequestExpired(_OFF, Consequence.NEXT)
        return apply_machine_event(machine, expired, deps)
    deps.machine_queue.request_calls(machine.machine_id, _LOOK_SECONDS)
    return machine


def _give_way(machine: Machine, deps: FleetDependencies) -> Machine | None:
    """Give up a request whose job fits on an older machine; return the machine then, else None."""
    if not may_give_way(machine):
        return None
    loaded = (deps.machines.load_machine(each) for each in deps.machines.load_with_room(_MAX_LOOKED_AT))
    older = find_older(machine, (each for each in loaded if each is not None))
    if older is None:
        return None
    reason = f"its job fits on machine {older.machine_id}, which was requested before"
    try:
        return apply_machine_event(machine, RequestExpired(reason, Consequence.NEXT), deps)
    except StaleWriteError:
        # Another job joined meanwhile.
        return None


def _send(machine: Machine, deps: FleetDependencies) -> Machine | None:
    # Saved first, for all of a group: who gives a machine up meanwhile must know that an instance may exist.
    asked = _note_asked(machine, deps)
    if asked is None:
        return deps.machines.load_machine(machine.machine_id)
    for other in member_ids(machine.machine_id, machine.request.size)[1:]:
        advance_machine(other, lambda member: FleetAsked() if member.asked_at is None else None, deps)
    return _answer(asked, deps.fleet.request(asked.request), deps)


def _answer(machine: Machine, answer: FleetAnswer, deps: FleetDependencies) -> Machine | None:
    """Apply EC2's answer to the machine, and what it means for the others of its group to those before.

    As long as the first machine waits for its answer, whoever finds it asks again, or looks for the instances. So its
    own answer is saved last, unless that decides: a call that failed as a whole settles nothing where another function
    has sent the request meanwhile, as the first machine knows.
    """
    is_first_to_know = isinstance(answer, FleetRefused) and answer.is_raised
    if not is_first_to_know and settles(machine, answer):
        _tell_others(machine, answer, deps)
    event = FleetAnswered(answer_of_member(machine.request, answer))
    answered: Machine | None
    try:
        answered = apply_machine_event(machine, event, deps)
    except StaleWriteError:
        answered = advance_machine(machine.machine_id, lambda _machine: event, deps)
    is_settled = settles(machine, answer)
    if is_first_to_know:
        is_settled = answered is not None and answered.state is MachineState.GONE
        if is_settled:
            _tell_others(machine, answer, deps)
    if is_settled and machine.request.size > 1:
        _learn_of_shortage(machine, event.answer, deps)
    return answered


def _tell_others(machine: Machine, answer: FleetAnswer, deps: FleetDependencies) -> None:
    for other in member_ids(machine.machine_id, machine.request.size)[:0:-1]:
        _tell(other, answer, deps)


def _learn_of_shortage(machine: Machine, answer: FleetAnswer, deps: FleetDependencies) -> None:
    """Let the pools know that EC2 does not have as many machines at once; of one it says nothing."""
    if isinstance(answer, InstanceLaunched) and answer.is_part:
        answer = FleetRefused(answer.refusals)
    if isinstance(answer, FleetRefused):
        for failure in find_failures(machine.request, answer, deps.clock.now()):
            learn_pool(failure.offering, change_by_failure(failure), deps, machine.request.size)


def _tell(machine_id: str, answer: FleetAnswer, deps: FleetDependencies) -> Machine | None:
    """Apply EC2's answer to a machine of a group."""
    return advance_machine(machine_id, lambda each: FleetAnswered(answer_of_member(each.request, answer)), deps)


def _follow_first(machine: Machine, deps: FleetDependencies) -> Machine | None:
    """Give a machine of a group what the first one of it was answered; EC2 is never asked for another one.

    Whoever asked for the first one tells the others, and may have died before it did.
    """
    first = deps.machines.load_machine(first_id_of(machine.machine_id))
    if first is None or (first.state is MachineState.GONE and first.instance_id is None):
        return _follow_nothing(machine, first, deps)
    if first.asked_at is not None and machine.asked_at is None:
        machine = apply_machine_event(machine, FleetAsked(), deps)
    if first.state is MachineState.REQUESTED:
        # It has calls of its own, and an interval between them.
        return machine
    if (found := _find(first, deps)) is not None:
        return _tell(machine.machine_id, found, deps)
    if is_surely_absent(first, deps.clock.now()):
        # EC2 forgets what it has ended after an hour.
        return apply_machine_event(machine, RequestExpired(expiry_reason(machine), Consequence.NEXT), deps)
    deps.machine_queue.request_calls(machine.machine_id, _LOOK_SECONDS)
    return machine


def _follow_nothing(machine: Machine, first: Machine | None, deps: FleetDependencies) -> Machine | None:
    """Give up a machine of a group whose first one has no instance, unless there are some all the same.

    EC2 says at times that it launched nothing, and has; those that it shows later are found by the sweep.
    """
    is_asked = machine.asked_at is not None or (first is not None and first.asked_at is not None)
    seen = deps.fleet.find(first_id_of(machine.machine_id)) if is_asked else ()
    if not seen:
        refusal = (first.refusal if first is not None else None) or Consequence.NEXT
        reason = first.reason if first is not None else "the first machine of its group is gone"
        return apply_machine_event(machine, RequestExpired(reason, refusal), deps)
    is_certain = is_surely_absent(machine, deps.clock.now())
    found = answer_of_found(seen, machine.request.size, is_certain=is_certain)
    if found is None:
        deps.machine_queue.request_calls(machine.machine_id, _LOOK_SECONDS)
        return machine
    for other in member_ids(machine.machine_id, machine.request.size):
        _tell(other, found, deps)
    return deps.machines.load_machine(machine.machine_id)


def _note_asked(machine: Machine, deps: FleetDependencies) -> Machine | None:
    """Save that EC2 is being asked; None if another function asks, or nobody needs the machine any more.

    In a burst jobs claim a new machine while it is being requested; they do not delay it.

    Raises:
        StaleWriteError: others saved the machine several times in a row; retry.
    """
    for _ in range(_ATTEMPTS):
        try:
            return apply_machine_event(machine, FleetAsked(), deps)
        except StaleWriteError:
            saved = deps.machines.load_machine(machine.machine_id)
            if saved is None or saved.state is not MachineState.REQUESTED or saved.asked_at != machine.asked_at:
                return None
            if not may_send(saved, deps.clock.now()):
                return None
            machine = saved
    raise StaleWriteError(f"machine {machine.machine_id} was saved by others {_ATTEMPTS} times before EC2 was asked")


def _find(machine: Machine, deps: FleetDependencies) -> InstanceLaunched | None:
    """Return the instances with the tag of the machine as EC2's answer; None if there is none, or not all yet."""
    seen = deps.fleet.find(machine.machine_id)
    if machine.request.size > 1:
        return answer_of_found(seen, machine.request.size, is_certain=is_surely_absent(machine, deps.clock.now()))
    found = max(seen, key=_newest, default=None)
    if found is None or found.offering is None:
        return None
    return InstanceLaunched(found.instance_id, found.offering, at=found.launched_at)


def _newest(seen: InstanceObservation) -> tuple[bool, str]:
    return seen.state.is_alive, str(seen.launched_at or "")
