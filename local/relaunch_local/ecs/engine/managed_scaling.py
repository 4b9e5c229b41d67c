"""Managed scaling: Auto Scaling groups that scale out for waiting tasks and scale in when idle.

Sources: "Automatically manage Amazon ECS capacity with cluster auto scaling", and the containers-roadmap issues on
scaling out from zero.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from relaunch_local.ecs.engine import placement
from relaunch_local.ecs.engine.instances import Instances, LaunchSpecification
from relaunch_local.ecs.engine.model import AutoScalingGroupState, CapacityProvider, Instance, Task
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.rules.limits import RequestLimits
from relaunch_local.ecs.rules.placement import Placement
from relaunch_local.ecs.rules.requirements import Requirement

FIRST_SCALE_OUT = 2
"""Instances that the first scale-out from zero launches, unless the group's maximum size is 1."""
THROTTLED_SECONDS = 5.0
"""Pause of a group whose launch EC2 has throttled; not documented by AWS."""


@dataclass(slots=True)
class ManagedScaling:
    """Scales the Auto Scaling groups of capacity providers."""

    region: Region
    instances: Instances
    limits: RequestLimits
    groups: dict[str, AutoScalingGroupState] = field(default_factory=dict)
    """By ARN."""
    providers: dict[str, CapacityProvider] = field(default_factory=dict)
    """The capacity provider of each group, by the group's ARN."""

    def watch(self, provider: CapacityProvider) -> None:
        """Scale out for the provider's waiting tasks after a delay, repeatedly while there are any."""
        if provider.scale_out_timer is None and provider.waiting:
            provider.scale_out_timer = self.region.clock.call_later(
                self.region.timing.scale_out, lambda: self._scale_out(provider)
            )

    def start_minimum(self, provider: CapacityProvider) -> None:
        """Launch the group's minimum size."""
        group = provider.group
        group.desired_capacity = max(group.desired_capacity, group.spec.min_size)
        self._later(group, 0.0)

    def schedule_scale_in(self, instance: Instance) -> None:
        """Terminate the instance if it stays idle."""
        if instance.group is None or instance.tasks or not instance.is_alive:
            return
        if instance.idle_timer is not None:
            instance.idle_timer.cancel()
        instance.idle_timer = self.region.clock.call_later(
            self.region.timing.idle_scale_in, lambda: self._scale_in(instance)
        )

    def replace_terminated(self, instance: Instance) -> None:
        """Replace a terminated instance, as an Auto Scaling group does to keep its desired capacity."""
        group = instance.group
        if group is None:
            return
        if not group.spec.replaces_lost_instances:
            group.desired_capacity = max(len(group.instances), group.spec.min_size)
        if group.desired_capacity > len(group.instances):
            self._later(group, self.region.timing.scale_out)

    def template(self, provider: CapacityProvider, zone: str) -> LaunchSpecification | None:
        """Return what the provider's group launches in a zone; None while no cluster has the provider."""
        spec = provider.group.spec
        if provider.cluster is None:
            return None
        return LaunchSpecification(
            spec.instance_type, spec.purchase, zone, provider.cluster, spec.image_id, spec.attributes,
            provider.group, provider,
        )  # fmt: skip

    def _scale_in(self, instance: Instance) -> None:
        group = instance.group
        if group is None or instance.tasks or not instance.is_alive or len(group.instances) <= group.spec.min_size:
            return
        group.desired_capacity = max(group.desired_capacity - 1, group.spec.min_size)
        self.instances.terminate(instance)

    def _scale_out(self, provider: CapacityProvider) -> None:
        provider.scale_out_timer = None
        group = provider.group
        starting = sum(1 for instance in group.instances.values() if not instance.is_registered)
        additional = self._instances_needed(provider) - starting
        if additional > 0:
            wanted = len(group.instances) + additional
            if not group.instances:
                wanted = max(wanted, FIRST_SCALE_OUT)
            group.desired_capacity = max(group.desired_capacity, min(wanted, group.spec.max_size))
            if group.launch_timer is None:
                self._launch(provider)
        self.watch(provider)

    def _instances_needed(self, provider: CapacityProvider) -> int:
        """Return the number of instances for the waiting tasks, packed first fit; tasks that fit none are ignored."""
        hopeless: set[tuple[Requirement, Placement]] = set()
        instances: list[Instance] = []
        for task in provider.waiting.values():
            kind = (task.requirement, task.placement)
            if kind in hopeless:
                continue
            if not _put(task, instances) and not self._put_on_another(task, provider, instances):
                hopeless.add(kind)
        return len(instances)

    def _put_on_another(self, task: Task, provider: CapacityProvider, instances: list[Instance]) -> bool:
        for zone in provider.group.spec.zones:
            spec = self.template(provider, zone)
            instance = None if spec is None else self.instances.describe_new(spec)
            if instance is not None and _put(task, [instance]):
                instances.append(instance)
                return True
        return False

    def _later(self, group: AutoScalingGroupState, seconds: float) -> None:
        if group.launch_timer is None:
            group.launch_timer = self.region.clock.call_later(seconds, lambda: self._retry(group))

    def _retry(self, group: AutoScalingGroupState) -> None:
        group.launch_timer = None
        provider = self.providers.get(group.arn)
        if provider is not None:
            self._launch(provider)

    def _launch(self, provider: CapacityProvider) -> None:
        """Launch instances up to the desired capacity, as far as EC2 has capacity."""
        group = provider.group
        while provider.cluster is not None and len(group.instances) < group.desired_capacity:
            spec = self._next_launch(provider)
            if spec is None:
                self._out_of_capacity(provider)
                return
            if not self.limits.may_launch_instance():
                self._later(group, THROTTLED_SECONDS)
                return
            self.instances.launch(spec)

    def _next_launch(self, provider: CapacityProvider) -> LaunchSpecification | None:
        group = provider.group
        in_zone = Counter(instance.zone for instance in group.instances.values())
        for zone in sorted(group.spec.zones, key=lambda zone: in_zone[zone]):
            if self.instances.has_capacity(group.spec.instance_type, group.spec.purchase, zone):
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
            group.desired_capacity = max(len(group.instances), group.spec.min_size)


def _put(task: Task, instances: Iterable[Instance]) -> bool:
    for instance in instances:
        is_free = not (task.placement.distinct_instance and instance.tasks)
        if is_free and placement.fits_now(instance, task):
            placement.reserve(instance, task)
            return True
    return False
