"""What happens on the hosts of EC2 Fleet: the agent's connection, late GPUs, the watchdog of the user data."""

from collections.abc import Callable
from dataclasses import dataclass

from relaunch_local.ecs.engine.instances import Instances
from relaunch_local.ecs.engine.model import Instance, StateReason
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import Watchdog
from relaunch_local.ecs.engine.tasks import TaskLifecycle


@dataclass(slots=True)
class Hosts:
    """Acts for the software of the hosts."""

    region: Region
    instances: Instances
    lifecycle: TaskLifecycle
    watchdog: Watchdog

    def running(self, instance: Instance) -> None:
        """Start the watchdog, if the instance has one."""
        if instance.fleet is None or not instance.fleet.has_watchdog:
            return
        self._shut_down_later(instance, self.watchdog.unregistered, lambda: not instance.arn)

    def joined(self, instance: Instance) -> None:
        """Watch for tasks, and begin what the host's plan says."""
        self.watch_idleness(instance)
        if instance.fleet is not None and instance.fleet.has_watchdog and instance.shape.gpus:
            self._shut_down_later(instance, self.watchdog.without_gpus, lambda: not instance.gpu_ids)
        plan = instance.host
        if plan.other_gpus_after is not None:
            self.region.clock.call_later(plan.other_gpus_after, lambda: self._add_gpus(instance))
        if plan.disconnects_every is not None:
            self._disconnect_later(instance, plan.disconnects_every)

    def watch_idleness(self, instance: Instance) -> None:
        """Shut the instance down if it stays without a task."""
        if instance.fleet is None or not instance.fleet.has_watchdog:
            return
        if instance.idle_timer is not None:
            instance.idle_timer.cancel()
        if self.watchdog.idle is not None:
            instance.idle_timer = self.region.clock.call_later(
                self.watchdog.idle, lambda: self._shut_down(instance, lambda: not instance.tasks)
            )

    def _shut_down_later(self, instance: Instance, seconds: float | None, condition: Callable[[], bool]) -> None:
        if seconds is not None:
            self.region.clock.call_later(seconds, lambda: self._shut_down(instance, condition))

    def _shut_down(self, instance: Instance, condition: Callable[[], bool]) -> None:
        if instance.is_alive and condition():
            self.instances.terminate(instance, StateReason.INSTANCE_INITIATED)

    def _add_gpus(self, instance: Instance) -> None:
        if not instance.is_registered or not instance.is_alive:
            return
        missing = instance.shape.gpus - len(instance.gpu_ids)
        found = tuple(f"GPU-{self.region.ids.uuid()}" for _ in range(missing))
        instance.gpu_ids += found
        instance.free_gpu_ids += found
        self.lifecycle.publish_container_instance(instance)

    def _disconnect_later(self, instance: Instance, seconds: float) -> None:
        self.region.clock.call_later(seconds, lambda: self._disconnect(instance, seconds))

    def _disconnect(self, instance: Instance, every_seconds: float) -> None:
        if instance.is_registered and instance.is_alive:
            self.instances.set_agent(instance, connected=False)
            self.region.clock.call_later(instance.host.disconnected_for, lambda: self._connect(instance, every_seconds))

    def _connect(self, instance: Instance, every_seconds: float) -> None:
        self.instances.set_agent(instance, connected=True)
        self._disconnect_later(instance, every_seconds)
