"""How far a machine of our own is, for the owner of a job, with times."""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Attempt, PlacementState
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import WaitReason
from relaunch.core.lifecycle.wait_explanation import Explanation
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.living import REGISTERED
from relaunch.core.machines.machine import Machine, MachineState, describe_request
from relaunch_cli.job_machines import JobMachines
from relaunch_cli.views.formatting import format_count, format_duration, format_time


def with_progress(
    explanation: Explanation, job: Job, machines: JobMachines, now: datetime, limits: MachineLimits
) -> Explanation:
    """Return the explanation of a job with how far its machines are; what came to nothing is last."""
    claimed = [describe_progress(machine, job, now, limits) for machine in machines.claimed]
    described = (*claimed, *(describe_failure(machine, now) for machine in machines.failed))
    if claimed and job.waiting is not None and job.waiting.reason is WaitReason.MACHINE:
        # What the job has noted of it is older.
        explanation = replace(explanation, waiting_for="its machine")
    return replace(explanation, machines=described)


def describe_progress(machine: Machine, job: Job, now: datetime, limits: MachineLimits) -> str:
    """Return how far the machine of a job is: since when, what is missing, and how long it may still take."""
    match machine.state:
        case MachineState.REQUESTED:
            return _requested(machine, now)
        case MachineState.STARTING:
            return f"{_instance(machine)} {_starting(machine, now, limits)}"
        case MachineState.READY:
            return f"{_instance(machine)} {_use(machine, job, now)}{_warning(machine, now)}"
        case _:
            return describe_failure(machine, now)


def describe_now(machine: Machine, now: datetime, limits: MachineLimits) -> str:
    """Return what a machine does, where its instance and the jobs that claim it are said beside."""
    match machine.state:
        case MachineState.REQUESTED:
            return _requested(machine, now)
        case MachineState.STARTING:
            return _starting(machine, now, limits)
        case MachineState.READY:
            return f"{_claims(machine, now)}{_warning(machine, now)}"
        case _:
            reason = f": {machine.reason}" if machine.reason else ""
            return f"ending for {format_duration(now - (machine.state_since or machine.created_at))}{reason}"


def describe_failure(machine: Machine, now: datetime) -> str:
    """Return why a machine came to nothing, or how it ended."""
    since = machine.state_since or machine.created_at
    reason = f": {machine.reason}" if machine.reason else ""
    if machine.instance_id is None:
        verb = "EC2 refused" if machine.refusal is not None else "gave up the request for"
        return f"{verb} {describe_request(machine)} {_ago(since, now)}{reason}"
    if machine.state is MachineState.ENDING:
        return f"{_instance(machine)} has been ending for {format_duration(now - since)}{reason}"
    return f"{_instance(machine)} was gone {_ago(since, now)}{reason}"


def _requested(machine: Machine, now: datetime) -> str:
    what = describe_request(machine)
    if machine.asked_at is None:
        asked = f"EC2 is about to be asked for {what}, chosen {_ago(machine.created_at, now)}"
    else:
        asked = f"asked EC2 for {what} {_ago(machine.asked_at, now)}"
    if machine.uncertain_since is not None:
        unknown_for = format_duration(now - machine.uncertain_since)
        asked += f"; for {unknown_for} it has not been known whether an instance was launched"
    return f"{asked}: {machine.reason}" if machine.reason else asked


def _starting(machine: Machine, now: datetime, limits: MachineLimits) -> str:
    launched_at = machine.launched_at or machine.created_at
    registered_at = next((each.at for each in reversed(machine.timeline) if each.event == REGISTERED), None)
    if machine.node is None or registered_at is None:
        found = f"launched {_ago(launched_at, now)}, not registered yet"
    else:
        found = f"{machine.reason or 'registered'} {_ago(registered_at, now)}"
    name = machine.offering.instance_type if machine.offering is not None else ""
    deadline = launched_at + limits.registration_deadline_of(name)
    return f"{found}; another one is requested if it is not ready by {format_time(deadline, now)} UTC"


def _claims(machine: Machine, now: datetime) -> str:
    if not machine.claims:
        return "kept for the next job"
    since = min(claim.since for claim in machine.claims)
    return f"claimed by {format_count(len(machine.claims), 'job')} for {format_duration(now - since)}"


def _warning(machine: Machine, now: datetime) -> str:
    return f"; {machine.reason} (announced {_ago(machine.warned_at, now)})" if machine.warned_at else ""


def _use(machine: Machine, job: Job, now: datetime) -> str:
    attempt = job.attempt
    if attempt is not None and attempt.placement.machine_id == machine.machine_id and attempt.stop is None:
        if attempt.started_at is not None:
            verb = "has run its task for" if attempt.program_ended_at is None else "has ended its task, which ran for"
            return f"{verb} {format_duration(job.run_time(now) - timedelta(seconds=job.totals.run_seconds))}"
        return f"is ready; {_task(attempt, now)}"
    ready = f"has been ready for {format_duration(now - (machine.registered_at or now))}"
    if job.attempt is not None and job.attempt.intent is not None:
        return f"{ready}, for the next attempt"
    return f"{ready}; its task is going to be placed"


def _task(attempt: Attempt, now: datetime) -> str:
    placement = attempt.placement
    if placement.state is PlacementState.PENDING:
        return f"its task is being placed, chosen {_ago(placement.requested_at, now)}"
    # ECS tells no more than PENDING while the agent pulls the image ("Amazon ECS task lifecycle").
    doing = "is pulling its image" if attempt.task_status == "PENDING" else "is starting"
    status = f" (the cluster says {attempt.task_status})" if attempt.task_status else ""
    return f"its task {doing}{status}, placed {_ago(placement.placed_at or placement.requested_at, now)}"


def _instance(machine: Machine) -> str:
    return f"{machine.instance_id} ({machine.offering})"


def _ago(at: datetime, now: datetime) -> str:
    return f"{format_duration(max(now - at, timedelta(0)))} ago"
