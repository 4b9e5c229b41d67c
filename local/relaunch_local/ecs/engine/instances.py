"""EC2 instances: launch, registration, interruption, termination, cost."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs.engine.addresses import PrivateAddresses
from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import (
    AutoScalingGroupState,
    BillLine,
    CapacityProvider,
    Cluster,
    ContainerInstanceStatus,
    FleetMember,
    Instance,
    InstanceState,
    StateReason,
)
from relaunch_local.ecs.engine.placement import AGENT_CAPABILITIES
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import SOUND, HostPlan, Purchase
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.rules.requirements import RESERVED_TCP_PORTS

# "Billing for interrupted Spot Instances" (EC2 User Guide).
_FREE_HOUR = timedelta(hours=1)
IMAGE_TAG = "relaunch:image"
"""The tag of the image that user data pulls while the agent starts (infrastructure/user_data)."""
BOOT_ATTRIBUTE = "relaunch.boot"
"""The attribute in which a machine reports its boot (infrastructure/user_data); empty until it registers."""
# Invented: the parts of the time from `running` to the registration after which user data begins, ends, and the agent
# starts.
_BOOT_PARTS = (0.35, 0.5, 0.7)
# "Attribute" (Amazon ECS API Reference).
_ATTRIBUTE_VALUE = re.compile(r"(?! )[\w.@/\\: -]{1,128}(?<! )", re.ASCII)
VPC_ID = "vpc-0a1b2c3d4e5f60718"
GROUP_TAG = "aws:autoscaling:groupName"
"""Auto Scaling gives it to the instances of a group, with the group's name."""

TERMINATED_VISIBLE = timedelta(hours=1)
"""How long EC2 describes a terminated instance."""

CapacityKey = tuple[str, Purchase, str | None]
"""Type, purchase option and zone (None: all zones together) of instances."""


@dataclass(frozen=True, slots=True)
class LaunchSpecification:
    """An instance to launch."""

    instance_type: str
    purchase: Purchase
    zone: str
    cluster: Cluster
    image_id: str
    attributes: tuple[tuple[str, str], ...] = ()
    group: AutoScalingGroupState | None = None
    provider: CapacityProvider | None = None
    subnet_id: str = ""
    """Empty: the subnet of the zone."""
    fleet: FleetMember | None = None
    reservation_id: str = ""
    """The capacity reservation that has its place; empty: the stock of the pool."""
    tags: Mapping[str, str] = field(default_factory=dict)
    host: HostPlan = SOUND


@dataclass(slots=True)
class Instances:
    """The instances of the region."""

    region: Region
    lifecycle: TaskLifecycle
    by_id: dict[str, Instance] = field(default_factory=dict)
    """Instances by id, including those terminated within the last hour."""
    bill: list[BillLine] = field(default_factory=list)
    capacity: dict[CapacityKey, int] = field(default_factory=dict)
    """Available instances; a missing key is unlimited."""
    on_running: list[Callable[[Instance], None]] = field(default_factory=list)
    on_joined: list[Callable[[Instance], None]] = field(default_factory=list)
    """Called when an instance registers, but not when its agent reconnects."""
    on_registered: list[Callable[[Instance], None]] = field(default_factory=list)
    on_terminating: list[Callable[[Instance], None]] = field(default_factory=list)
    """Called when an instance is `shutting-down`."""
    addresses: PrivateAddresses = field(default_factory=PrivateAddresses)
    _counts: Counter[CapacityKey] = field(default_factory=Counter)
    _bill_of: dict[str, BillLine] = field(default_factory=dict)
    _terminated: list[Instance] = field(default_factory=list)
    _aged_out: set[str] = field(default_factory=set)

    def known(self, instance_id: str) -> Instance | None:
        """Return the instance if EC2's calls know it: not at once after its launch, nor an hour after its end."""
        self.forget_old()
        instance = self.by_id.get(instance_id)
        return instance if instance is not None and self._is_visible(instance) else None

    def all_known(self) -> list[Instance]:
        """Return the instances that EC2's calls know."""
        self.forget_old()
        return [instance for instance in self.by_id.values() if self._is_visible(instance)]

    def is_aged_out(self, instance_id: str) -> bool:
        """Return whether the instance was terminated more than an hour ago."""
        self.forget_old()
        return instance_id in self._aged_out

    def forget_old(self) -> None:
        """Remove the instances that were terminated more than an hour ago, in the order of their ends."""
        limit = self.region.clock.now() - TERMINATED_VISIBLE
        while self._terminated and self._terminated[0].terminated_at and self._terminated[0].terminated_at <= limit:
            instance_id = self._terminated.pop(0).instance_id
            del self.by_id[instance_id]
            self._aged_out.add(instance_id)

    def _is_visible(self, instance: Instance) -> bool:
        return instance.visible_at is None or instance.visible_at <= self.region.clock.now()

    def has_capacity(self, instance_type: str, purchase: Purchase, zone: str) -> bool:
        """Return whether another instance can be launched in the zone."""
        stock = self.stock(instance_type, purchase, zone)
        return stock is None or stock > 0

    def stock(self, instance_type: str, purchase: Purchase, zone: str) -> int | None:
        """Return how many more instances can be launched in the zone; None: nobody knows a limit."""
        keys = _count_keys(instance_type, purchase, zone)
        left = (max(self.capacity[key] - self._counts[key], 0) for key in keys if key in self.capacity)
        return min(left, default=None)

    def describe_new(self, spec: LaunchSpecification, instance_id: str = "") -> Instance:
        """Return an instance as it would have just registered, without launching it."""
        shape = self.region.shapes[spec.instance_type]
        gpus = tuple(f"GPU-{self.region.ids.uuid()}" if instance_id else f"GPU-{n}" for n in range(shape.gpus))
        return Instance(
            instance_id=instance_id,
            instance_type=spec.instance_type,
            shape=shape,
            purchase=spec.purchase,
            zone=spec.zone,
            image_id=spec.image_id,
            cluster=spec.cluster,
            subnet_id=spec.subnet_id or subnet_of(spec.zone),
            launched_at=self.region.clock.now(),
            attributes=_attributes(spec, shape.architecture),
            cpu=shape.vcpus * 1024,
            memory_mib=shape.registered_memory_mib,
            gpu_ids=gpus,
            free_gpu_ids=list(gpus),
            group=spec.group,
            provider=spec.provider,
            fleet=spec.fleet,
            reservation_id=spec.reservation_id,
            tags=dict(spec.tags) | ({GROUP_TAG: spec.group.spec.name} if spec.group else {}),
            host=spec.host,
            tcp_ports=set(RESERVED_TCP_PORTS),
            agent_connected=True,
            status=ContainerInstanceStatus.ACTIVE,
        )

    def launch(self, spec: LaunchSpecification) -> Instance:
        """Launch an instance; the caller checks the capacity."""
        instance = self.describe_new(spec, self.region.ids.instance_id())
        instance.agent_connected = False
        instance.status = None
        instance.private_address = self.addresses.take(instance.subnet_id)
        self.by_id[instance.instance_id] = instance
        if not instance.reservation_id:
            self._counts.update(_count_keys(instance.instance_type, instance.purchase, instance.zone))
        price = self.region.price_of(instance.instance_type, instance.zone, instance.purchase)
        line = BillLine(
            instance.instance_id, instance.instance_type, instance.purchase, instance.zone, instance.launched_at, price,
            is_reserved=bool(instance.reservation_id),
        )  # fmt: skip
        self.bill.append(line)
        self._bill_of[instance.instance_id] = line
        if spec.group is not None:
            spec.group.instances[instance.instance_id] = instance
        if spec.fleet is not None:
            seconds = _chosen(spec.host.visibility, self.region.timing.fleet_visibility)
            instance.visible_at = instance.launched_at + timedelta(seconds=seconds / self.region.clock.speed)
            seconds = spec.host.addressed_after
            instance.addressed_at = instance.launched_at + timedelta(seconds=seconds / self.region.clock.speed)
        self._publish_state(instance)
        seconds = _chosen(spec.host.boot, self.region.timing.boot)
        self.region.clock.call_later(seconds, lambda: self._booted(instance))
        return instance

    def interrupt(
        self, instance: Instance, lead_seconds: float | None = None, *, rebalance_first: bool = False
    ) -> None:
        """Publish a Spot interruption warning, then terminate; ECS does nothing for standalone tasks."""
        lead = self.region.timing.warning_lead if lead_seconds is None else lead_seconds
        if rebalance_first:
            self.recommend_rebalance(instance)
        arn = f"arn:aws:ec2:{instance.zone}:instance/{instance.instance_id}"
        detail = {"instance-id": instance.instance_id, "instance-action": "terminate"}
        instance.warned_at = instance.warned_at or self.region.clock.now()
        self.region.events.publish("aws.ec2", "EC2 Spot Instance Interruption Warning", arn, lambda: detail)
        instance.interruption_timer = self.region.clock.call_later(
            lead, lambda: self.terminate(instance, StateReason.SPOT_TERMINATION)
        )

    def finish_interruptions(self) -> None:
        """Let the lead time of every warned instance be over."""
        for instance in tuple(self.by_id.values()):
            if instance.interruption_timer is not None:
                self.terminate(instance, StateReason.SPOT_TERMINATION)

    def recommend_rebalance(self, instance: Instance) -> None:
        """Publish a rebalance recommendation."""
        self._publish(instance, "EC2 Instance Rebalance Recommendation")

    def terminate(self, instance: Instance, reason: StateReason = StateReason.USER_INITIATED) -> None:
        """Terminate the instance, which ECS notices later; does nothing if it is terminating already."""
        if not instance.is_alive:
            return
        for timer in (instance.idle_timer, instance.interruption_timer):
            if timer is not None:
                timer.cancel()
        self.lifecycle.kill_processes(instance)
        instance.state = InstanceState.SHUTTING_DOWN
        instance.state_reason = reason
        instance.was_connected, instance.agent_connected = instance.agent_connected, False
        line = self._bill_of[instance.instance_id]
        now = self.region.clock.now()
        instance.ended_at = now
        if instance.fleet is not None:
            line.billing_ended_at = now
        is_interrupted = reason is StateReason.SPOT_TERMINATION and instance.purchase is Purchase.SPOT
        line.is_free = is_interrupted and now - line.launched_at < _FREE_HOUR
        if not instance.reservation_id:
            self._counts.subtract(_count_keys(instance.instance_type, instance.purchase, instance.zone))
        if instance.group is not None:
            instance.group.instances.pop(instance.instance_id, None)
        self._publish_state(instance)
        self.region.clock.call_later(self._shutdown_seconds(instance), lambda: self._terminated_now(instance))
        for listener in self.on_terminating:
            listener(instance)

    def charge_on_demand(self, instances: Iterable[Instance]) -> None:
        """Let the on-demand price be paid from now on for instances whose capacity reservation is over."""
        for instance in instances:
            self._bill_of[instance.instance_id].reserved_until = self.region.clock.now()

    def set_agent(self, instance: Instance, *, connected: bool) -> None:
        """Disconnect the agent, or reconnect it, upon which it reports what happened in between."""
        if instance.agent_connected == connected or not instance.is_registered or not instance.is_alive:
            return
        if connected and instance.is_cut_off:
            return
        instance.agent_connected = connected
        self.lifecycle.publish_container_instance(instance)
        if connected:
            self.lifecycle.reconnect(instance)
            for listener in self.on_registered:
                listener(instance)

    def _booted(self, instance: Instance) -> None:
        if instance.state is not InstanceState.PENDING:
            return
        instance.state = InstanceState.RUNNING
        instance.booted_at = self.region.clock.now()
        self._publish_state(instance)
        for listener in self.on_running:
            listener(instance)
        if instance.host.runs_user_data and IMAGE_TAG in instance.tags:
            instance.pulled_image = instance.tags[IMAGE_TAG]
            seconds = _chosen(instance.host.pull, self.region.timing.pull)
            instance.pulled_at = self.region.clock.now() + timedelta(seconds=seconds / self.region.clock.speed)
        if instance.host.joins and instance.host.runs_user_data:
            seconds = _chosen(instance.host.registration, self.region.timing.registration)
            if ".metal" in instance.instance_type:
                seconds += self.region.timing.bare_metal_start
            self.region.clock.call_later(seconds, lambda: self._register(instance))

    def _register(self, instance: Instance) -> None:
        if not instance.is_alive:
            return
        if BOOT_ATTRIBUTE in instance.attributes:
            instance.attributes[BOOT_ATTRIBUTE] = _boot_report(instance, self.region.clock.now())
        if not all(_ATTRIBUTE_VALUE.fullmatch(value) for value in instance.attributes.values() if value):
            # The agent ends, and is not started again (aws/amazon-ecs-agent#2981).
            return
        instance.gpu_ids = instance.gpu_ids[: instance.host.gpus]
        instance.free_gpu_ids = list(instance.gpu_ids)
        instance.arn = self.region.arns.container_instance(instance.cluster.name, self.region.ids.hexadecimal())
        # "ACTIVE" says nothing of the agent: it registers first, and connects then (aws/amazon-ecs-agent#240).
        instance.status = ContainerInstanceStatus.ACTIVE
        instance.agent_connected = not instance.host.connects_after
        instance.registered_at = self.region.clock.now()
        instance.cluster.container_instances[last_part(instance.arn)] = instance
        self.lifecycle.publish_container_instance(instance)
        for listener in (*self.on_joined, *self.on_registered):
            listener(instance)
        if not instance.agent_connected:
            self.region.clock.call_later(instance.host.connects_after, lambda: self.set_agent(instance, connected=True))

    def _shutdown_seconds(self, instance: Instance) -> float:
        timing = self.region.timing
        return _chosen(instance.host.shutdown, timing.shutdown if instance.fleet is None else timing.fleet_shutdown)

    def _terminated_now(self, instance: Instance) -> None:
        now = self.region.clock.now()
        instance.state = InstanceState.TERMINATED
        instance.terminated_at = now
        self.addresses.release(instance.subnet_id, instance.private_address)
        instance.private_address = ""
        self._bill_of.pop(instance.instance_id).terminated_at = now
        self._publish_state(instance)
        self._terminated.append(instance)
        self.forget_old()
        # "Instances with disconnected agents aren't automatically deregistered when terminated"
        # (DeregisterContainerInstance, Amazon ECS API Reference).
        is_ghost = instance.fleet is not None and not instance.was_connected
        timing = self.region.timing
        seconds = timing.ghost_registration if is_ghost else timing.instance_loss_report
        self.region.clock.call_later(seconds, lambda: self.deregister(instance))

    def deregister(self, instance: Instance) -> None:
        """Remove the container instance from its cluster, and stop its tasks; does nothing if it is not registered."""
        if instance.is_registered:
            self.lifecycle.lose_instance(instance)
            del instance.cluster.container_instances[last_part(instance.arn)]
            instance.status = ContainerInstanceStatus.INACTIVE
            self.lifecycle.publish_container_instance(instance)

    def _publish_state(self, instance: Instance) -> None:
        self._publish(instance, "EC2 Instance State-change Notification", state=instance.state.value)

    def _publish(self, instance: Instance, detail_type: str, **detail: str) -> None:
        arn = self.region.arns.instance(instance.instance_id)
        self.region.events.publish("aws.ec2", detail_type, arn, lambda: {"instance-id": instance.instance_id, **detail})


def _boot_report(instance: Instance, now: datetime) -> str:
    """Return what an instance that registers now reports: to the millisecond, for the local world is fast."""
    booted_at = instance.booted_at or now
    seconds = (now - booted_at).total_seconds()
    return ":".join(f"{each:.3f}" for each in (booted_at.timestamp(), *(part * seconds for part in _BOOT_PARTS)))


def _chosen(seconds: float | None, otherwise: float) -> float:
    return otherwise if seconds is None else seconds


def _count_keys(instance_type: str, purchase: Purchase, zone: str) -> tuple[CapacityKey, ...]:
    return (instance_type, purchase, zone), (instance_type, purchase, None)


def subnet_of(zone: str) -> str:
    """Return the subnet of a zone."""
    return f"subnet-{sum(ord(letter) << 7 * place for place, letter in enumerate(zone[-3:])):017x}"


def _attributes(spec: LaunchSpecification, architecture: str) -> dict[str, str]:
    built_in = {
        "ecs.instance-type": spec.instance_type,
        "ecs.availability-zone": spec.zone,
        "ecs.ami-id": spec.image_id,
        "ecs.os-type": "linux",
        "ecs.os-family": "LINUX",
        "ecs.cpu-architecture": architecture,
        "ecs.vpc-id": VPC_ID,
        "ecs.subnet-id": spec.subnet_id or subnet_of(spec.zone),
    }
    return {**dict.fromkeys(AGENT_CAPABILITIES, ""), **built_in, **dict(spec.attributes)}
