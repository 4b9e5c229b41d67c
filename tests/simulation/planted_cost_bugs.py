"""Bugs in what jobs pay for machines of our own."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle import charging
from relaunch.core.lifecycle import table as jobs_table
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import MachineCharged
from relaunch.core.machines import charges, table
from relaunch.core.machines.charges import DayCost
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.machine import ChargeJobs, Claim, Machine
from relaunch.core.machines.starts import RELEASED
from relaunch.core.offerings.offering import OfferingKey
from relaunch.usecases import charge_jobs as use_case
from relaunch.usecases import claim_machine as claiming
from relaunch_local.simulation.aws import fleet
from simulation.broken_parts import Planting, changed, replaced
from simulation.planted_bugs import PlantedBug
from simulation.planting import action_changed, patched

EACH = "a job pays what its machines were billed"
SUMS = "the sums have what jobs cost"
TOGETHER = "jobs together pay what EC2 bills"


def _charged_as(change: Callable[[Machine], Machine]) -> Planting:
    """Charge a machine as if its record were another one."""

    def plant() -> AbstractContextManager[object]:
        original = use_case.charges_of

        def charged(machine: Machine, *given: Any) -> object:
            return original(change(machine), *given)

        return patched(use_case, charges_of=charged)

    return plant


def _without_boot(machine: Machine) -> Machine:
    return replace(machine, paid_since=machine.registered_at or machine.paid_since)


def _until_released(machine: Machine) -> Machine:
    released = [each.at for each in machine.timeline if each.event == RELEASED]
    return replace(machine, ended_at=released[-1] if released else machine.ended_at)


def _all_for_each(claims: Sequence[Claim], _capacity: object) -> dict[str, float]:
    return {each.job_id: 1.0 for each in claims}


def _half(claims: Sequence[Claim], _capacity: object) -> dict[str, float]:
    return {each.job_id: 0.5 / len(claims) for each in claims}


def _another_zone(original: Callable[..., Any]) -> Callable[..., Any]:
    def spot_prices(fleet: Ec2Fleet, offering: OfferingKey, since: datetime) -> Any:
        other = "us-east-1b" if offering.zone == "us-east-1a" else "us-east-1a"
        return original(fleet, replace(offering, zone=other), since)

    return spot_prices


def _overlap_unpaid() -> AbstractContextManager[object]:
    original = charging.add_charge

    def add(job: Job, event: MachineCharged, *given: Any) -> Decision:
        others = [each for each in job.charges.open if each.machine_id != event.charge.machine_id]
        if job.charges.open_of(event.charge.machine_id) is None or not others:
            return original(job, event, *given)
        return original(job, MachineCharged(replace(event.charge, usd=0.0)), *given)

    return action_changed("add_charge", add)


def _repeated() -> AbstractContextManager[object]:
    original = charging.add_charge

    def add(job: Job, event: MachineCharged, *given: Any) -> Decision:
        forgetful = replace(job, charges=replace(job.charges, latest=()))
        return original(forgetful, event, *given)

    return action_changed("add_charge", add)


def _only_ready(original: Callable[..., MachineDecision]) -> Callable[..., MachineDecision]:
    def complete(machine: Machine, *given: Any) -> MachineDecision:
        decision: MachineDecision = original(machine, *given)
        after = decision.machine
        left = tuple(each for each in after.pending if after.registered_at or not isinstance(each, ChargeJobs))
        return replace(decision, machine=replace(after, pending=left))

    return complete


def _never_ready_unpaid() -> AbstractContextManager[object]:
    completions = tuple(_only_ready(each) if each is charges.with_holdings else each for each in table.COMPLETIONS)
    return patched(table, COMPLETIONS=completions)


def _not_summed() -> AbstractContextManager[object]:
    original = charging.add_charge
    return action_changed("add_charge", lambda *given: replace(original(*given), costs=()))


def _on_the_last_day() -> AbstractContextManager[object]:
    original = use_case.days_of

    def days_of(machine: Machine, *given: Any) -> dict[str, tuple[DayCost, ...]]:
        found = original(machine, *given)
        return {job_id: tuple(replace(each, day=days[-1].day) for each in days) for job_id, days in found.items()}

    return patched(use_case, days_of=days_of)


def _elsewhere_not_summed() -> AbstractContextManager[object]:
    completions = tuple(each for each in jobs_table.COMPLETIONS if each is not charging.with_costs)
    return patched(jobs_table, COMPLETIONS=completions)


COST_BUGS = (
    PlantedBug(
        "minute-forgotten",
        "a machine that ran for seconds is paid by the second",
        changed(charges, _LEAST=timedelta(0)),
        EACH,
        30,
        world=changed(fleet, _MEDIAN_SECONDS=3.0),
    ),
    PlantedBug("boot-unpaid", "a machine is paid once it has registered", _charged_as(_without_boot), EACH),
    PlantedBug(
        "idle-end-unpaid", "a machine is paid until its last job leaves it", _charged_as(_until_released), EACH, 40
    ),
    PlantedBug(
        "shares-ignored", "each job on a machine pays all of it", changed(charges, shares_of=_all_for_each), EACH, 40
    ),
    PlantedBug("half-a-machine-paid", "half of each machine is nobody's", changed(charges, shares_of=_half), TOGETHER),
    PlantedBug(
        "gone-machine-kept",
        "a machine that is gone and charged is kept as one that is there",
        changed(Charges, has_charged=lambda *_given: False),
        "no machine that is gone still costs",
    ),
    PlantedBug("overlap-unpaid", "of two machines of a handover one is paid", _overlap_unpaid, EACH, 40),
    PlantedBug(
        "price-of-another-zone",
        "the spot price of another zone counts",
        replaced(Ec2Fleet, "spot_prices", _another_zone),
        EACH,
        20,
    ),
    PlantedBug(
        "free-hour-charged",
        "an hour that EC2 does not bill is charged",
        changed(charges, is_free=lambda *_given: False),
        EACH,
        20,
    ),
    PlantedBug("charged-again", "a charge that is repeated counts again", _repeated, EACH, 80),
    PlantedBug("never-ready-unpaid", "a machine that never came up is nobody's", _never_ready_unpaid, EACH, 20),
    PlantedBug(
        "volume-unpaid",
        "the volume and the address of a machine are nobody's",
        changed(claiming, usd_beside=lambda *_given: 0.0),
        EACH,
    ),
    PlantedBug(
        "shutting-down-charged",
        "a machine is paid until it is gone",
        _charged_as(partial(replace, ended_at=None)),
        EACH,
    ),
    PlantedBug("charge-not-summed", "what a machine cost is not in the sums", _not_summed, SUMS),
    PlantedBug(
        "elsewhere-not-summed", "what a task elsewhere cost is not in the sums", _elsewhere_not_summed, SUMS, 20
    ),
    PlantedBug(
        "day-of-the-end",
        "a machine is paid on the day of its end",
        _on_the_last_day,
        "a day has what its machines were billed",
        40,
    ),
)
