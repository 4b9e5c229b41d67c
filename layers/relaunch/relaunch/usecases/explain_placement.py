"""Explain failed placements of a GPU share by the remaining memory of the GPUs."""

from dataclasses import replace

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import LaunchOutcome, PlacementFailed, Shortage
from relaunch.core.selection.gpu_devices import explain_missing_share
from relaunch.core.selection.requirements import required_share
from relaunch.ports import JobDependencies, PortError


def explain_placement(outcome: LaunchOutcome, job: Job, deps: JobDependencies) -> LaunchOutcome:
    """Return the outcome, with the remaining GPU memory as detail if there was no room for a GPU share.

    Such a failure takes two read calls; if they fail, the outcome is unchanged.
    """
    if not isinstance(outcome, PlacementFailed) or Shortage.GPU not in outcome.shortages:
        return outcome
    share = required_share(job.definition, job.revision)
    placement = job.current_attempt.placement
    if share is None or placement.gpu_partition_size < 1:
        return outcome
    try:
        target = deps.targets.named(job.definition.target)
        devices = target.find_gpus(placement.offering.instance_type, placement.capacity_provider)
    except PortError as error:
        deps.log.decided("gpus-unknown", job_id=job.job_id, reason=str(error))
        return outcome
    return replace(outcome, detail=explain_missing_share(share, devices) or "a GPU has room by now")
