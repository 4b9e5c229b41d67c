"""Charge a machine that is gone to the jobs that it was there for."""

from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.lifecycle.events import MachineCharged
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.charges import charges_of, days_of, may_be_free
from relaunch.core.machines.machine import Machine
from relaunch.ports import FleetDependencies, PermanentError, StaleWriteError, TransientError
from relaunch.usecases.advance_job import JobLifecycle

# What EC2 describes may be behind for minutes.
_SAID_WITHIN = timedelta(minutes=10)
# Each conflict means that another write succeeded; this many in a row are a fault.
_ATTEMPTS = 6


def charge_jobs(machine: Machine, deps: FleetDependencies) -> None:
    """Charge a machine to its jobs, those that are over included; the same again changes nothing.

    Raises:
        TransientError: its spot prices, or a job, cannot be read or saved now.
    """
    prices = _spot_prices(machine, deps)
    paid = (machine, prices, deps.clock.now(), _end_reason(machine, deps))
    days = days_of(*paid)
    for job_id, charge in charges_of(*paid).items():
        _charge(job_id, MachineCharged(charge, days[job_id], machine.offering), machine, deps)


def _end_reason(machine: Machine, deps: FleetDependencies) -> str:
    """Return why EC2 says that the instance ended, where that decides what is billed; it says so for an hour.

    Raises:
        TransientError: it does not say so yet.
    """
    if machine.instance_id is None or machine.end_reason or not may_be_free(machine):
        return machine.end_reason
    try:
        seen = deps.fleet.describe([machine.instance_id])[machine.instance_id]
    except PermanentError as error:
        deps.log.decided("charged without a reason", machine_id=machine.machine_id, reason=str(error))
        return ""
    reason = seen.state_reason if seen is not None else ""
    if not reason and deps.clock.now() - (machine.state_since or machine.created_at) < _SAID_WITHIN:
        raise TransientError(f"EC2 does not say yet why {machine.instance_id} ended, which decides what is billed")
    return reason


def _spot_prices(machine: Machine, deps: FleetDependencies) -> list[tuple[datetime, float]]:
    """Return the spot prices since the launch; empty on demand, and if EC2 will not tell them."""
    if machine.request.purchase is not PurchaseOption.SPOT or machine.offering is None or machine.paid_since is None:
        return []
    try:
        return deps.fleet.spot_prices(machine.offering, machine.paid_since)
    except PermanentError as error:
        # The price at the request is known.
        deps.log.decided("charged by its first price", machine_id=machine.machine_id, reason=str(error))
        return []


def _charge(job_id: str, event: MachineCharged, machine: Machine, deps: FleetDependencies) -> None:
    """Save a charge with its job, and in the sums; what else is to be done for the job is left to those who may.

    Another function may have charged a newer version of the machine since this one was loaded. That charge stands: the
    machine is read after the job, which is saved only if nobody charged it in between.
    """
    for _ in range(_ATTEMPTS):
        job = deps.jobs.load_job(job_id)
        if job is None:
            deps.log.decided("ignored", job_id=job_id, machine_id=event.charge.machine_id, reason="no such job")
            return
        decision = decide(job, event, deps.clock.now(), deps.limits)
        if decision.job == job:
            return
        if job.charges.has_charged(machine.machine_id) and _is_outdated(machine, deps):
            deps.log.decided(
                "ignored", job_id=job_id, machine_id=machine.machine_id, reason="the machine was saved since"
            )
            return
        JobLifecycle(deps).log(job, event, decision)
        try:
            deps.jobs.save_job(decision)
        except StaleWriteError:
            continue
        return
    raise StaleWriteError(f"job {job_id} was saved by others {_ATTEMPTS} times while a machine was charged to it")


def _is_outdated(machine: Machine, deps: FleetDependencies) -> bool:
    """Return whether a machine was saved since it was loaded: whoever did charges it again."""
    latest = deps.machines.load_machine(machine.machine_id)
    return latest is not None and latest.version != machine.version
