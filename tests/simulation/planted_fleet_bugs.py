"""Bugs in how EC2 is asked for machines of our own, in what is made of its answers, and in how many are bought."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.ec2 import create_fleet, fleet, fleet_errors
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.lifecycle import launching, machine_waits, refusal_waits, stopping
from relaunch.core.machines import ending, living, requesting, table
from relaunch.core.machines.decision import MachineDecision, MachineTotals, micro_usd
from relaunch.core.machines.events import FleetRefused, InstanceState, MachineEvent, RefusalKind
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Consequence, Machine, MachineState
from relaunch.core.machines.refusals import Verdict
from relaunch.usecases import advance_machine as advancing
from relaunch.usecases import claim_machine as claiming
from relaunch.usecases import make_ec2_calls
from relaunch_local.simulation.aws import fleet as fleet_faults
from simulation.broken_parts import Planting, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import machine_action, patched, patched_in

_NOTHING = timedelta(0)


def _rows_without(action: str) -> Planting:
    def plant() -> AbstractContextManager[object]:
        kept = tuple(row for row in table.TABLE if row.action.__name__ != action)
        if kept == table.TABLE:
            raise LookupError(f"no row with {action}")
        return patched(table, TABLE=kept)

    return plant


@contextmanager
def _machines_for_ever() -> Iterator[None]:
    owners = (machine_waits, refusal_waits, claiming)
    with patched(machine_waits, _FAILED_MACHINES=10**9), patched_in(owners, next_machine_at=lambda _job, now: now):
        yield


def _refused_calls() -> AbstractContextManager[object]:
    return patched(fleet_faults, REFUSED_SHARE=0.5)


def _untrue_answers() -> AbstractContextManager[object]:
    return patched(fleet_faults, UNTRUE_SHARE=0.5)


def _pausing(original: Callable[..., Verdict]) -> Callable[..., Verdict]:
    return lambda request, refusals: replace(original(request, refusals), consequence=Consequence.PAUSE)


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


def _kinds(wrong: RefusalKind) -> Planting:
    original = fleet_errors.kind_of

    def kind_of(code: str, message: str = "") -> RefusalKind:
        kind = original(code, message)
        return RefusalKind.NO_CAPACITY if kind is wrong else kind

    return lambda: patched_in((create_fleet, fleet_errors), kind_of=kind_of)


def _asked_without_saving(original: Callable[..., Any]) -> Callable[..., Any]:
    def only_answers(saved: Machine, event: MachineEvent, deps: Any) -> Machine:
        machine: Machine = saved if type(event).__name__ == "FleetAsked" else original(saved, event, deps)
        return machine

    return only_answers


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
    def answer_of_error(error: Any, action: str = "CreateFleet") -> Any:
        answer = original(error, action)
        return replace(answer, is_raised=False) if isinstance(answer, FleetRefused) else answer

    return answer_of_error


FLEET_BUGS = (
    PlantedBug(
        "token-of-each-call",
        "CreateFleet gets another client token each time the request of one machine is sent",
        _token_of_each_call,
        "one machine has one instance",
        71,
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
        machine_action("instance_ending", _seen_as_terminated(ending.instance_ending)),
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
        "counters-given-back-early",
        "the counters of machines go down when a machine ends, not when it is gone",
        replaced(advancing, "decide", _given_back_when_ending),
        "the counters are what lives",
    ),
    PlantedBug(
        "unready-not-remembered",
        "what does not become ready is bought by every job that has not tried it",
        changed(living, remember_unready=lambda *_given: ()),
        "a cause costs few machines in a day",
        100,
    ),
    PlantedBug(
        "machines-for-ever",
        "a job gets another machine at once, however many never ran its task",
        _machines_for_ever,
        "a job has few machines in a day that run no task",
        30,
        first=80,
    ),
    PlantedBug(
        "refused-machines-of-others",
        "each job whose launches are refused buys probes of its own",
        lambda: patched_in((launching, refusal_waits, stopping), useless_for_all=lambda *_given: AdmitWaiting()),
        "a cause costs few machines in a day",
        41,
        first=276,
    ),
    PlantedBug(
        "no-capacity-is-a-refusal",
        "a pool without capacity is taken for a call that somebody has to allow",
        replaced(requesting, "judge", _pausing),
        "a job waits for somebody to grant something only after a refusal",
    ),
)
