"""EC2 instances: how they come, register, are interrupted, go, and what they cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.model import (
    BillLine,
    CapacityProvider,
    Cluster,
    Group,
    Host,
    HostStatus,
    InstanceState,
)
from relaunch_local.ecs.engine.placement import AGENT_CAPABILITIES
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import Purchase
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.rules.requirements import RESERVED_TCP_PORTS

VPC_ID = "vpc-0a1b2c3d4e5f60718"
TERMINATED_VISIBLE = timedelta(hours=1)
"""How long EC2 still describes a terminated instance."""


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """An instance that is wanted."""

    instance_type: str
    purchase: Purchase
    zone: str
    cluster: Cluster
    image_id: str
    attributes: tuple[tuple[str, str], ...] = ()
    group: Group | None = None
    provider: CapacityProvider | None = None


@dataclass(slots=True)
class Machines:
    """The instances of the region."""

    region: Region
    lifecycle: TaskLifecycle
    hosts: dict[str, Host] = field(default_factory=dict)
    """Instances that exist, and those that were terminated within the last hour."""
    bill: list[BillLine] = field(default_factory=list)
    capacity: dict[tuple[str, Purchase, str | None], int] = field(default_factory=dict)
    """How many instances of a type and purchase are to be had, per zone or (None) in all zones; absent: any number."""
    on_registered: list[Callable[[Host], None]] = field(default_factory=list)
    on_gone: list[Callable[[Host], None]] = field(default_factory=list)
    """Told at `shutting-down`."""
    on_lost: list[Callable[[Host], None]] = field(default_factory=list)
    """Told when the instance has left its cluster."""
    _counts: dict[tuple[str, Purchase, str | None], int] = field(default_factory=dict)
    _bill_of: dict[str, BillLine] = field(default_factory=dict)
    _terminated: list[Host] = field(default_factory=list)

    def has_capacity(self, instance_type: str, purchase: Purchase, zone: str) -> bool:
        """Whether one more can be launched in the zone."""
        keys = ((instance_type, purchase, zone), (instance_type, purchase, None))
        return all(self._counts.get(key, 0) < self.capacity[key] for key in keys if key in self.capacity)

    def blank(self, spec: MachineSpec, instance_id: str = "") -> Host:
        """The instance as it would be when it has just registered, without launching it."""
        shape = self.region.shapes[spec.instance_type]
        gpus = tuple(f"GPU-{self.region.ids.uuid()}" if instance_id else f"GPU-{n}" for n in range(shape.gpus))
        return Host(
            instance_id=instance_id,
            instance_type=spec.instance_type,
            shape=shape,
            purchase=spec.purchase,
            zone=spec.zone,
            image_id=spec.image_id,
            cluster=spec.cluster,
            launched_at=self.region.clock.now(),
            attributes=_attributes(spec, shape.architecture),
            cpu=shape.vcpus * 1024,
            memory_mib=shape.registered_memory_mib,
            gpu_ids=gpus,
            free_gpu_ids=list(gpus),
            group=spec.group,
            provider=spec.provider,
            tcp_ports=set(RESERVED_TCP_PORTS),
            agent_connected=True,
            status=HostStatus.ACTIVE,
        )

    def launch(self, spec: MachineSpec) -> Host:
        """Launch an instance; whether there is capacity is the caller's question."""
        host = self.blank(spec, self.region.ids.instance_id())
        host.agent_connected, host.status = False, None
        self.hosts[host.instance_id] = host
        for key in _count_keys(host):
            self._counts[key] = self._counts.get(key, 0) + 1
        price = self.region.price_of(host.instance_type, host.zone, host.purchase)
        line = BillLine(host.instance_id, host.instance_type, host.purchase, host.zone, host.launched_at, price)
        self.bill.append(line)
        self._bill_of[host.instance_id] = line
        if spec.group is not None:
            spec.group.hosts[host.instance_id] = host
        self._publish_state(host)
        self.region.clock.call_later(self.region.timing.boot, lambda: self._booted(host))
        return host

    def interrupt(self, host: Host, lead_seconds: float | None = None, *, rebalance_first: bool = False) -> None:
        """Warn of a Spot interruption, then terminate; ECS itself does nothing for standalone tasks."""
        lead = self.region.timing.warning_lead if lead_seconds is None else lead_seconds
        arn = f"arn:aws:ec2:{host.zone}:instance/{host.instance_id}"
        if rebalance_first:
            self.recommend_rebalance(host)
        self.region.events.publish(
            "aws.ec2",
            "EC2 Spot Instance Interruption Warning",
            arn,
            lambda: {"instance-id": host.instance_id, "instance-action": "terminate"},
        )
        host.interruption_timer = self.region.clock.call_later(lead, lambda: self.terminate(host))

    def recommend_rebalance(self, host: Host) -> None:
        """Say that the instance is at an elevated risk of interruption."""
        self.region.events.publish(
            "aws.ec2",
            "EC2 Instance Rebalance Recommendation",
            self.region.arns.instance(host.instance_id),
            lambda: {"instance-id": host.instance_id},
        )

    def terminate(self, host: Host) -> None:
        """Take the machine away now; ECS notices later. Terminating twice does nothing more."""
        if not host.is_alive:
            return
        for timer in (host.idle_timer, host.interruption_timer):
            if timer is not None:
                timer.cancel()
        self.lifecycle.kill_processes(host)
        host.state = InstanceState.SHUTTING_DOWN
        host.agent_connected = False
        for key in _count_keys(host):
            self._counts[key] -= 1
        if host.group is not None:
            host.group.hosts.pop(host.instance_id, None)
        self._publish_state(host)
        self.region.clock.call_later(self.region.timing.shutdown, lambda: self._terminated_now(host))
        for listener in self.on_gone:
            listener(host)

    def set_agent(self, host: Host, *, connected: bool) -> None:
        """Cut the agent off, or let it come back and report what it held back."""
        if host.agent_connected == connected or not host.is_registered or not host.is_alive:
            return
        host.agent_connected = connected
        self.lifecycle.publish_host(host)
        if connected:
            self.lifecycle.reconnect(host)
            for listener in self.on_registered:
                listener(host)

    def _booted(self, host: Host) -> None:
        if host.state is not InstanceState.PENDING:
            return
        host.state = InstanceState.RUNNING
        self._publish_state(host)
        self.region.clock.call_later(self.region.timing.registration, lambda: self._register(host))

    def _register(self, host: Host) -> None:
        if not host.is_alive:
            return
        host.arn = self.region.arns.container_instance(host.cluster.name, self.region.ids.hexadecimal())
        host.status, host.agent_connected = HostStatus.ACTIVE, True
        host.registered_at = self.region.clock.now()
        host.cluster.hosts[last_part(host.arn)] = host
        self.lifecycle.publish_host(host)
        for listener in self.on_registered:
            listener(host)

    def _terminated_now(self, host: Host) -> None:
        now = self.region.clock.now()
        host.state, host.terminated_at = InstanceState.TERMINATED, now
        self._bill_of.pop(host.instance_id).terminated_at = now
        self._publish_state(host)
        self._terminated.append(host)
        while self._terminated[0].terminated_at and self._terminated[0].terminated_at + TERMINATED_VISIBLE <= now:
            del self.hosts[self._terminated.pop(0).instance_id]
        self.region.clock.call_later(self.region.timing.host_loss_report, lambda: self._lost(host))

    def _lost(self, host: Host) -> None:
        if host.is_registered:
            self.lifecycle.lose_host(host)
            del host.cluster.hosts[last_part(host.arn)]
            host.status = HostStatus.INACTIVE
            self.lifecycle.publish_host(host)
        for listener in self.on_lost:
            listener(host)

    def _publish_state(self, host: Host) -> None:
        self.region.events.publish(
            "aws.ec2",
            "EC2 Instance State-change Notification",
            self.region.arns.instance(host.instance_id),
            lambda: {"instance-id": host.instance_id, "state": host.state.value},
        )


def _count_keys(host: Host) -> tuple[tuple[str, Purchase, str | None], ...]:
    return ((host.instance_type, host.purchase, host.zone), (host.instance_type, host.purchase, None))


def subnet_of(zone: str) -> str:
    """The one subnet of a zone."""
    return f"subnet-{sum(ord(letter) << 7 * place for place, letter in enumerate(zone[-3:])):017x}"


def _attributes(spec: MachineSpec, architecture: str) -> dict[str, str]:
    built_in = {
        "ecs.instance-type": spec.instance_type,
        "ecs.availability-zone": spec.zone,
        "ecs.ami-id": spec.image_id,
        "ecs.os-type": "linux",
        "ecs.os-family": "LINUX",
        "ecs.cpu-architecture": architecture,
        "ecs.vpc-id": VPC_ID,
        "ecs.subnet-id": subnet_of(spec.zone),
    }
    return {**dict.fromkeys(AGENT_CAPABILITIES, ""), **built_in, **dict(spec.attributes)}
