"""Managed scaling: groups that grow for waiting tasks, from zero with two machines, and shrink when idle.

Sources: "Automatically manage Amazon ECS capacity with cluster auto scaling" and the containers-roadmap threads on
scaling out from zero.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from relaunch_local.ecs.engine import placement
from relaunch_local.ecs.engine.machines import Machines, MachineSpec
from relaunch_local.ecs.engine.model import CapacityProvider, Group, Host, Task
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.rules.limits import RequestLimits
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.requirements import Requirement

FIRST_SCALE_OUT = 2
"""Machines the first scale-out from zero starts, unless the group's largest size is 1."""
THROTTLED_SECONDS = 5.0
"""After which a group tries again that EC2 throttled; our choice."""


@dataclass(slots=True)
class ManagedScaling:
    """Scales the groups behind capacity providers."""

    region: Region
    machines: Machines
    limits: RequestLimits
    groups: dict[str, Group] = field(default_factory=dict)
    """By ARN."""
    providers: dict[str, CapacityProvider] = field(default_factory=dict)
    """The provider over each group, by the group's ARN."""

    def watch(self, provider: CapacityProvider) -> None:
        """Look at the provider's waiting tasks after the scale-out delay, and again while there are any."""
        if provider.scale_out_timer is None and provider.waiting:
            provider.scale_out_timer = self.region.clock.call_later(
                self.region.timing.scale_out, lambda: self._scale_out(provider)
            )

    def start_minimum(self, provider: CapacityProvider) -> None:
        """Start what the group always has."""
        group = provider.group
        group.desired = max(group.desired, group.spec.min_size)
        self._later(group, 0.0)

    def note_idle(self, host: Host) -> None:
        """Let the host go if it stays idle."""
        if host.group is None or host.tasks or not host.is_alive:
            return
        if host.idle_timer is not None:
            host.idle_timer.cancel()
        host.idle_timer = self.region.clock.call_later(self.region.timing.idle_scale_in, lambda: self._scale_in(host))

    def note_gone(self, host: Host) -> None:
        """Replace what the group lost, as an Auto Scaling group does while its desired size stands."""
        group = host.group
        if group is None:
            return
        if not group.spec.replaces_lost_instances:
            group.desired = max(len(group.hosts), group.spec.min_size)
        if group.desired > len(group.hosts):
            self._later(group, self.region.timing.scale_out)

    def template(self, provider: CapacityProvider, zone: str) -> MachineSpec | None:
        """The instance that the provider's group would launch in a zone; None while no cluster has the provider."""
        spec = provider.group.spec
        if provider.cluster is None:
            return None
        return MachineSpec(
            spec.instance_type, spec.purchase, zone, provider.cluster, spec.image_id, spec.attributes,
            provider.group, provider,
        )  # fmt: skip

    def _scale_in(self, host: Host) -> None:
        group = host.group
        if group is None or host.tasks or not host.is_alive or len(group.hosts) <= group.spec.min_size:
            return
        group.desired = max(group.desired - 1, group.spec.min_size)
        self.machines.terminate(host)

    def _scale_out(self, provider: CapacityProvider) -> None:
        provider.scale_out_timer = None
        group = provider.group
        starting = sum(1 for host in group.hosts.values() if not host.is_registered)
        additional = self._machines_needed(provider) - starting
        if additional > 0:
            wanted = len(group.hosts) + additional
            if not group.hosts:
                wanted = max(wanted, FIRST_SCALE_OUT)
            group.desired = max(group.desired, min(wanted, group.spec.max_size))
            if group.launch_timer is None:
                self._launch(provider)
        self.watch(provider)

    def _machines_needed(self, provider: CapacityProvider) -> int:
        """Pack the waiting tasks, first fit, onto empty machines of the group; what fits none counts for nothing."""
        hopeless: set[tuple[Requirement, Placement]] = set()
        machines: list[Host] = []
        for task in provider.waiting.values():
            kind = (task.requirement, task.placement)
            if kind in hopeless:
                continue
            if not _put(task, machines) and not self._put_on_another(task, provider, machines):
                hopeless.add(kind)
        return len(machines)

    def _put_on_another(self, task: Task, provider: CapacityProvider, machines: list[Host]) -> bool:
        for zone in provider.group.spec.zones:
            spec = self.template(provider, zone)
            host = None if spec is None else self.machines.blank(spec)
            if host is not None and _put(task, [host]):
                machines.append(host)
                return True
        return False

    def _later(self, group: Group, seconds: float) -> None:
        if group.launch_timer is None:
            group.launch_timer = self.region.clock.call_later(seconds, lambda: self._retry(group))

    def _retry(self, group: Group) -> None:
        group.launch_timer = None
        provider = self.providers.get(group.arn)
        if provider is not None:
            self._launch(provider)

    def _launch(self, provider: CapacityProvider) -> None:
        """Bring the group to its desired size as far as there is capacity."""
        group = provider.group
        while provider.cluster is not None and len(group.hosts) < group.desired:
            spec = self._next_machine(provider)
            if spec is None:
                self._out_of_capacity(provider)
                return
            if not self.limits.may_launch_machine():
                self._later(group, THROTTLED_SECONDS)
                return
            self.machines.launch(spec)

    def _next_machine(self, provider: CapacityProvider) -> MachineSpec | None:
        group = provider.group
        in_zone = Counter(host.zone for host in group.hosts.values())
        for zone in sorted(group.spec.zones, key=lambda zone: in_zone[zone]):
            if self.machines.has_capacity(group.spec.instance_type, group.spec.purchase, zone):
                return self.template(provider, zone)
        return None

    def _out_of_capacity(self, provider: CapacityProvider) -> None:
        group = provider.group
        self.region.events.publish(
            "aws.autoscaling",
            "EC2 Instance Launch Unsuccessful",
            group.arn,
            lambda: {
                "StatusCode": "Failed",
                "AutoScalingGroupName": group.spec.name,
                "ActivityId": self.region.ids.uuid(),
                "Details": {"Availability Zone": group.spec.zones[0]},
                "StatusMessage": (
                    f"Could not launch {group.spec.purchase.title()} Instances. InsufficientInstanceCapacity - "
                    f"There is no capacity for {group.spec.instance_type}. Launching EC2 instance failed."
                ),
                "Cause": "An instance was started in response to a difference between desired and actual capacity.",
            },
        )
        if provider.waiting:
            self._later(group, self.region.timing.capacity_retry)
        else:
            group.desired = max(len(group.hosts), group.spec.min_size)


def _put(task: Task, machines: Iterable[Host]) -> bool:
    for host in machines:
        is_free = not (task.placement.distinct_instance and host.tasks)
        if is_free and placement.fits_now(host, task):
            placement.reserve(host, task)
            return True
    return False
