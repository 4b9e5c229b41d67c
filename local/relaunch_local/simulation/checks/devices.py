"""Checks that no two tasks have one Neuron device, which ECS neither reserves nor counts."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relaunch_local.ecs import Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.delayed_ecs import TASK_STATE_CHANGE
from relaunch_local.simulation.checks.record import Check


@dataclass(frozen=True, slots=True)
class NeuronDevices:
    """Looks at an instance whenever a task on it runs."""

    _check: Check
    _hosts: Callable[[], Iterable[Instance]]

    def observe(self, event: Event) -> None:
        """Check the instance of a task that runs."""
        detail = event["detail"]
        if event["detail-type"] == TASK_STATE_CHANGE and detail.get("lastStatus") == "RUNNING":
            for host in self._hosts():
                if host.arn == detail["containerInstanceArn"] and host.shape.neuron_devices:
                    self._check_host(host)

    def _check_host(self, host: Instance) -> None:
        used = Counter(
            str(device["hostPath"])
            for task in host.tasks.values()
            for container in task.containers
            for device in container.definition.get("linuxParameters", {}).get("devices", ())
        )
        shared = sorted(path for path, count in used.items() if count > 1)
        message = f"{host.instance_id}: {', '.join(shared)} of {len(host.tasks)} tasks"
        self._check("no two tasks have one Neuron device", not shared, message)
