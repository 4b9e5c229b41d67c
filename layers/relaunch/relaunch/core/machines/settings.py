"""Where machines of our own are requested (subnets, launch templates), and the tags that find them again.

User data reads tags from instance metadata. Keys that instance metadata offers have letters, digits and `+ - = . , _ :
@` only ("View tags for your EC2 instances using instance metadata", Amazon EC2 User Guide).
"""

from collections.abc import Iterable, Mapping
from dataclasses import field

from relaunch.core.offerings.instance_types import AmiKind, InstanceType, ami_kind, ami_rejection
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """A launch template and the number of its version: a stack update leaves its default version at 1."""

    template_id: str
    version: str


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """What the stack's parameters say about machines of our own.

    `stack` is its name, which is the value of the tag that its machines have; `queue_url` is the `machines` queue. Both
    are there also while machines are off. `subnets` has one subnet for each zone, because EC2 Fleet refuses a request
    with two overrides of one instance type in one zone. `disk_gib` is the root volume of the launch templates, which
    has these operations and MiB per second: those of machines.yaml by default, for nobody says others.
    `reservation_ids` are the capacity reservations that machines may be launched into. `tags` are the account's own,
    which machines, their volumes and their fleets get beside those of Relaunch.
    """

    stack: str = ""
    queue_url: str = ""
    subnets: Mapping[str, str] = field(default_factory=dict)
    launch_templates: Mapping[AmiKind, LaunchTemplate] = field(default_factory=dict)
    instance_role_arn: str = ""
    disk_gib: int = 0
    disk_iops: int = 3_000
    disk_throughput: int = 250
    reservation_ids: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_on(self) -> bool:
        """Return whether jobs may run on machines of our own."""
        return bool(self.subnets)

    def may_start(self, machine: InstanceType, zones: Iterable[str]) -> bool:
        """Return whether a type, which is offered in these zones, has an image, a launch template and a subnet."""
        has_image = ami_kind(machine) in self.launch_templates and not ami_rejection(machine)
        return has_image and not machine.is_fractional and not self.subnets.keys().isdisjoint(zones)


STACK_TAG = "relaunch:stack"
"""The name of the stack that requested the machine, and that alone ends it."""

MACHINE_TAG = "relaunch:machine"
"""The ID of the machine, to find its instance after an unknown outcome."""

GROUP_TAG = "relaunch:group"
"""The tag of machines that were requested together: the ID of the first one."""
JOB_TAG = "relaunch:job"
"""The ID of the job that requested the machine; other jobs may use it later."""

DEFINITION_TAG = "relaunch:definition"
"""The definition of that job; Cost Explorer groups costs by it once it is activated as a cost allocation tag."""

IMAGE_TAG = "relaunch:image"
"""The image, by digest, that the machine pulls while it registers."""
