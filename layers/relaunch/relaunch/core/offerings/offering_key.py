"""What tells offerings apart; lists of jobs import no more of them than this."""

from dataclasses import dataclass

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.kubernetes_workload import ComputeClass
from relaunch.core.definitions.targets import Target

# What stands in the place of an instance type on a cluster (core.kubernetes.rules), where a job has nothing to choose.
_WITHOUT_PURCHASE_OPTIONS = (
    *(f"{each}/" for each in Target if not each.capabilities.has_spot),
    *(f"{each}/{ComputeClass.GPU_HPN}/" for each in Target if each.capabilities.has_compute_classes),
)


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """The key of an offering: instance type, zone (None: any zone) and purchase option.

    In the capacity memory a key may stand for several offerings (core.offerings.capacity_memory).
    """

    instance_type: str
    zone: str | None
    purchase: PurchaseOption

    def __str__(self) -> str:
        """Return `g5.xlarge spot us-east-1a`, `g5.xlarge spot` without a zone, `ack/V100` without purchase options."""
        purchase = f" {self.purchase}" if has_purchase_options(self.instance_type) else ""
        return f"{self.instance_type}{purchase}" + (f" {self.zone}" if self.zone else "")


def has_purchase_options(instance_type: str) -> bool:
    """Return whether how it is bought can be chosen for an instance type, or for what stands in its place."""
    return not f"{instance_type}/".startswith(_WITHOUT_PURCHASE_OPTIONS)
