"""The scenario of a seed: capacity providers, job definitions, their trainings, and the events that start jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import GpuSharing
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import (
    AutoScalingGroup,
    EcsSimulator,
    InstanceShape,
    Purchase,
    SimulatorSettings,
    SpotPrice,
    Timing,
)
from relaunch_local.simulation.aws.outages import Outage
from relaunch_local.simulation.aws.recipes import SIDECAR, Recipe, Sidecar
from relaunch_local.simulation.aws.template import ACCOUNT, CLUSTER, REGION
from relaunch_local.simulation.definition_scenario import MAIN_MEMORY
from relaunch_local.simulation.instance_types import ON_DEMAND_USD_PER_HOUR, USD_PER_HOUR
from relaunch_local.simulation.machine_scenario import MachineScenario
from relaunch_local.simulation.notice_plans import NoticePlan
from relaunch_local.simulation.other_triggers import TOPICS, OtherTriggers

ZONES = ("us-east-1a", "us-east-1b")
INSTANCE_TYPES = tuple(ON_DEMAND_USD_PER_HOUR)
BUCKET = "acme-datasets"
SHARED = "shared/"
"""Every definition has a trigger on this prefix."""
CHECKPOINTS = "acme-checkpoints"
IMAGES = "trainer"
UNPULLABLE_IMAGES = "private"
"""The repository of the images that cannot be pulled."""
_UNPULLABLE_DIGEST = f"sha256:{'9' * 64}"
EVERY_IMAGE = {(IMAGES, "latest"): f"sha256:{'1' * 64}", (UNPULLABLE_IMAGES, "latest"): _UNPULLABLE_DIGEST}
"""The digests of the images that are in ECR from the start."""
TASK_DEFINITION_COMMAND = ("train",)
EKS_CLUSTER = "ml"
_CLUSTER_ID = "c0123456789abcdef0123456789abcdef"
_GPU = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
_DEVICE = {"hostPath": "/dev/neuron0", "containerPath": "/dev/neuron0", "permissions": ["read", "write"]}
_NEURON_DEVICE = {"linuxParameters": {"devices": [_DEVICE]}}
_REGISTRY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
_SPOT_SHARE = {"us-east-1a": 0.35, "us-east-1b": 0.42}


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event that starts a job; `token` is in the identity of that job.

    Without a definition every definition gets a job. `occurrence` counts how often the same push was made, or the same
    object written: each occurrence is an event of its own.
    """

    at_seconds: float
    kind: str
    definition: str
    token: str
    image_after_seconds: float | None = None
    occurrence: int = 1


@dataclass(frozen=True, slots=True)
class TrueSpeed:
    """How fast the trainings of a definition are on an instance type, in multiples of where it was measured.

    `accelerators` are what they use of it, and `least` is the slow end of what published peaks say.
    """

    accelerators: str
    true: float
    least: float


_AS_ANYWHERE = TrueSpeed("", 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ClusterScenario:
    """A cluster of a minor version of Kubernetes 1 with so many nodes, and the definition whose jobs run there."""

    definition: JobDefinition
    minor: int
    nodes: int
    gpu_sharing: GpuSharing | None = None
    """How its nodes share their GPUs; None: jobs have whole ones."""
    labels: NodeLabels | None = None
    """With which labels its nodes say how they are bought; None: they do not."""
    reads_nodes: bool = False
    """Whether the functions may read nodes, and so see what their taints announce."""

    @property
    def role_parameters(self) -> Mapping[str, str]:
        """Return the template's parameter with the cluster."""
        is_on_alibaba_cloud = self.definition.target.capabilities.is_on_alibaba_cloud
        return {"AckClusterId": _CLUSTER_ID} if is_on_alibaba_cloud else {"EksClusterName": EKS_CLUSTER}


@dataclass(frozen=True)
class Scenario:
    """The scenario of one seed."""

    intensity: float
    chaos_seconds: float
    providers: tuple[CapacityProviderOffer, ...]
    capacity: Mapping[str, int | None]
    definitions: tuple[JobDefinition, ...]
    recipes: dict[str, Recipe]
    events: tuple[PlannedEvent, ...]
    limits: StackLimits
    timing: Timing
    provisioning_quota: int
    spot_prices: list[SpotPrice] = field(default_factory=list)
    on_demand_usd_per_hour: Mapping[str, float] = field(default_factory=lambda: USD_PER_HOUR)
    group_size: int = 4
    group_least: int = 0
    unpullable: frozenset[str] = frozenset()
    """The definitions whose image no instance can pull."""
    sidecars: Mapping[str, Sidecar] = field(default_factory=dict)
    """By family: the essential container beside its trainings."""
    machines: MachineScenario = field(default_factory=MachineScenario)
    granted: Mapping[str, str] = field(default_factory=dict)
    """The template's parameters that say what the roles of functions allow, if not the families of the definitions."""
    has_close_deadlines: bool = False
    """Whether deadlines leave little time, and only spot instances are taken away."""
    returning: str = ""
    """The definition of which jobs take hours, may have no spot at first, and have no limit on their time."""
    seldom: str = ""
    """The definition of which jobs take hours, save every hour or two, and are interrupted."""
    burst_family: str = ""
    """The family of which many jobs come within minutes, on machines of our own, and whose launches are refused."""
    has_shortages: bool = False
    """Whether there is no on-demand at times, and mostly no spot at first."""
    outages: tuple[Outage, ...] = ()
    task_definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By definition: members of its task definition and of its container that others do not have."""
    cluster: ClusterScenario | None = None
    has_refreshes: bool = False
    """Whether the offerings are refreshed hourly, and functions read what was stored."""
    has_commands: bool = False
    """Whether people run commands while there are faults."""
    has_groups: bool = False
    """Whether definitions have concurrency groups."""
    has_event_faults: bool = False
    """Whether PutEvents takes time, and may fail."""
    other_triggers: OtherTriggers | None = None
    """What starts jobs besides, and when people change that."""
    notices: NoticePlan | None = None
    """Who is sent what becomes of jobs; None: nobody is."""
    speeds: Mapping[str, Mapping[str, TrueSpeed]] = field(default_factory=dict)
    """By definition and instance type: how fast its trainings are, where that is not the same everywhere."""
    page_size: int | None = None
    """How much a page of a list has at most; None: as much as AWS gives."""

    @property
    def every_definition(self) -> tuple[JobDefinition, ...]:
        """Return the definitions for ECS, and the one for the cluster."""
        return (*self.definitions, self.cluster.definition) if self.cluster is not None else self.definitions

    def speed(self, definition: str, instance_type: str) -> TrueSpeed:
        """Return how fast the trainings of a definition are on an instance type."""
        return self.speeds.get(definition, {}).get(instance_type, _AS_ANYWHERE)

    def slowest(self, definition: str) -> float:
        """Return the least true speed of the trainings of a definition on any instance type."""
        return min((each.true for each in self.speeds.get(definition, {}).values()), default=1.0)

    @property
    def has_gangs(self) -> bool:
        """Return whether there are jobs of several nodes, whose tasks have the network of their machines."""
        return any(each.nodes > 1 for each in self.definitions)

    @property
    def role_parameters(self) -> Mapping[str, str]:
        """Return the template's parameters that say what the roles of functions allow."""
        families = sorted({each.task_definition for each in self.definitions})
        # Without a kubeconfig in Secrets Manager: functions sign in by their role.
        cluster = {} if self.cluster is None else self.cluster.role_parameters
        topics = {} if self.other_triggers is None else {"SnsTopicArns": ",".join(TOPICS)}
        notices = {} if self.notices is None else self.notices.parameters
        reserved = ",".join(self.machines.settings.reservation_ids)
        reservations = {"CapacityReservations": reserved} if reserved else {}
        granted = self.granted or {"TaskDefinitionFamilies": ",".join(families), **cluster}
        return {**granted, **topics, **notices, **reservations}

    def simulator_settings(self, seed: int) -> SimulatorSettings:
        """Return the settings of the ECS simulator."""
        names = dict.fromkeys((*(each.instance_type for each in self.providers), *self.machines.types))
        return SimulatorSettings(
            instance_types={name: shape_of(name) for name in names},
            account=ACCOUNT,
            region=REGION,
            timing=self.timing,
            seed=seed,
            spot_prices=self.spot_prices,
            price_of=_known_price_of,
            # Only machines of our own need the events of what remains on an instance.
            instance_resource_events=bool(self.machines.types),
            fleet=self.machines.fleet,
            requests_kept=10,
        )


def provision(simulator: EcsSimulator, scenario: Scenario) -> None:
    """Create the cluster, its capacity providers and the task definitions."""
    simulator.call("CreateCluster", {"clusterName": CLUSTER})
    for provider in scenario.providers:
        purchase = Purchase(provider.purchase.value)
        group = AutoScalingGroup(
            provider.name, provider.instance_type, purchase, ZONES, scenario.group_least, scenario.group_size
        )
        simulator.add_capacity_provider(provider.name, group, cluster=CLUSTER)
        limit = scenario.capacity[provider.name]
        simulator.set_capacity(provider.instance_type, purchase, limit)
    simulator.instances.capacity.update(scenario.machines.stock)
    simulator.scheduler.provisioning_quota = scenario.provisioning_quota
    # Their revisions were created before the run, one after the other.
    simulator.set_timing(replace(scenario.timing, revision_creation=0.0))
    for definition in scenario.definitions:
        for _ in range(2):
            image = UNPULLABLE_IMAGES if definition.name in scenario.unpullable else IMAGES
            family = definition.task_definition
            members = scenario.task_definitions.get(definition.name, {})
            has_sidecar = family in scenario.sidecars
            if definition.accelerator.neuron is not None:
                members = {**members, "accelerator": _NEURON_DEVICE}
            described = _task_definition(family, image, members, has_sidecar=has_sidecar)
            simulator.call("RegisterTaskDefinition", described)
    simulator.set_timing(scenario.timing)
    simulator.lifecycle.unpullable_images.add(f"{_REGISTRY}/{UNPULLABLE_IMAGES}@{_UNPULLABLE_DIGEST}")


def price_of(instance_type: str, zone: str, purchase: Purchase) -> float:
    """Return the price of an instance in USD per hour."""
    price = USD_PER_HOUR[instance_type]
    return price if purchase is Purchase.ON_DEMAND else round(price * _SPOT_SHARE[zone], 4)


def _known_price_of(instance_type: str, zone: str, purchase: Purchase) -> float | None:
    """Return the price of an instance; None if no company here has its type, which the bundled offerings name."""
    return price_of(instance_type, zone, purchase) if instance_type in USD_PER_HOUR else None


@cache
def shape_of(instance_type: str) -> InstanceShape:
    """Return the resources of an instance type as the catalogue has them."""
    row = load_catalogue()[instance_type]
    devices = row.neuron_devices
    model = row.accelerator_model
    return InstanceShape(row.vcpus, row.memory_mib, row.gpu_count, row.gpu_memory_mib, devices, gpu_name=model)


def _task_definition(family: str, image: str, members: Mapping[str, Any], *, has_sidecar: bool) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{_REGISTRY}/{image}:latest",
        "cpu": 2_048,
        **members.get("container", MAIN_MEMORY),
        "essential": True,
        "command": [*TASK_DEFINITION_COMMAND],
        **members.get("accelerator", _GPU),
    }
    roles = {name: f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}" for name in ("taskRoleArn", "executionRoleArn")}
    own = {"placementConstraints": members.get("placementConstraints", [])}
    if "networkMode" in members:
        own["networkMode"] = members["networkMode"]
    sidecar = {
        "name": SIDECAR,
        "image": container["image"],
        "cpu": 64,
        "memory": 128,
        "essential": True,
        "command": ["route"],
    }
    containers = [container, sidecar] if has_sidecar else [container]
    return {"family": family, "containerDefinitions": containers, **roles, **own}
