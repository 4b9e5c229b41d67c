"""Make the revision that a placement try is to run, where the job's own will not do."""

from datetime import timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.derived_revision import PreparedRevision, RevisionChanges, derive, derives_nothing
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.main_container import main_container
from relaunch.core.selection.neuron_devices import NeuronClaim, claim_all, claim_one, is_whole_machine, wants_neuron
from relaunch.core.selection.requirements import Need, derive_need
from relaunch.ports import World

# Jobs of one definition share it, and ECS tells 20 times a second what is ACTIVE. A revision that was deregistered
# meanwhile is refused by RunTask, which ends the try.
_ACTIVE_FOR = timedelta(minutes=1)


def prepare_revision(job: Job, offering: Offering, world: World) -> PreparedRevision:
    """Find or register the derived revision with the job's images by digest and its Neuron devices on this offering.

    A job that needs neither runs its own revision. Called again, it finds what it registered; another device may have
    become free meanwhile.

    Raises:
        PermanentError: ECS does not know the job's revision any more, or refuses the derived one.
        TransientError: throttled (RegisterTaskDefinition: 20 at once, 1 per second) or unreachable.
    """
    need = derive_need(job.definition, job.revision)
    claim = _claim(need, offering, world) if wants_neuron(need) and offering.instance_type.neuron_devices else None
    changes = RevisionChanges(job.images, main_container(job.definition, job.revision) or "", claim)
    devices = claim.devices if claim else ()
    takes_all_neuron = claim is not None and offering.is_managed
    if not job.images and claim is None:
        return PreparedRevision()
    source = world.registry.load_definition(job.revision.arn)
    if derives_nothing(source, changes):
        return PreparedRevision(None, devices, takes_all_neuron)
    derived = derive(job.revision.arn, source, changes)
    arn = world.registry.find_active(derived.family, _ACTIVE_FOR)
    if arn is None:
        arn = world.registry.register(derived)
        world.log.decided("registered", job_id=job.job_id, revision=arn, reason=f"derived from {job.revision.arn}")
    return PreparedRevision(arn, devices, takes_all_neuron)


def _claim(need: Need, offering: Offering, world: World) -> NeuronClaim:
    machine = offering.instance_type
    if offering.is_managed:
        # ECS gives them out itself there (resource NeuronDevice), and only all of them.
        return NeuronClaim(())
    if is_whole_machine(need, machine):
        return claim_all(machine)
    turn = world.upkeep.take_turn(machine.name)
    return claim_one(machine, turn, need, world.tasks.find_room(machine.name, offering.capacity_provider or ""))
