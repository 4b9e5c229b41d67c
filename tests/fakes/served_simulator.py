"""A simulator under a virtual clock, served over HTTP, and clients of boto3 for it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from fakes.simulated_region import INSTANCE_TYPES, container
from relaunch_local.attack.requests import Call
from relaunch_local.ecs import (
    AutoScalingGroup,
    Clock,
    EcsServer,
    EcsSimulator,
    Event,
    FleetSettings,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    Script,
    ScriptedProcesses,
    SimulatorSettings,
    SpotPrice,
)
from relaunch_local.iam.permission import Permission
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import RequestGuard

ROOT = Credentials("AKIALAUNCHER", "secret")
GUARD = RequestGuard(dict.fromkeys(["AKIALAUNCHER", "AKIASTRANGER"], "secret").get)


@dataclass
class Served:
    """A simulator under a virtual clock, served over HTTP."""

    simulator: EcsSimulator
    server: EcsServer
    clock: Clock
    ecs: Any
    ec2: Any
    events: list[Event] = field(default_factory=list)

    def advance(self, seconds: float) -> None:
        with self.clock.lock:
            self.clock.advance(seconds)

    def control(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        status, answer = self.controlled(name, arguments)
        assert status == 200
        return answer

    def controlled(self, name: str, arguments: dict[str, Any] | None = None) -> tuple[int, Any]:
        answer = self.call(name, arguments).sign(ROOT, "ecs").send()
        return answer.status, json.loads(answer.body)

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Call:
        """Return a control call, not signed yet."""
        method = "GET" if arguments is None else "POST"
        body = b"" if arguments is None else json.dumps(arguments).encode()
        return Call(f"{self.server.url}/_relaunch/{name}", method, body)


@cache
def session_of(access_key: str) -> Any:
    # One session per caller: it loads the service models once.
    return boto3.Session(access_key, "secret", region_name="us-east-1")


def client(service: str, url: str, access_key: str = "AKIALAUNCHER") -> Any:
    config = Config(retries={"total_max_attempts": 1})
    return session_of(access_key).client(service, endpoint_url=url, config=config)


def may(permission: Permission) -> bool:
    return permission.access_key != "AKIASTRANGER"


@contextmanager
def served_simulator() -> Iterator[Served]:
    """Serve a simulator with one cluster and one capacity provider."""
    clock = Clock()
    prices = [SpotPrice("g5.xlarge", "us-east-1a", 0.412), SpotPrice("g5.xlarge", "us-east-1b", 0.5)]
    offerings = {"us-east-1a": ["g5.xlarge", "m7g.large"], "us-east-1b": ["g5.xlarge"]}
    template = LaunchTemplate("lt-1", "hosts", (LaunchTemplateVersion(), LaunchTemplateVersion(cluster="c")))
    fleet = FleetSettings([template], {"subnet-a": "us-east-1a", "subnet-b": "us-east-1b"})
    settings = SimulatorSettings(instance_types=INSTANCE_TYPES, spot_prices=prices, offerings=offerings, fleet=fleet)
    simulator = EcsSimulator(clock, ScriptedProcesses(clock, lambda _spec: Script(600.0)), settings, authorize=may)
    events: list[Event] = []
    server = EcsServer(simulator, GUARD, on_event=events.append)
    server.start()
    ecs, ec2 = client("ecs", server.url), client("ec2", server.url)
    ecs.create_cluster(clusterName="c")
    with clock.lock:
        group = AutoScalingGroup("asg", "g5.xlarge", Purchase.SPOT, ("us-east-1a",), max_size=1)
        simulator.add_capacity_provider("g5-spot", group, cluster="c")
    yield Served(simulator, server, clock, ecs, ec2, events)
    ecs.close()
    ec2.close()
    server.close()


def run(served: Served, **members: Any) -> str:
    served.ecs.register_task_definition(family="train", containerDefinitions=[container()])
    strategy = [{"capacityProvider": "g5-spot", "weight": 1}]
    answer = served.ecs.run_task(cluster="c", taskDefinition="train", capacityProviderStrategy=strategy, **members)
    return str(answer["tasks"][0]["taskArn"])
