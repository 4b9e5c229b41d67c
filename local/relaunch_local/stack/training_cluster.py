"""The ECS cluster of the local world: where machines are launched, capacity providers, task definitions."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue, load_on_demand_prices
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch_local.ecs import (
    AutoScalingGroup,
    EcsSimulator,
    FleetSettings,
    InstanceShape,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    SimulatorSettings,
    SpotPrice,
    Watchdog,
)
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.account import CHECKPOINTS
from relaunch_local.stack.emulator import ACCOUNT, REGION

CLUSTER = "relaunch"
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
# The last four are rejected by the example: ARM, a fractional GPU, no GPU, on-demand price above the cap.
INSTANCE_TYPES = ("g4dn.xlarge", "g5.xlarge", "g6.xlarge", "g5g.2xlarge", "g6f.xlarge", "inf2.xlarge", "g5.12xlarge")
# Spot prices as shares of the on-demand price, different per zone, and of one type lower, so that machines of two types
# in two zones are about as cheap and EC2 Fleet has a choice.
SPOT_SHARES = dict(zip(ZONES, (0.33, 0.31, 0.45), strict=True))
CHEAP_SPOT = {"g6.xlarge": 0.66}

SUBNETS = {zone: f"subnet-0a1b2c3d4e5f6071{place}" for place, zone in enumerate(ZONES)}
NETWORK = IPv4Network("127.16.0.0/12")
"""Of loopback, so that the ranks of a job can listen at their machines' addresses; on Linux all of it is there."""
INSTANCE_ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/relaunch/machines"
INSTANCE_PROFILE_ARN = f"arn:aws:iam::{ACCOUNT}:instance-profile/relaunch/machines"
LAUNCH_TEMPLATES = {"gpu": "lt-0a1b2c3d4e5f60718", "neuron": "lt-0a1b2c3d4e5f60719"}
# An update of the stack of infrastructure/machines.yaml made it; version 1, which stays the default, is of a cluster
# that is gone.
LAUNCH_TEMPLATE_VERSION = 2
_IMAGE = "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/{}/recommended/image_id"

TASK_DEFINITION = REPOSITORY / "examples" / "task-definition.json"
REVISIONS = 12

HOLD = "hold"
"""The key of the object, among the checkpoints, that holds trainings while it exists."""


@dataclass(frozen=True)
class Training:
    """The length of the example training: steps, delay after each, steps between checkpoints, delay of a stop.

    `LocalWorld.hold_trainings` holds it at the step `hold_at_step`; one without it is never held.
    """

    steps: int = 200
    step_delay_seconds: float = 0.05
    checkpoint_every: int = 20
    stop_delay_seconds: float = 0.0
    hold_at_step: int = 0

    def environment(self) -> dict[str, str]:
        """Return these settings as the environment variables that examples/train reads."""
        held = {"TRAIN_HOLD_AT_STEP": str(self.hold_at_step), "TRAIN_HOLD_WHILE": f"s3://{CHECKPOINTS}/{HOLD}"}
        return {
            **(held if self.hold_at_step else {}),
            "TRAIN_STEPS": str(self.steps),
            "TRAIN_STEP_DELAY_SECONDS": str(self.step_delay_seconds),
            "TRAIN_CHECKPOINT_EVERY": str(self.checkpoint_every),
            "TRAIN_STOP_DELAY_SECONDS": str(self.stop_delay_seconds),
        }


def provider_name(instance_type: str, purchase: Purchase) -> str:
    """Return the name of the capacity provider of a type and purchase option."""
    return f"{instance_type.replace('.', '-')}-{purchase.value}"


def capacity_providers() -> str:
    """Return the template parameter CapacityProviders."""
    return ",".join(f"{provider_name(*each)}={each[0]}/{each[1].value}" for each in offered())


def machine_parameters() -> dict[str, str]:
    """Return the template parameters that turn on machines of our own."""
    templates = (f"{kind}={each}:{LAUNCH_TEMPLATE_VERSION}" for kind, each in LAUNCH_TEMPLATES.items())
    return {
        "MachineSubnets": ",".join(f"{zone}={subnet}" for zone, subnet in SUBNETS.items()),
        "MachineLaunchTemplates": ",".join(templates),
        "MachineInstanceRoleArn": INSTANCE_ROLE_ARN,
        # The trainings of the local world last seconds, and would finish before their last moment.
        "MachineTaskStop": "at-warning",
    }


def offered() -> Iterator[tuple[str, Purchase]]:
    """Yield every instance type with every purchase option."""
    return ((name, purchase) for name in INSTANCE_TYPES for purchase in Purchase)


def on_demand_prices() -> Mapping[str, float]:
    """Return the on-demand prices in USD per hour."""
    return {name: load_on_demand_prices().usd_per_hour[name] for name in INSTANCE_TYPES}


def price_of(instance_type: str, zone: str, purchase: Purchase) -> float | None:
    """Return the USD per hour of an instance; None for a type that the cluster does not have."""
    price = on_demand_prices().get(instance_type)
    if price is None or purchase is Purchase.ON_DEMAND:
        return price
    return round(price * SPOT_SHARES[zone] * CHEAP_SPOT.get(instance_type, 1.0), 4)


def launch_templates() -> list[LaunchTemplate]:
    """Return the launch templates of infrastructure/machines.yaml."""
    return [
        LaunchTemplate(template_id, f"relaunch-{kind}", (_version(kind, "gone"), _version(kind, CLUSTER)))
        for kind, template_id in LAUNCH_TEMPLATES.items()
    ]


def _version(kind: str, cluster: str) -> LaunchTemplateVersion:
    return LaunchTemplateVersion(
        image_id=_IMAGE.format(kind),
        cluster=cluster,
        instance_profile_arn=INSTANCE_PROFILE_ARN,
        instance_role_arn=INSTANCE_ROLE_ARN,
    )


def simulator_settings(watchdog: Watchdog | None = None) -> SimulatorSettings:
    """Return the settings of the simulated region; `watchdog` ends machines of our own that nobody uses."""
    catalogue = load_catalogue()
    shapes = {
        name: InstanceShape(
            vcpus=catalogue[name].vcpus,
            memory_mib=catalogue[name].memory_mib,
            gpus=catalogue[name].logical_gpu_count,
            gpu_memory_mib=catalogue[name].gpu_memory_mib,
            gpu_partition=catalogue[name].gpu_partition_size,
            neuron_devices=catalogue[name].neuron_devices,
            architecture=catalogue[name].architecture,
            gpu_name=catalogue[name].accelerator_model,
        )
        for name in INSTANCE_TYPES
    }
    prices = [
        SpotPrice(name, zone, price)
        for name in INSTANCE_TYPES
        for zone in ZONES
        if (price := price_of(name, zone, Purchase.SPOT)) is not None
    ]
    return SimulatorSettings(
        instance_types=shapes,
        account=ACCOUNT,
        region=REGION,
        spot_prices=prices,
        offerings=dict.fromkeys(ZONES, INSTANCE_TYPES),
        price_of=price_of,
        network=NETWORK,
        fleet=FleetSettings(
            launch_templates=launch_templates(),
            subnets={subnet: zone for zone, subnet in SUBNETS.items()},
            watchdog=watchdog or Watchdog(),
        ),
    )


def regional_snapshot(now: datetime) -> OfferingsSnapshot:
    """Return what the first refresh of the offerings finds: the zones of the simulator's types."""
    zones = dict.fromkeys(INSTANCE_TYPES, ZONES)
    return OfferingsSnapshot(REGION).with_part(SnapshotPart.ZONES, zones, Origin("EC2", now))


def provision_cluster(simulator: EcsSimulator, training: Training, root_key: str) -> None:
    """Create the cluster, its capacity providers and the task definitions, as the root user with this access key."""
    with simulator.clock.lock:
        simulator.call("CreateCluster", {"clusterName": CLUSTER}, access_key=root_key)
        for instance_type, purchase in offered():
            name = provider_name(instance_type, purchase)
            # The first scale-out from zero launches two instances.
            group = AutoScalingGroup(name, instance_type, purchase, ZONES, max_size=2, replaces_lost_instances=False)
            simulator.add_capacity_provider(name, group, cluster=CLUSTER)
        register_task_definitions(simulator, training, root_key)


def register_task_definitions(simulator: EcsSimulator, training: Training, root_key: str) -> None:
    """Register many revisions, of which the last is INACTIVE, and a family with the same prefix."""
    definition = task_definition(training)
    for revision in range(1, REVISIONS + 1):
        stale = (
            definition if revision == REVISIONS - 1 else with_command(definition, ["python", "-c", "print('stale')"])
        )
        simulator.call("RegisterTaskDefinition", stale, access_key=root_key)
    head = f"{definition['family']}:{REVISIONS}"
    simulator.call("DeregisterTaskDefinition", {"taskDefinition": head}, access_key=root_key)
    sibling = {**definition, "family": f"{definition['family']}-nightly"}
    simulator.call("RegisterTaskDefinition", sibling, access_key=root_key)


def task_definition(training: Training) -> dict[str, Any]:
    """Return the task definition of examples/ with the settings of the training."""
    definition: dict[str, Any] = json.loads(TASK_DEFINITION.read_text())
    container = definition["containerDefinitions"][0]
    environment = {each["name"]: each["value"] for each in container["environment"]} | training.environment()
    container["environment"] = [{"name": name, "value": value} for name, value in environment.items()]
    return definition


def with_command(definition: Mapping[str, Any], command: list[str]) -> dict[str, Any]:
    """Return the definition with another command."""
    changed: dict[str, Any] = deepcopy(dict(definition))
    changed["containerDefinitions"][0]["command"] = command
    return changed
