"""What ACK and ACS offer a job: capacity without a price, which the cluster finds.

The scheduler of the cluster chooses the node, and the capacity of ACS has no instance types: an offering stands for the
GPUs that a job asks for. There is one for each purchase option, spot first, because ACS sells best-effort capacity
cheaper than the other.
"""

from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.kubernetes.acs import class_of
from relaunch.core.kubernetes.rules import purchase_options
from relaunch.core.offerings.instance_types import NVIDIA, InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection

_FILTER = "capacity-memory"


def select_on_kubernetes(definition: JobDefinition, memory: CapacityMemory, now: datetime) -> Selection:
    """Keep the offerings of a definition for ACK or ACS that no recent launch found without capacity."""
    offered = kubernetes_offerings(definition)
    rejections = {each: _rejection(each, memory, now) for each in offered}
    kept = tuple(each for each in offered if rejections[each] is None)
    rejected = tuple(RejectedOffering(each, _FILTER, why) for each, why in rejections.items() if why is not None)
    return Selection(kept, rejected, ((_FILTER, len(offered), len(kept)),))


def kubernetes_offerings(definition: JobDefinition) -> tuple[Offering, ...]:
    """Return the offerings of a definition for ACK or ACS, in the order in which they are tried."""
    machine = _machine(definition)
    allowed = purchase_options(definition)
    return tuple(Offering(machine, each) for each in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND) if each in allowed)


def _machine(definition: JobDefinition) -> InstanceType:
    """Return what stands in the place of an instance type; jobs for the same kind of GPU share its name."""
    workload, gpu = definition.kubernetes, definition.accelerator.gpu
    model = workload.gpu_model if workload is not None else ""
    has_classes = definition.target.capabilities.has_compute_classes
    kind = class_of(workload).value if workload is not None and has_classes else ""
    return InstanceType(
        name="/".join(part for part in (definition.target.value, kind, model) if part),
        vcpus=0,
        memory_mib=0,
        architecture="",
        accelerator_manufacturer=NVIDIA,
        accelerator_model=model,
        gpu_count=gpu.count if gpu is not None else 0,
        logical_gpu_count=gpu.count if gpu is not None else 0,
        gpu_memory_mib=(gpu.memory_mib or 0) if gpu is not None else 0,
    )


def _rejection(offering: Offering, memory: CapacityMemory, now: datetime) -> Rejection | None:
    failure = memory.get(offering.key)
    if failure is None or failure.until <= now:
        return None
    reason = f"{failure.reason} at {failure.at:%H:%M} UTC; avoided until {failure.until:%H:%M} UTC"
    return Rejection(reason, is_permanent=False, retry_at=failure.until)
