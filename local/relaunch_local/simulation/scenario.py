"""The scenario of a seed: capacity providers, job definitions, their trainings, and the events that start jobs."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import GithubTrigger, ImageWait, JobDefinition, S3Trigger
from relaunch.core.jobs.limits import StackLimits
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
from relaunch_local.simulation.aws.offerings import ON_DEMAND_USD_PER_HOUR
from relaunch_local.simulation.aws.template import ACCOUNT, CLUSTER, REGION
from relaunch_local.simulation.aws.trainings import Recipe
from relaunch_local.simulation.faults.chance import Chance

ZONES = ("us-east-1a", "us-east-1b")
INSTANCE_TYPES = tuple(ON_DEMAND_USD_PER_HOUR)
BUCKET = "acme-datasets"
SHARED = "shared/"
"""Every definition has a trigger on this prefix."""
CHECKPOINTS = "acme-checkpoints"
IMAGES = "trainer"
_SPOT_SHARE = {"us-east-1a": 0.35, "us-east-1b": 0.42}
_NAMES = ("resnet", "whisper", "bert")


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event that starts a job; `token` is in the identity of that job.

    Without a definition every definition gets a job.
    """

    at_seconds: float
    kind: str
    definition: str
    token: str
    image_after_seconds: float | None = None


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
    on_demand_usd_per_hour: Mapping[str, float] = field(default_factory=lambda: ON_DEMAND_USD_PER_HOUR)
    group_size: int = 4
    group_least: int = 0

    @classmethod
    def draw(cls, chance: Chance) -> "Scenario":
        """Draw a scenario from the seed."""
        dice = chance.stream("scenario")
        providers = _draw_providers(dice)
        definitions, recipes = [], {}
        for name in _NAMES[: dice.randint(1, 3)]:
            definition, recipe = _draw_definition(dice, name, providers)
            definitions.append(definition)
            recipes[name] = recipe
        _vary(chance.stream("scenario/varieties"), definitions, recipes)
        chaos_seconds = dice.uniform(4_000.0, 12_000.0)
        return cls(
            intensity=dice.choice((0.4, 1.0, 1.0, 1.6, 2.5)),
            chaos_seconds=chaos_seconds,
            providers=providers,
            capacity={each.name: dice.choice((None, None, None, 0, 1, 2)) for each in providers},
            definitions=tuple(definitions),
            recipes=recipes,
            events=tuple(_draw_events(dice, definitions, chaos_seconds)),
            limits=StackLimits(
                max_running_jobs=dice.choice((2, 4, 20)), provisioning_deadline_seconds=dice.choice((240, 480, 480))
            ),
            timing=_vary_timing(
                chance,
                Timing(
                    scale_out=dice.uniform(10.0, 90.0),
                    boot=dice.uniform(10.0, 60.0),
                    registration=dice.uniform(5.0, 60.0),
                    pull=dice.uniform(5.0, 120.0),
                    instance_loss_report=dice.choice((5.0, 10.0, 60.0, 300.0)),
                    stop_timeout=dice.choice((30.0, 90.0)),
                ),
            ),
            provisioning_quota=dice.choice((500, 500, 500, 2)),
            spot_prices=[
                SpotPrice(name, zone, round(_on_demand(name) * _SPOT_SHARE[zone], 4))
                for name in INSTANCE_TYPES
                for zone in ZONES
            ],
        )

    def simulator_settings(self, seed: int) -> SimulatorSettings:
        """Return the settings of the ECS simulator."""
        return SimulatorSettings(
            instance_types=_shapes(),
            account=ACCOUNT,
            region=REGION,
            timing=self.timing,
            seed=seed,
            spot_prices=self.spot_prices,
            price_of=price_of,
            instance_resource_events=False,
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
    simulator.scheduler.provisioning_quota = scenario.provisioning_quota
    for definition in scenario.definitions:
        for _ in range(2):
            simulator.call("RegisterTaskDefinition", _task_definition(definition.task_definition))


def price_of(instance_type: str, zone: str, purchase: Purchase) -> float | None:
    """Return the price of an instance in USD per hour."""
    price = _on_demand(instance_type)
    return price if purchase is Purchase.ON_DEMAND else round(price * _SPOT_SHARE[zone], 4)


def _on_demand(instance_type: str) -> float:
    return ON_DEMAND_USD_PER_HOUR[instance_type]


@cache
def _shapes() -> Mapping[str, InstanceShape]:
    catalogue = load_catalogue()
    return {
        name: InstanceShape(
            vcpus=catalogue[name].vcpus,
            memory_mib=catalogue[name].memory_mib,
            gpus=catalogue[name].gpu_count,
            gpu_memory_mib=catalogue[name].gpu_memory_mib,
            gpu_name=catalogue[name].accelerator_model,
        )
        for name in INSTANCE_TYPES
    }


def _task_definition(family: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{IMAGES}:latest",
        "cpu": 2_048,
        "memory": 8_192,
        "essential": True,
        "command": ["train"],
        "resourceRequirements": [{"type": "GPU", "value": "1"}],
    }
    return {"family": family, "containerDefinitions": [container]}


def _draw_providers(dice: random.Random) -> tuple[CapacityProviderOffer, ...]:
    every = [(name, purchase) for name in INSTANCE_TYPES for purchase in PurchaseOption]
    chosen = dice.sample(every, dice.randint(2, 5))
    return tuple(
        CapacityProviderOffer(f"{name.replace('.', '-')}-{purchase}", name, purchase) for name, purchase in chosen
    )


def _draw_definition(
    dice: random.Random, name: str, providers: tuple[CapacityProviderOffer, ...]
) -> tuple[JobDefinition, Recipe]:
    bought = {each.purchase for each in providers}
    policies = [PurchasePolicy.SPOT_THEN_ON_DEMAND] * 2 + [PurchasePolicy(each.value) for each in sorted(bought)]
    is_endless = dice.random() < 0.12
    work_seconds = 10_000_000.0 if is_endless else dice.uniform(200.0, 4_000.0)
    max_runtime = timedelta(minutes=dice.randint(20, 60)) if is_endless else timedelta(hours=48)
    checkpoint_seconds = dice.choice((None, dice.uniform(60.0, 600.0), dice.uniform(60.0, 600.0)))
    wait = ImageWait(IMAGES, timeout=timedelta(minutes=30)) if dice.random() < 0.3 else None
    definition = JobDefinition(
        name=name,
        task_definition=f"{name}-trainer",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=8 * 1024)),
        container=dice.choice((None, "main")),
        triggers=(
            GithubTrigger(f"acme/{name}", "push", branches=("main",), wait_for_image=wait),
            S3Trigger(BUCKET, prefix=f"{name}/", suffix=".manifest"),
            S3Trigger(BUCKET, prefix=SHARED, suffix=".manifest"),
        ),
        environment={"RECIPE": name},
        purchase=dice.choice(policies),
        checkpoint_uri=f"s3://{CHECKPOINTS}/{name}/" if checkpoint_seconds is not None else None,
        max_runtime=max_runtime,
        deadline=timedelta(hours=5) if dice.random() < 0.1 else None,
        max_running_jobs=dice.choice((1, 2, 5)),
        max_failures=dice.choice((0, 1, 2)),
        max_price_usd_per_hour=dice.choice((None, None, 0.9)),
    )
    return definition, _draw_recipe(dice, work_seconds, checkpoint_seconds)


def _vary(dice: random.Random, definitions: list[JobDefinition], recipes: dict[str, Recipe]) -> None:
    """Give some definitions a near deadline; let some trainings exit when warned, and some fail at once."""
    for index, definition in enumerate(definitions):
        if dice.random() < 0.15:
            definitions[index] = replace(definition, deadline=timedelta(seconds=dice.uniform(1_200.0, 9_000.0)))
        recipe = replace(recipes[definition.name], leaves_on_warning=dice.random() < 0.35)
        if dice.random() < 0.08:
            recipe = replace(recipe, failures=4, failure_after_seconds=dice.uniform(0.5, 3.0))
        recipes[definition.name] = recipe


def _vary_timing(chance: Chance, timing: Timing) -> Timing:
    """Vary the pull time, and how long ECS waits for capacity."""
    dice = chance.stream("scenario/timing")
    # AWS documents 10 to 30 minutes.
    timing = replace(timing, provisioning_timeout=dice.choice((600.0, 900.0, 1_800.0)))
    # Tasks that start and stop within one minute.
    return replace(timing, pull=dice.uniform(0.5, 5.0), instance_loss_report=5.0) if dice.random() < 0.2 else timing


def _draw_recipe(dice: random.Random, work_seconds: float, checkpoint_seconds: float | None) -> Recipe:
    return Recipe(
        work_seconds=work_seconds,
        checkpoint_seconds=checkpoint_seconds,
        save_seconds=dice.uniform(1.0, 40.0),
        failures=dice.choice((0, 0, 0, 1, 2, 4)),
        exit_code=dice.choice((1, 2, 137, 139)),
        failure_after_seconds=dice.uniform(1.0, 400.0),
        sigterm_exit_code=dice.choice((0, 0, 143, 1)),
        saves_on_sigterm=dice.random() < 0.7,
        ignores_sigterm=dice.random() < 0.1,
    )


def _draw_events(dice: random.Random, definitions: list[JobDefinition], chaos_seconds: float) -> list[PlannedEvent]:
    events: list[PlannedEvent] = []
    for number in range(dice.randint(3, 6)):
        definition = dice.choice(definitions)
        at_seconds = dice.uniform(5.0, chaos_seconds * 0.6)
        kind = dice.choice(("push", "push", "upload", "request"))
        wait = next((each.wait_for_image for each in definition.triggers if isinstance(each, GithubTrigger)), None)
        image_after = dice.choice((10.0, 400.0, 1_500.0, None)) if kind == "push" and wait else None
        events.append(PlannedEvent(at_seconds, kind, definition.name, _token(dice, kind, number), image_after))
    if dice.random() < 0.4:
        definition, at_seconds = dice.choice(definitions), dice.uniform(5.0, chaos_seconds * 0.5)
        events += [
            PlannedEvent(at_seconds + dice.uniform(0.0, 3.0), "upload", definition.name, _token(dice, "upload", number))
            for number in range(10, 10 + dice.randint(2, 5))
        ]
    if dice.random() < 0.25:
        at_seconds = dice.uniform(5.0, chaos_seconds * 0.5)
        events.append(PlannedEvent(at_seconds, "upload", "", _token(dice, "upload", 20)))
    return events


def _token(dice: random.Random, kind: str, number: int) -> str:
    return f"{dice.getrandbits(160):040x}" if kind == "push" else f"{kind}-{number:02d}"
