"""The launch request of a placement try, derived from the job only."""

from collections.abc import Mapping

from relaunch.core.jobs.job import Job
from relaunch.core.launches.gpu_override import choose_override
from relaunch.core.launches.launch import LaunchRequest, client_token
from relaunch.core.launches.placement_constraints import instance_type_is, is_none_of
from relaunch.core.revisions.main_container import main_container


def plan_launch(job: Job) -> LaunchRequest:
    """Return the launch request of the current placement try; it is identical for identical jobs.

    The placement constraint restricts the task to the selected instance type, and to other instances than those on
    which it did not start.
    """
    attempt, definition = job.current_attempt, job.definition
    placement = attempt.placement
    return LaunchRequest(
        revision_arn=placement.revision_arn or job.revision.arn,
        capacity_provider=placement.capacity_provider,
        placement_constraints=(is_none_of(instance_type_is(placement.offering.instance_type), job.avoided_instances),),
        container=main_container(definition, job.revision) or "",
        command=definition.command,
        environment=training_environment(job),
        started_by=job.started_by,
        client_token=client_token(job.job_id, attempt.number, placement.number),
        gpu=choose_override(definition.accelerator.gpu, placement.gpu_partition_size),
        network_mode=job.revision.network_mode,
        takes_all_neuron=placement.takes_all_neuron,
        own_constraint_count=job.revision.placement_constraint_count,
    )


def training_environment(job: Job) -> Mapping[str, str]:
    """Return the environment of the main container; the definition cannot override variables set by Relaunch."""
    attempt = job.current_attempt
    environment = {
        **job.definition.environment,
        **{f"RELAUNCH_INPUT_{name.upper().replace('-', '_')}": value for name, value in job.inputs.items()},
        **job.trigger.environment,
        "RELAUNCH_JOB_ID": job.job_id,
        "RELAUNCH_ATTEMPT": str(attempt.number),
    }
    if job.definition.checkpoint_uri is not None:
        environment["RELAUNCH_CHECKPOINT_URI"] = f"{job_checkpoint_uri(job)}attempt-{attempt.number}/"
    if attempt.placement.resume_uri is not None:
        environment["RELAUNCH_RESUME_URI"] = attempt.placement.resume_uri
    return environment


def job_checkpoint_uri(job: Job) -> str:
    """Return the checkpoint prefix of all attempts of a job, which ends with a slash."""
    return f"{job.definition.checkpoint_uri}{job.job_id}/"
