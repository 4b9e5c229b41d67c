"""Prepare the revision of a placement: pin its images, so that every attempt runs the same code, and derive it."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.derived_revision import (
    PreparedRevision,
    RevisionChanges,
    TaskDefinition,
    derivation_id,
    derive,
    derives_nothing,
    is_run_by_torchrun,
)
from relaunch.core.offerings.offering import Offering
from relaunch.core.records import dataclass
from relaunch.core.revisions.images import NOT_IN_ECR, FoundImage, ImagePin, describe_pin, plan_pins
from relaunch.core.revisions.revision import Revision, find_stop_timeout, main_container, runs_torchrun
from relaunch.core.selection.neuron_devices import (
    NeuronClaim,
    claim_all,
    claim_one,
    claims_all_devices,
    requires_neuron,
)
from relaunch.core.selection.requirements import Requirements, derive_requirements
from relaunch.ports import FoundRevision, ImageSource, LaunchDependencies, PermanentError, TransientError

# Jobs of a definition share derived revisions, and ECS allows 20 such calls per second: the answer that one container
# got serves all. RunTask rejects a revision that was deregistered in the meantime, which closes the placement.
_ACTIVE_FOR = timedelta(minutes=1)


def prepare_revision(job: Job, offering: Offering, deps: LaunchDependencies, instance_id: str = "") -> PreparedRevision:
    """Find or register the derived revision with the images by digest and the Neuron devices for this offering.

    `instance_id` is the machine of our own on which the task is placed; without one any of the offering may be.

    A job runs its own revision if it needs neither, its main container has a `stopTimeout`, and its command line does
    not start torchrun, as does a job of any target but ECS. Repeated calls find the registered revision, but may claim
    another device.

    Raises:
        PermanentError: ECS does not know the revision of the job, or rejects the derived one.
        TransientError: throttled (RegisterTaskDefinition: 20 at once, 1 per second) or unreachable.
    """
    if not job.definition.target.capabilities.takes_task_definition:
        return PreparedRevision()
    required = derive_requirements(job.definition, job.revision)
    claim = (
        _claim(required, offering, deps, instance_id)
        if requires_neuron(required) and offering.instance_type.neuron_devices
        else None
    )
    main = main_container(job.definition, job.revision) or ""
    command = job.definition.command
    has_gpu = job.definition.accelerator.gpu is not None
    changes = RevisionChanges(job.images, main, claim, has_gpu=has_gpu, command=command)
    devices = claim.devices if claim else ()
    takes_all_neuron = claim is not None and offering.is_managed
    stop_timeout = find_stop_timeout(job.definition, job.revision)
    is_own_enough = not job.images and claim is None and (stop_timeout is None or stop_timeout.is_own)
    # Without a command of the job that of the task definition counts, which has to be read.
    if is_own_enough and command and not runs_torchrun(command):
        return PreparedRevision()
    found = _find(job, changes, deps, is_for_torchrun_only=is_own_enough)
    return PreparedRevision(found, devices, takes_all_neuron)


def _find(job: Job, changes: RevisionChanges, deps: LaunchDependencies, *, is_for_torchrun_only: bool) -> str | None:
    """Return the ARN of the derived revision, None if the changes have no effect."""
    shared = derivation_id(job.revision.arn, changes)
    now = deps.clock.now()
    # A placement without a task may have been closed because the revision that is shared was deregistered.
    is_doubtful = job.attempt is not None and job.attempt.placement.task_id is None
    known = None if is_doubtful else deps.maintenance.load_revision(shared)
    if known is not None and now - known.found_at < _ACTIVE_FOR:
        return known.arn or None
    source = deps.registry.load_definition(job.revision.arn)
    is_needed = not is_for_torchrun_only or is_run_by_torchrun(source, changes)
    max_age = _ACTIVE_FOR if is_doubtful else timedelta(0)
    last = known.arn if known else ""
    arn = _find_or_register(job, source, changes, max_age, last, deps) if is_needed else None
    if not is_doubtful:
        deps.maintenance.save_revision(shared, FoundRevision(arn or "", now))
    return arn


def _find_or_register(
    job: Job, source: TaskDefinition, changes: RevisionChanges, max_age: timedelta, last: str, deps: LaunchDependencies
) -> str | None:
    """Return the ARN of the derived revision, None if the changes have no effect; `last` is the one found before."""
    if derives_nothing(source, changes):
        return None
    derived = derive(job.revision.arn, source, changes)
    return deps.registry.find_active(derived, max_age, last) or _register(derived, job, deps)


def _register(derived: TaskDefinition, job: Job, deps: LaunchDependencies) -> str:
    try:
        arn = deps.registry.register(derived)
    except TransientError:
        # ECS refuses two registrations of one family at once: the other one was for the same content.
        if (found := deps.registry.find_active(derived)) is None:
            raise
        return found
    deps.log.decided("registered", job_id=job.job_id, revision=arn, reason=f"derived from {job.revision.arn}")
    return arn


def _claim(required: Requirements, offering: Offering, deps: LaunchDependencies, instance_id: str) -> NeuronClaim:
    machine = offering.instance_type
    if offering.is_managed:
        # ECS assigns Neuron devices of Managed Instances itself (resource NeuronDevice), and only all of them.
        return NeuronClaim(())
    if claims_all_devices(required, machine):
        return claim_all(machine)
    turn = deps.maintenance.take_turn(machine.name)
    remaining = deps.targets.ecs.find_remaining_resources(machine.name, offering.capacity_provider or "", instance_id)
    return claim_one(machine, turn, required, remaining)


@dataclass(frozen=True, slots=True)
class PinnedImages:
    """The images of the containers.

    `images` maps containers to images by digest, `platforms` to the platforms of their images. `notes` describe this
    for the timeline, and why other images are not pinned; `unknown` describes the images in ECR whose platforms are
    not known. `problem` says why the job cannot run, empty if it can.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    platforms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image of the trigger of a job, which replaces the images of its repository in the revision.

    Without `found` it does not exist yet, and is pinned when it arrives.
    """

    repository: str
    tag: str
    found: FoundImage | None = None


def pin_images(revision: Revision, wanted: WantedImage | None, images: ImageSource) -> PinnedImages:
    """Look up every image in ECR.

    Raises:
        PermanentError: access to the registry of the account is denied, and an image is named by tag.
        TransientError: ECR is throttled or unreachable, and an image is named by tag.
    """
    pins, notes = plan_pins(revision, (wanted.repository, wanted.tag) if wanted else None)
    looked_up: list[tuple[ImagePin, FoundImage]] = []
    for pin in pins:
        known = wanted if pin.is_awaited else None
        if known is not None and known.found is None:
            continue
        found = known.found if known else _look_up(pin, images)
        if found is None:
            name = pin.image.at(pin.image.digest) if pin.image.digest else f"{pin.image.registry}/{pin.image}"
            return PinnedImages(problem=f"the image {name} of container {pin.container} {NOT_IN_ECR}")
        looked_up.append((pin, found))
    return PinnedImages(
        {pin.container: pin.image.at(it.digest) for pin, it in looked_up if it.digest and not pin.image.digest},
        {pin.container: it.platforms for pin, it in looked_up},
        (*(describe_pin(pin, it) for pin, it in looked_up), *notes),
        tuple(describe_pin(pin, it) for pin, it in looked_up if not it.platforms),
    )


def _look_up(pin: ImagePin, images: ImageSource) -> FoundImage | None:
    """Return the image, None if there is none; without a digest if that is unknown and not required."""
    account = None if pin.is_own else pin.image.account
    try:
        return images.find_image(pin.image.repository, pin.image.digest or pin.image.tag, account)
    except TransientError as error:
        if not pin.image.digest:
            raise
        return FoundImage("", unknown=str(error))
    except PermanentError as error:
        if pin.image.digest:
            return FoundImage("", unknown=str(error))
        if pin.is_own:
            raise
        # The execution role of the task may have access to an image that Relaunch may not describe.
        return FoundImage("", unknown=f"which may not be looked up in {account}")
