"""Ask EC2 of the instance of a stopped task: what ended its program may come late by the events, or never."""

from dataclasses import replace

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import HostObservation
from relaunch.core.lifecycle.verdicts import host_of
from relaunch.ports import JobDependencies, PortError


def look_at_host(job: Job, deps: JobDependencies) -> HostObservation | None:
    """Return what is known of the instance of the job's task; None if it is not known which that is.

    A warning that was handled is stored with the instance, also while no job was linked to it. What EC2 told of the end
    of a machine of our own is stored with the machine: EC2 itself forgets an instance after an hour, and may not answer
    now.
    """
    instance_id, placement = host_of(job), job.current_attempt.placement
    if not instance_id:
        return None
    is_spot = placement.offering.purchase is PurchaseOption.SPOT
    try:
        host = deps.hosts.look(instance_id, is_spot=is_spot)
    except PortError as error:
        deps.log.decided("host not looked at", job_id=job.job_id, instance_id=instance_id, reason=str(error))
        host = HostObservation(is_answered=False)
    try:
        warned_at = deps.jobs.load_warning(instance_id)
        machine = deps.machines.load_machine(placement.machine_id) if placement.machine_id else None
    except PortError as error:
        deps.log.decided("host not known", job_id=job.job_id, instance_id=instance_id, reason=str(error))
        return replace(host, is_answered=False)
    ended_at = machine.ended_at if machine is not None and machine.instance_id == instance_id else None
    return replace(
        host,
        has_ended=host.has_ended or ended_at is not None,
        ended_at=min((each for each in (host.ended_at, ended_at) if each is not None), default=None),
        warned_at=min((each for each in (host.warned_at, warned_at) if each is not None), default=None),
    )
