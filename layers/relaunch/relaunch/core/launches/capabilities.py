"""What a target can do, and which jobs it can therefore never run."""

from dataclasses import dataclass

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.neuron_devices import requires_neuron
from relaunch.core.selection.requirements import derive_requirements

_SPOT = frozenset({PurchaseOption.SPOT})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target can do, as it tells itself.

    `has_spot`: it has capacity that may be taken away. `shares_gpus`: a task can have a share of a GPU.
    `has_neuron_devices`: it has AWS Trainium or Inferentia. `warns_of_interruptions`: it warns before it takes spot
    capacity away. `max_stop_timeout_seconds` is the longest time that it leaves a task between SIGTERM and SIGKILL.
    `takes_machines`: a task can be kept to one machine of our own (`LaunchRequest.instance_id`).
    """

    has_spot: bool
    shares_gpus: bool
    has_neuron_devices: bool
    warns_of_interruptions: bool
    max_stop_timeout_seconds: int
    takes_machines: bool


def missing_capability(definition: JobDefinition, revision: Revision, target: Capabilities) -> str:
    """Return why a target can never run a job, and what to do about it; empty if it may."""
    required = derive_requirements(definition, revision)
    if required.share is not None and not target.shares_gpus:
        return "the job asks for a share of a GPU, and its target has whole GPUs only: leave out `compute_percent`"
    if requires_neuron(required) and not target.has_neuron_devices:
        return "the job asks for Neuron devices, and its target has none: ask for `gpu`"
    if definition.purchase.options <= _SPOT and not target.has_spot:
        return "the job runs on spot capacity only, and its target has none: set `purchase` to `on-demand`"
    return ""
