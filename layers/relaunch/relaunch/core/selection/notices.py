"""What a team should know of where its job would run, though nothing forbids it."""

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.gpu_share import share_notices
from relaunch.core.selection.requirements import Requirements, derive_requirements
from relaunch.core.selection.selection import Selection

# From so many expected interruptions on, work without a checkpoint is more likely lost than not: 1 - 1/e^0.7 = 0.5.
_LIKELY_INTERRUPTIONS = 0.7


def find_notices(definition: JobDefinition, revision: Revision | None, selection: Selection | None) -> tuple[str, ...]:
    """Return notices in words; those on the machine are about the best offering, and none where nothing was kept."""
    notices = list(share_notices(definition))
    chosen = selection.chosen if selection else None
    if chosen is not None:
        required = derive_requirements(definition, revision)
        found = (
            _idle_accelerator(required, revision, chosen),
            _lost_work(selection, chosen),
            _unknown_disk(definition, chosen),
        )
        notices += [notice for notice in found if notice]
    return tuple(notices)


def _idle_accelerator(required: Requirements, revision: Revision | None, chosen: Offering) -> str:
    """A container sees a GPU only when it asks for one: on ECS the machine's others are hidden from it."""
    is_asked = required.is_gpu or required.is_neuron or required.gpu_count or required.share or required.neuron_devices
    if is_asked or revision is None or not revision.containers:
        return ""
    machine = chosen.instance_type
    kind = "GPU" if machine.logical_gpu_count else "Neuron device"
    return (
        f"{machine.name} has a {kind} that no container asks for, so that none can use it: "
        "add `gpu` or `neuron` to `accelerator`, or choose a machine without"
    )


def _lost_work(selection: Selection | None, chosen: Offering) -> str:
    work = selection.work if selection else None
    if work is None or work.has_checkpoint or chosen.purchase is not PurchaseOption.SPOT:
        return ""
    expected = chosen.interruption_rate * (work.duration.total_seconds() / 3600)
    if expected < _LIKELY_INTERRUPTIONS:
        return ""
    return (
        f"{chosen.key} is reckoned to be interrupted {expected:.1f} times in the time the work takes, "
        "which begins anew each time: give a `checkpoint`"
    )


def _unknown_disk(definition: JobDefinition, chosen: Offering) -> str:
    """What a capacity provider's machines have for a disk is in its launch template, unless the settings say it."""
    if definition.disk_gib is None or chosen.capacity_provider is None or chosen.disk_gib is not None:
        return ""
    local = chosen.instance_type.nvme_gb
    beside = f" ({chosen.instance_type.name} also has {local:,} GB of local disks)" if local else ""
    return (
        f"`disk` only counts in the cost, for CapacityProviders does not say the disk of {chosen.capacity_provider}: "
        f"make sure that its launch template gives its machines {definition.disk_gib} GiB{beside}"
    )
