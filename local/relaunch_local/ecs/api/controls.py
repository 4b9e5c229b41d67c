"""The control endpoints of the simulated region, under /_relaunch/: JSON in, JSON out."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from relaunch_local.ecs.api.fleet_controls import fleet_controls
from relaunch_local.ecs.engine.faults import Fault, FaultMoment
from relaunch_local.ecs.engine.model import Instance, JsonObject
from relaunch_local.ecs.engine.region import iso
from relaunch_local.ecs.engine.settings import Purchase
from relaunch_local.ecs.engine.simulator import EcsSimulator
from relaunch_local.ecs.engine.views import task_view


class Controls:
    """The control calls, by the last segment of their path."""

    def __init__(self, simulator: EcsSimulator, on_shutdown: Callable[[], None]) -> None:
        """Control this simulator; `on_shutdown` closes its server."""
        self._simulator = simulator
        self._on_shutdown = on_shutdown
        self._calls: dict[str, Callable[[JsonObject], Any]] = {
            "requests": self._requests,
            "state": self._state,
            "bill": self._bill,
            "interrupt": self._interrupt,
            "rebalance": lambda each: self._simulator.instances.recommend_rebalance(self._instance(each)),
            "terminate": lambda each: self._simulator.terminate(each["instance_id"]),
            "agent": lambda each: self._simulator.set_agent(each["instance_id"], connected=each["connected"]),
            "capacity": self._capacity,
            "fail": self._fail,
            "throttling": self._throttling,
            "unpullable": lambda each: self._simulator.lifecycle.unpullable_images.add(each["image"]),
            "shutdown": lambda _each: self._on_shutdown(),
            **fleet_controls(simulator.fleets),
        }

    def call(self, name: str, arguments: JsonObject) -> tuple[int, Any]:
        """Make a control call; return the HTTP status and the response."""
        if name not in self._calls:
            return 404, {"error": "UnknownControl", "known": sorted(self._calls)}
        try:
            answer = self._calls[name](arguments)
        except (KeyError, TypeError, ValueError) as error:
            return 400, {"error": "BadArguments", "message": repr(error)}
        return 200, {} if answer is None else answer

    def _instance(self, arguments: JsonObject) -> Instance:
        return self._simulator.instance(arguments["instance_id"])

    def _requests(self, _arguments: JsonObject) -> list[JsonObject]:
        return [
            {
                "service": each.service,
                "action": each.action,
                "parameters": each.parameters,
                "access_key": each.access_key,
                "at": iso(each.at),
                "outcome": each.outcome[0],
            }
            for each in self._simulator.requests
        ]

    def _state(self, _arguments: JsonObject) -> JsonObject:
        clusters = self._simulator.clusters.clusters.values()
        return {
            "now": iso(self._simulator.clock.now()),
            "tasks": [task_view(task, stamp=iso) for each in clusters for task in each.tasks.values()],
            "stopped_tasks": [task_view(task, stamp=iso) for each in clusters for task in each.stopped.values()],
            "instances": [_instance_row(instance) for instance in self._simulator.instances.by_id.values()],
        }

    def _bill(self, _arguments: JsonObject) -> list[JsonObject]:
        now = self._simulator.clock.now()
        return [{**asdict(line), "cost_usd": line.cost_usd(now)} for line in self._simulator.instances.bill]

    def _interrupt(self, arguments: JsonObject) -> None:
        self._simulator.interrupt(
            arguments["instance_id"],
            lead_seconds=arguments.get("lead_seconds"),
            rebalance_first=arguments.get("rebalance_first", False),
        )

    def _capacity(self, arguments: JsonObject) -> None:
        self._simulator.set_capacity(
            arguments["instance_type"],
            Purchase(arguments["purchase"]),
            arguments["instances"],
            zone=arguments.get("zone"),
        )

    def _fail(self, arguments: JsonObject) -> None:
        chosen = {name: arguments[name] for name in ("code", "message", "drop_connection") if name in arguments}
        fault = Fault(FaultMoment(arguments.get("moment", "before")), **chosen)
        self._simulator.faults.fail_next(arguments["action"], arguments.get("times", 1), fault)

    def _throttling(self, arguments: JsonObject) -> None:
        self._simulator.limits.enabled = arguments["enabled"]


def _instance_row(instance: Instance) -> JsonObject:
    return {
        "instance_id": instance.instance_id,
        "instance_type": instance.instance_type,
        "purchase": instance.purchase.value,
        "zone": instance.zone,
        "state": instance.state.value,
        "status": None if instance.status is None else instance.status.value,
        "agent_connected": instance.agent_connected,
        "container_instance_arn": instance.arn,
        "launched_at": iso(instance.launched_at),
        "tasks": [task.arn for task in instance.tasks.values()],
    }
