"""What a job pays for machines of our own: while it has one by the price it had then, and in the end what it cost."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.charges import KEPT_CHARGES, Charges
from relaunch.core.jobs.cost import CostEntry, cost_key, task_costs
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import CostBasis, OpenCharge
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.events import (
    CheckpointsUnreadable,
    LaunchImpossible,
    LaunchNotGranted,
    MachineAwaited,
    MachineCharged,
    MachineLeft,
    MachineLost,
    OfferingChosen,
    SlotDenied,
)
from relaunch.core.machines.charges import Charge, DayCost, charges_of, rate_of
from relaunch.core.machines.machine import Machine, MachineState

# Less than a cent, or than what clocks of functions that differ by seconds make of it, is not worth a write of its own.
_LEAST_USD = 0.01
_LEAST_SHARE = 0.02


def add_charge(job: Job, event: MachineCharged, _now: datetime, _limits: StackLimits) -> Decision:
    """Add what a machine cost in the end, in the place of what it had charged before: the same changes nothing."""
    charge = event.charge
    known = job.charges
    earlier = next((each for each in known.latest if each.machine_id == charge.machine_id), None)
    before = earlier or Charge(charge.machine_id, 0.0)
    others = tuple(each for each in known.latest if each.machine_id != charge.machine_id)
    charges = replace(
        known,
        machines_usd=known.machines_usd + charge.usd - before.usd,
        on_demand_usd=known.on_demand_usd + charge.on_demand_usd - before.on_demand_usd,
        basis=known.basis.plus(_basis(charge)),
        latest=(*others, charge)[-KEPT_CHARGES - 2 * (job.definition.nodes - 1) :],
        open=tuple(_settled(each) if each.machine_id == charge.machine_id else each for each in known.open),
    )
    days = event.days if earlier is None else _besides(event.days, charge, earlier)
    costs = (CostEntry(cost_key(job, event.offering), days),) if days else ()
    return Decision(replace(job, charges=charges), costs=costs)


def leave_machine(job: Job, _event: MachineLeft, _now: datetime, _limits: StackLimits) -> Decision:
    """Correct what a machine has cost that the job left: `with_open_charges` notes it, `with_leases` reserves it."""
    return Decision(job)


def find_left(job: Job, machine: Machine, now: datetime) -> MachineLeft | None:
    """Return that a machine which the job left has cost it something else than it knows; None if nobody reserves it.

    It knows nothing of one whose launch nobody had reported to it, and of a share that grew as others left the machine
    only since its lease was renewed. The charge is exact, and comes once the machine is gone.
    """
    charges = job.charges
    if not job.reserved.usd or rate_of(machine, job.job_id) is None or charges.has_charged(machine.machine_id):
        return None
    usd = _cost_by(machine, job.job_id, now).usd
    known = charges.open_of(machine.machine_id)
    known_usd = 0.0 if known is None else known.usd + known.hours(now) * known.usd_per_hour
    return MachineLeft(machine) if abs(usd - known_usd) > max(_LEAST_USD, _LEAST_SHARE * usd) else None


def _cost_by(machine: Machine, job_id: str, now: datetime) -> Charge:
    return charges_of(machine, (), now).get(job_id, Charge(machine.machine_id, 0.0))


def _besides(days: tuple[DayCost, ...], charge: Charge, earlier: Charge) -> tuple[DayCost, ...]:
    """Return what a machine costs besides what it has been charged before, on its last day: it lived on."""
    hours = charge.hours - earlier.hours
    usd = charge.usd - earlier.usd
    on_demand_usd = charge.on_demand_usd - earlier.on_demand_usd
    return tuple(
        DayCost(each.day, usd, on_demand_usd, hours, hours if charge.is_unknown else 0.0) for each in days[-1:]
    )


def _settled(charge: OpenCharge) -> OpenCharge:
    """Return the charge of a machine that is gone: it costs no more, and says what training there was paid for."""
    return replace(charge, usd=0.0, on_demand_usd=0.0, usd_per_hour=0.0, on_demand_usd_per_hour=0.0)


def _basis(charge: Charge) -> CostBasis:
    if charge.is_unknown:
        return CostBasis.UNKNOWN
    return CostBasis.LIMIT if charge.is_limit else CostBasis.PRICE


def with_open_charges(_before: Job, event: object, decision: Decision, now: datetime) -> Decision:
    """Return the decision, whose job knows what those machines cost until now that it has, and those that it left."""
    job = decision.job
    charges = job.charges if decision.is_ignored else with_machines(job, _machines_of(event), now).charges
    claimed = claimed_machines(job)
    left = tuple(
        each if each.machine_id in claimed or each.until is not None else replace(each, until=now)
        for each in charges.open
        if each.machine_id in claimed or not charges.has_charged(each.machine_id)
    )
    charges = replace(charges, open=left) if left != charges.open else charges
    return decision if charges is job.charges else replace(decision, job=replace(job, charges=charges))


def with_machines(job: Job, machines: Iterable[Machine], now: datetime) -> Job:
    """Return the job, which knows what machines that it has, or had until now, cost until now by its share of each."""
    charges = job.charges
    for machine in machines:
        charges = _opened(job, charges, machine, now)
    return job if charges is job.charges else replace(job, charges=charges)


def with_costs(before: Job, _event: object, decision: Decision, _now: datetime) -> Decision:
    """Return the decision with what a task has cost that ended, if no machine is charged to the job for it."""
    attempt = decision.job.attempt
    ran = timedelta(seconds=decision.job.totals.run_seconds - before.totals.run_seconds)
    if attempt is None or attempt.started_at is None or not ran or attempt.stop is None:
        return decision
    if before.charges.open_of(attempt.placement.machine_id) is not None:
        return decision
    return replace(decision, costs=(*decision.costs, task_costs(before, attempt, ran)))


def _machines_of(event: object) -> tuple[Machine, ...]:
    """Return the machines that an event shows, which the job has, or had until then."""
    if isinstance(event, OfferingChosen):
        return (event.machine, *event.followers) if event.machine is not None else ()
    if isinstance(event, MachineLeft):
        return (event.machine,)
    given_up = LaunchNotGranted | LaunchImpossible | CheckpointsUnreadable | SlotDenied
    return event.machines if isinstance(event, MachineAwaited | MachineLost | given_up) else ()


def _opened(job: Job, charges: Charges, machine: Machine, now: datetime) -> Charges:
    """Return the charges with that of a machine that the job has, or had, at its price and the share of the job."""
    rate = rate_of(machine, job.job_id)
    is_over = machine.state is MachineState.GONE and charges.has_charged(machine.machine_id)
    if rate is None or is_over:
        return charges
    so_far = _cost_by(machine, job.job_id, now)
    before = charges.open_of(machine.machine_id)
    if before is not None and before.until is not None and machine.machine_id not in claimed_machines(job):
        opened = replace(before, at=now, usd=so_far.usd, on_demand_usd=so_far.on_demand_usd)
        return replace(charges, open=tuple(opened if each is before else each for each in charges.open))
    opened = OpenCharge(
        machine.machine_id,
        now,
        so_far.usd,
        so_far.on_demand_usd,
        rate.usd_per_hour,
        rate.on_demand_usd_per_hour,
        rate.usage_usd_per_hour,
    )
    others = tuple(each for each in charges.open if each.machine_id != machine.machine_id)
    return replace(charges, open=(*others, opened))
