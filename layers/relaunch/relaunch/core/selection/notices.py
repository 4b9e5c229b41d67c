"""Notices about a job definition and the offering selected for it, which reject nothing."""

from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchaseOption, shared_memory_notice
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.durations import write_duration, write_minutes
from relaunch.core.offerings.instance_types import ami_rejection
from relaunch.core.offerings.managed_instances import managed_fee_share
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.reservations import ReservationType
from relaunch.core.revisions.revision import (
    SHUTDOWN_TIMEOUT,
    USUAL_SHUTDOWN_SECONDS,
    Revision,
    find_main,
    find_stop_timeout,
    runs_torchrun,
    shutdown_seconds,
)
from relaunch.core.selection.gpu_share import share_notices
from relaunch.core.selection.instance_type_filters import find_unjudged
from relaunch.core.selection.neuron_devices import required_devices, requires_neuron
from relaunch.core.selection.requirements import Requirements, derive_requirements
from relaunch.core.selection.selection import Selection
from relaunch.core.selection.speeds import SpeedBasis, used_accelerators

# ECS replaces instances of ECS Managed Instances from the 14th day on ("Instance draining", Developer Guide).
_MANAGED_LIFETIME = timedelta(days=14)

# "Supported number of Neuron Cores is 1, 2, 8, 16 or a multiple of 32", says Neuron's runtime on trn1.32xlarge
# (huggingface/optimum-neuron issue 619).
_CORES_TOGETHER = frozenset({1, 2, 8, 16})
_ALL_CORES = 32

# With this many expected interruptions, at least one is as likely as none: 1 - 1/e^0.7 = 0.5.
_LIKELY_INTERRUPTIONS = 0.7


def find_notices(definition: JobDefinition, revision: Revision | None, selection: Selection | None) -> tuple[str, ...]:
    """Return notices about the definition and, if any offering was kept, about the best one."""
    notices = [
        *share_notices(definition),
        *_unknown_work(definition, selection),
        *_unmeasured(definition, revision, selection),
        *(revision.warnings if revision else ()),
        *_torchrun(definition, revision),
        *_shared_memory(definition, revision),
        *_unoffered(definition, selection),
    ]
    chosen = selection.chosen if selection else None
    if selection is not None and chosen is not None:
        required = derive_requirements(definition, revision)
        found = (
            _unused_accelerator(required, revision, chosen),
            _spare_gpus(required, chosen),
            _hidden_cores(required, chosen),
            _spare_devices(required, chosen),
            _unjudged_constraints(required, chosen),
            _unknown_speed(definition, selection, chosen),
            _unsaid_precision(selection),
            _lost_work(selection, chosen),
            _too_long(definition, selection, chosen),
            _unbounded_loss(definition, selection),
            _unknown_disk(definition, chosen),
            _no_own_machine(selection),
            _bottlerocket(chosen),
            _unknown_price(chosen),
            _paid_elsewhere(chosen),
            _managed_fee(chosen),
            _managed_lifetime(definition, chosen),
        )
        notices += [notice for notice in found if notice]
    return tuple(notices)


def _unknown_work(definition: JobDefinition, selection: Selection | None) -> tuple[str, ...]:
    """Say that a limit means nothing until a checkpoint has measured the speed, of this job or of others."""
    if selection is not None and selection.work is not None:
        return ()
    has_limit = definition.deadline is not None or definition.patience is not None
    if not has_limit or definition.estimated_duration is not None or definition.total_steps is None:
        return ()
    limit = "deadline" if definition.deadline is not None else "patience"
    return (
        f"`{limit}` counts from the first checkpoint on, which says how long `total_steps` take: until then a job is "
        "launched as without it; give an `estimated_duration` too",
    )


def refuse_unmeasured(definition: JobDefinition, revision: Revision | None, selection: Selection | None) -> str:
    """Return why nobody can promise a deadline: it is not known on what the duration was measured; empty if one may."""
    where = _equally_fast(definition, revision, selection)
    if definition.deadline is None or not where:
        return ""
    return f"`estimated_duration` has to say on what it was measured, for a `deadline` depends on it: {where}"


def _unmeasured(definition: JobDefinition, revision: Revision | None, selection: Selection | None) -> tuple[str, ...]:
    where = _equally_fast(definition, revision, selection)
    return (f"`estimated_duration` is taken to be the same on different accelerators: {where}",) if where else ()


_MOST_NAMED = 6


def _equally_fast(definition: JobDefinition, revision: Revision | None, selection: Selection | None) -> str:
    """Return the accelerators on which one duration may mean different work, and what to write; empty if they are one.

    What is rejected for a time counts, too.
    """
    duration = definition.estimated_duration
    if selection is None or duration is None or definition.estimated_on is not None:
        return ""
    required = derive_requirements(definition, revision)
    awaited = (each.offering for each in selection.rejected if not each.rejection.is_permanent)
    used = dict.fromkeys(used_accelerators(required, each.instance_type) for each in (*selection.kept, *awaited))
    if len(used) < 2:
        return ""
    names = [str(each) for each in used]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    listed = ", ".join([*names[:_MOST_NAMED], *more])
    hours = f"{duration.total_seconds() / 3600:.4g}"
    return f"{listed}; write {{on: {next(iter(used)).model}, hours: {hours}}}, for example, or allow one of them only"


def _unknown_speed(definition: JobDefinition, selection: Selection, chosen: Offering) -> str:
    machine = chosen.instance_type
    if selection.work is None or selection.work.speed_of(machine) is not None:
        return ""
    return (
        f"how fast a job is on {machine.accelerator_model} is not known, as nothing is published that compares it with "
        f"{definition.estimated_on}: neither the time nor the cost to finish is"
    )


def _unsaid_precision(selection: Selection) -> str:
    """Say that a speed depends on the precision, where what is measured does not tell that of another model."""
    if selection.work is None:
        return ""
    machines = {each.instance_type.accelerator_model: each.instance_type for each in selection.kept}
    slower = sorted(machines.keys() & selection.work.slower_in_bf16)
    speeds = [selection.work.speed_of(each) for each in machines.values()]
    is_bounded = any(each is not None and each.basis is SpeedBasis.PEAKS for each in speeds)
    if not slower or len(machines) == len(slower) or not is_bounded:
        return ""
    return (
        f"whether it computes in FP16 or in BF16 is not said, and {' and '.join(slower)} are slower in BF16: give "
        "`precision`, for example `precision: bf16`"
    )


def _torchrun(definition: JobDefinition, revision: Revision | None) -> tuple[str, ...]:
    """Say how long the workers of torchrun have to save, which depends on the version of torch in the image."""
    if not runs_torchrun(definition.command):
        return ()
    if revision is None or (stop_timeout := find_stop_timeout(definition, revision)) is None:
        return (
            f"torchrun kills its workers {USUAL_SHUTDOWN_SECONDS} s after SIGTERM: set {SHUTDOWN_TIMEOUT}, which torch "
            "reads from 2.12 on, to a little less than the time until SIGKILL",
        )
    seconds = shutdown_seconds(stop_timeout.seconds)
    if seconds <= USUAL_SHUTDOWN_SECONDS:
        return ()
    return (
        f"torchrun kills its workers {seconds} s after SIGTERM ({SHUTDOWN_TIMEOUT}, set unless the job or its task "
        f"definition has it), and torch before 2.12 ignores that: with it they have {USUAL_SHUTDOWN_SECONDS} s to save",
    )


def _shared_memory(definition: JobDefinition, revision: Revision | None) -> tuple[str, ...]:
    """Say what NCCL fails for, as far as the main container is known: that of a pod has a notice of its own."""
    main = find_main(definition, revision) if revision is not None else None
    if main is None or main.has_shared_memory:
        return ()
    gpu = definition.accelerator.gpu
    return shared_memory_notice(
        main.gpu_count if gpu is None else gpu.count,
        f"set `linuxParameters.sharedMemorySize` of the container {main.name} in its task definition, in MiB, to 1024 "
        "or more",
    )


def _unoffered(definition: JobDefinition, selection: Selection | None) -> tuple[str, ...]:
    """Say which of the instance types that the definition names have no offering at all."""
    if selection is None:
        return ()
    offered = {each.instance_type.name for each in (*selection.kept, *(each.offering for each in selection.rejected))}
    names = dict.fromkeys(each.lower() for each in definition.accelerator.instance_types)
    absent = " and ".join(each for each in names if each not in offered)
    return (f"offered nowhere here, so that no job gets it: {absent} (relaunch plan --explain TYPE)",) if absent else ()


def _unused_accelerator(required: Requirements, revision: Revision | None, chosen: Offering) -> str:
    """On ECS a container can only use the GPUs that it requires; others of the instance are hidden from it."""
    is_required = (
        required.is_gpu or required.is_neuron or required.gpu_count or required.share or required.neuron_devices
    )
    if is_required or revision is None or not revision.containers:
        return ""
    machine = chosen.instance_type
    kind = "GPU" if machine.logical_gpu_count else "Neuron device"
    return (
        f"{machine.name} has a {kind} that no container asks for, so that none can use it: "
        "add `gpu` or `neuron` to `accelerator`, or choose a machine without"
    )


def _spare_gpus(required: Requirements, chosen: Offering) -> str:
    """The job pays for all GPUs of its machine; a larger model is sold by the machine of eight, for example."""
    machine = chosen.instance_type
    spare = machine.logical_gpu_count - required.gpu_count
    if required.share is not None or not required.gpu_count or spare <= 0:
        return ""
    return (
        f"{spare} of the {machine.logical_gpu_count} GPUs of {machine.name} are left to other jobs, or idle: ask for "
        f"more in `gpu.count`, or for another model"
    )


def _hidden_cores(required: Requirements, chosen: Offering) -> str:
    machine = chosen.instance_type
    seen = machine.neuron_devices * machine.logical_cores_per_device
    if required.neuron_cores <= seen:
        return ""
    return (
        f"programs see {seen} NeuronCores of {machine.name}, two of the chip as one, and the job asks for "
        f"{required.neuron_cores}: set NEURON_LOGICAL_NC_CONFIG=1 in the container, or ask for `devices`"
    )


def _spare_devices(required: Requirements, chosen: Offering) -> str:
    """Say that a job gets more Neuron devices than it asks for, and which numbers of cores it can use together."""
    machine = chosen.instance_type
    wanted = required_devices(required, machine)
    if not requires_neuron(required) or not 1 < wanted < machine.neuron_devices:
        return ""
    cores = required.neuron_cores or wanted * machine.logical_cores_per_device
    is_together = machine.accelerator_model != "Trainium" or cores in _CORES_TOGETHER or not cores % _ALL_CORES
    together = f"; collectives of Trainium take 1, 2, 8, 16 or a multiple of 32 cores, and not {cores}"
    return (
        f"a job of more than one Neuron device gets all {machine.neuron_devices} of {machine.name}, and pays for them"
        f"{'' if is_together else together}"
    )


def _unjudged_constraints(required: Requirements, chosen: Offering) -> str:
    unjudged = find_unjudged(required.placement_constraints, chosen)
    if not unjudged:
        return ""
    return (
        f"whether an instance of {chosen.capacity_provider} satisfies {' and '.join(unjudged)}, as the task definition "
        "requires, is not known before there is one: ECS places no task on one that does not"
    )


def _lost_work(selection: Selection, chosen: Offering) -> str:
    work = selection.work
    if work is None or work.has_checkpoint or chosen.purchase is not PurchaseOption.SPOT:
        return ""
    speed = work.speed_of(chosen.instance_type)
    duration = work.at_speed(speed.slow if speed else 1.0).duration
    expected = chosen.interruption_rate_of(work.nodes) * (duration.total_seconds() / 3600)
    if expected < _LIKELY_INTERRUPTIONS:
        return ""
    return (
        f"{chosen.key} is expected to be interrupted {expected:.1f} times in the time the work takes, "
        "which starts over each time: give a `checkpoint`"
    )


def _too_long(definition: JobDefinition, selection: Selection, chosen: Offering) -> str:
    """Say that `max_runtime` may end the work: what ends in time is chosen before, so that nothing kept does."""
    work = selection.work
    speed = None if work is None else work.speed_of(chosen.instance_type)
    if work is None or speed is None or work.ends_in_time(chosen.instance_type):
        return ""
    needed = work.at_speed(speed.middle).duration_left
    return (
        f"`max_runtime` may end this job before it is done, after {write_duration(definition.max_runtime)}: on "
        f"{chosen.key} the work takes some {write_minutes(needed)}, and nothing that satisfies it ends in time; "
        "raise it"
    )


def _unbounded_loss(definition: JobDefinition, selection: Selection) -> str:
    """Without a duration offerings are ordered by price: a spot offering that is not the best one may be next time."""
    is_bounded = definition.checkpoint_uri is not None or definition.estimated_duration is not None
    if is_bounded or all(offering.purchase is not PurchaseOption.SPOT for offering in selection.kept):
        return ""
    return (
        "every interruption of a spot instance starts this job from its beginning, and without `estimated_duration` "
        "it is not known how often that is to be expected: give a `checkpoint`, an `estimated_duration`, "
        "or `purchase: on-demand`"
    )


def _unknown_disk(definition: JobDefinition, chosen: Offering) -> str:
    """The disk size of a capacity provider is in its launch template, and known here only if the settings have it."""
    if definition.disk_gib is None or chosen.capacity_provider is None or chosen.disk_gib is not None:
        return ""
    local = chosen.instance_type.nvme_gb
    beside = f" ({chosen.instance_type.name} also has {local:,} GB of local disks)" if local else ""
    return (
        f"`disk` only counts in the cost, for CapacityProviders does not say the disk of {chosen.capacity_provider}: "
        f"make sure that its launch template gives its machines {definition.disk_gib} GiB{beside}"
    )


def _no_own_machine(selection: Selection) -> str:
    """Where every machine of our own is rejected for good, return why the nearest one is."""
    rejected = [each for each in selection.rejected if each.offering.is_own_machine]
    is_never = bool(rejected) and all(each.rejection.is_permanent for each in rejected)
    if not is_never or any(each.is_own_machine for each in selection.kept):
        return ""
    # Those that passed the most filters come first.
    last = [each for each in rejected if each.filter_name == rejected[0].filter_name]
    nearest = min(last, key=lambda each: each.rejection.shortfall)
    return (
        "only capacity providers can run it, never a machine of the stack's own: the nearest was "
        f"{nearest.offering.key}: {nearest.rejection.reason}"
    )


def _bottlerocket(chosen: Offering) -> str:
    machine = chosen.instance_type
    if chosen.capacity_provider is not None or machine.architecture != "arm64":
        return ""
    return f"{machine.name}: {ami_rejection(machine)}"


def _unknown_price(chosen: Offering) -> str:
    if chosen.expected_usd_per_hour is not None:
        return ""
    return f"the price of {chosen.key} is not known: `max_price_per_hour` rules out what has no known price"


def _paid_elsewhere(chosen: Offering) -> str:
    """Say what the price of 0 leaves out ("Capacity Blocks pricing and billing", "Capacity Reservation pricing")."""
    reservation = chosen.reservation
    if reservation is None:
        return ""
    until = reservation.usable_until
    when = f" ({until:%Y-%m-%d %H:%M} UTC)" if until else ""
    if reservation.type is ReservationType.CAPACITY_BLOCK:
        paid = f"was paid for when it was bought; EC2 takes its machines away before its end{when}"
    else:
        paid = f"is paid for, used or not; a machine that outlives it{when} goes on at the on-demand price"
    return f"{chosen.key} costs nothing more: {reservation} {paid}"


def _managed_fee(chosen: Offering) -> str:
    """Say what AWS bills beside the instance, which a group of the same type does not cost."""
    if not chosen.is_managed:
        return ""
    share = managed_fee_share(chosen.instance_type.name)
    return (
        f"{chosen.capacity_provider} has ECS Managed Instances, for which AWS bills {share:.1%} of the on-demand price "
        "beside the instance, whatever its purchase option: the price contains that"
    )


def _managed_lifetime(definition: JobDefinition, chosen: Offering) -> str:
    if not chosen.is_managed or definition.max_runtime < _MANAGED_LIFETIME:
        return ""
    return (
        f"ECS replaces an instance of {chosen.capacity_provider} after {_MANAGED_LIFETIME.days} days, and what runs "
        "longer may be stopped without time to save: save checkpoints often, or set a shorter `max_runtime`"
    )
