"""Prepare the derived revision of a placement."""

from datetime import timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.derived_revision import PreparedRevision, RevisionChanges, derive, derives_nothing
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.main_container import main_container
from relaunch.core.selection.neuron_devices import (
    NeuronClaim,
    claim_all,
    claim_one,
    claims_all_devices,
    requires_neuron,
)
from relaunch.core.selection.requirements import Requirements, derive_requirements
from relaunch.ports import LaunchDependencies

# Jobs of a definition share derived revisions, and ECS allows 20 such calls per second. RunTask rejects a revision that
# was deregistered in the meantime, which closes the placement.
_ACTIVE_FOR = timedelta(minutes=1)


def prepare_revision(job: Job, offering: Offering, deps: LaunchDependencies) -> PreparedRevision:
    """Find or register the derived revision with the images by digest and the Neuron devices for this offering.

    A job that needs neither runs its own revision. Repeated calls find the registered revision, but may claim another
    device.

    Raises:
        PermanentError: ECS does not know the revision of the job, or rejects the derived one.
        TransientError: throttled (RegisterTaskDefinition: 20 at once, 1 per second) or unreachable.
    """
    required = derive_requirements(job.definition, job.revision)
    claim = (
        _claim(required, offering, deps)
        if requires_neuron(required) and offering.instance_type.neuron_devices
        else None
    )
    changes = RevisionChanges(job.images, main_container(job.definition, job.revision) or "", claim)
    devices = claim.devices if claim else ()
    takes_all_neuron = claim is not None and offering.is_managed
    if not job.images and claim is None:
        return PreparedRevision()
    source = deps.registry.load_definition(job.revision.arn)
    if derives_nothing(source, changes):
        return PreparedRevision(None, devices, takes_all_neuron)
    derived = derive(job.revision.arn, source, changes)
    arn = deps.registry.find_active(derived.family, _ACTIVE_FOR)
    if arn is None:
        arn = deps.registry.register(derived)
        deps.log.decided("registered", job_id=job.job_id, revision=arn, reason=f"derived from {job.revision.arn}")
    return PreparedRevision(arn, devices, takes_all_neuron)


def _claim(required: Requirements, offering: Offering, deps: LaunchDependencies) -> NeuronClaim:
    machine = offering.instance_type
    if offering.is_managed:
        # ECS assigns Neuron devices of Managed Instances itself (resource NeuronDevice), and only all of them.
        return NeuronClaim(())
    if claims_all_devices(required, machine):
        return claim_all(machine)
    turn = deps.maintenance.take_turn(machine.name)
    return claim_one(
        machine, turn, required, deps.tasks.find_remaining_resources(machine.name, offering.capacity_provider or "")
    )
