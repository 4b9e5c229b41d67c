"""The scenario of a seed: capacity providers, job definitions, their trainings, and the events that start jobs."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.definition import (
    GithubTrigger,
    ImageWait,
    InputRule,
    JobDefinition,
    RetryRules,
    S3Trigger,
)
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.machines.limits import TaskStop
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
from relaunch_local.ecs.processes.port import SIGTERM_EXIT
from relaunch_local.simulation.aws.template import ACCOUNT, CLUSTER, REGION
from relaunch_local.simulation.aws.trainings import MACHINE_EXIT_CODE, SIDECAR, Recipe, Sidecar, work_of
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.definition_scenario import MAIN_MEMORY, draw_constraints, draw_memory, is_constrained
from relaunch_local.simulation.instance_types import LARGE_TYPES, ON_DEMAND_USD_PER_HOUR, USD_PER_HOUR
from relaunch_local.simulation.limit_scenario import (
    draw_close_deadlines,
    draw_limits,
    draw_moves,
    draws_moves,
    with_estimates,
)
from relaunch_local.simulation.machine_scenario import MachineScenario, draw_any_machines, draw_machines

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
COMMAND = ("train", "--fast")
INPUTS = {"batch-size": InputRule("[0-9]+", "32"), "note": InputRule(".*", "")}
"""The command and the inputs of some definitions; the other trainings run the command of their task definition."""
_REGISTRY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
_SPOT_SHARE = {"us-east-1a": 0.35, "us-east-1b": 0.42}
_NAMES = ("resnet", "whisper", "bert")
FAMILIES = tuple(f"{name}-trainer" for name in _NAMES)
"""The families of the task definitions."""
_UNPULLABLE_SHARE = 0.1
_LARGE_TYPES_SHARE = 0.2
# A big company takes as long to simulate as dozens of others.
_BIG_COMPANY_EVERY = 100
_LIMITED_EVERY = 4
_CLOSE_EVERY = 12
_SHORTAGES_SHARE = 0.5
_SIDECARS_SHARE = 0.1
_STALLED_EVERY, _FIRST_STALLED = 20, 13
_RETURNING_EVERY, _FIRST_RETURNING = 20, 7
_BURST_EVERY, _FIRST_BURST = 40, 36
_BURST = 16
_HUNDREDS = 250
_MACHINES_FOR_HUNDREDS = 20


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
    burst_family: str = ""
    """The family of which many jobs come within minutes, on machines of our own, and whose launches are refused."""
    has_shortages: bool = False
    """Whether there is no on-demand at times, and mostly no spot at first."""
    task_definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By definition: members of its task definition and of its container that others do not have."""

    @property
    def role_parameters(self) -> Mapping[str, str]:
        """Return the template's parameters that say what the roles of functions allow."""
        families = sorted({each.task_definition for each in self.definitions})
        return self.granted or {"TaskDefinitionFamilies": ",".join(families)}

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
        scenario = cls(
            intensity=dice.choice((0.4, 1.0, 1.0, 1.6, 2.5)),
            chaos_seconds=chaos_seconds,
            providers=providers,
            capacity={each.name: dice.choice((None, None, None, 0, 1, 2)) for each in providers},
            definitions=tuple(definitions),
            recipes=recipes,
            events=tuple(_draw_events(dice, definitions, chaos_seconds)),
            limits=StackLimits(
                max_running_jobs=dice.choice((2, 4, 20)), provisioning_deadline_seconds=dice.choice((240, 480, 0))
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
                SpotPrice(name, zone, price_of(name, zone, Purchase.SPOT)) for name in INSTANCE_TYPES for zone in ZONES
            ],
            on_demand_usd_per_hour=_draw_on_demand_prices(chance.stream("scenario/prices")),
        )
        limited = _with_limits(chance, _with_machines(chance, _vary_company(chance, scenario)))
        limited = _with_burst(chance, _with_returns(chance, _with_stalled_trainings(chance, limited)))
        drawn = _with_sidecars(chance.stream("scenario/sidecars"), limited)
        retry = RetryRules(machine_exit_codes=(MACHINE_EXIT_CODE,))
        drawn = replace(drawn, definitions=tuple(replace(each, retry=retry) for each in drawn.definitions))
        return _with_constraints(chance, drawn) if is_constrained(chance.seed) else drawn

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
            price_of=price_of,
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
    simulator.scheduler.provisioning_quota = scenario.provisioning_quota
    # Their revisions were created before the run, one after the other.
    simulator.set_timing(replace(scenario.timing, revision_creation=0.0))
    for definition in scenario.definitions:
        for _ in range(2):
            image = UNPULLABLE_IMAGES if definition.name in scenario.unpullable else IMAGES
            family, members = definition.task_definition, scenario.task_definitions.get(definition.name, {})
            has_sidecar = family in scenario.sidecars
            described = _task_definition(family, image, members, has_sidecar=has_sidecar)
            simulator.call("RegisterTaskDefinition", described)
    simulator.set_timing(scenario.timing)
    simulator.lifecycle.unpullable_images.add(f"{_REGISTRY}/{UNPULLABLE_IMAGES}@{_UNPULLABLE_DIGEST}")


def price_of(instance_type: str, zone: str, purchase: Purchase) -> float:
    """Return the price of an instance in USD per hour."""
    price = USD_PER_HOUR[instance_type]
    return price if purchase is Purchase.ON_DEMAND else round(price * _SPOT_SHARE[zone], 4)


@cache
def shape_of(instance_type: str) -> InstanceShape:
    """Return the resources of an instance type as the catalogue has them."""
    row = load_catalogue()[instance_type]
    return InstanceShape(row.vcpus, row.memory_mib, row.gpu_count, row.gpu_memory_mib, gpu_name=row.accelerator_model)


def _task_definition(family: str, image: str, members: Mapping[str, Any], *, has_sidecar: bool) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{_REGISTRY}/{image}:latest",
        "cpu": 2_048,
        **members.get("container", MAIN_MEMORY),
        "essential": True,
        "command": [*TASK_DEFINITION_COMMAND],
        "resourceRequirements": [{"type": "GPU", "value": "1"}],
    }
    roles = {name: f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}" for name in ("taskRoleArn", "executionRoleArn")}
    own = {"placementConstraints": members.get("placementConstraints", [])}
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


def _draw_providers(dice: random.Random) -> tuple[CapacityProviderOffer, ...]:
    every = [
        (name, purchase) for name in INSTANCE_TYPES for purchase in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND)
    ]
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
    """Give some definitions a near deadline or inputs; let some trainings exit when warned, and some fail at once."""
    for index, definition in enumerate(definitions):
        if dice.random() < 0.15:
            definitions[index] = replace(definition, deadline=timedelta(seconds=dice.uniform(1_200.0, 9_000.0)))
        if dice.random() < 0.5:
            definitions[index] = replace(definitions[index], command=COMMAND, inputs=INPUTS)
        recipe = replace(recipes[definition.name], leaves_on_warning=dice.random() < 0.35)
        if dice.random() < 0.08:
            recipe = replace(recipe, failures=4, failure_after_seconds=dice.uniform(0.5, 3.0))
        recipes[definition.name] = recipe


def _draw_on_demand_prices(dice: random.Random) -> Mapping[str, float]:
    """Draw the known on-demand prices: in some runs that of one type is not."""
    unpriced = dice.choice(INSTANCE_TYPES) if dice.random() < 0.15 else None
    return {name: price for name, price in ON_DEMAND_USD_PER_HOUR.items() if name != unpriced}


def _with_sidecars(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let some companies ship their logs by an essential container, which dies at times."""
    if scenario.has_close_deadlines or scenario.returning or dice.random() >= _SIDECARS_SHARE:
        return scenario
    definition = dice.choice(scenario.definitions)
    sigterm_exit_code = dice.choice((0, SIGTERM_EXIT, None))
    sidecar = Sidecar(
        deaths=dice.choice((1, 1, 2, 4)),
        dies_after_seconds=dice.uniform(1.0, 150.0),
        exit_code=dice.choice((139, 139, 1)),
        sigterm_exit_code=sigterm_exit_code,
        sigterm_seconds=dice.uniform(0.1, 8.0),
    )
    recipe = replace(scenario.recipes[definition.name], sigterm_exit_code=dice.choice((0, 0, SIGTERM_EXIT)))
    return replace(
        scenario,
        recipes={**scenario.recipes, definition.name: recipe},
        definitions=tuple(
            replace(each, container="main") if each is definition else each for each in scenario.definitions
        ),
        sidecars={definition.task_definition: sidecar},
        timing=replace(scenario.timing, container_report=dice.choice((0.0, dice.uniform(0.1, 20.0)))),
    )


def _vary_company(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies have images that cannot be pulled, instances of several GPUs, or hundreds of jobs."""
    dice = chance.stream("scenario/company")
    if dice.random() < _UNPULLABLE_SHARE:
        scenario = replace(scenario, unpullable=frozenset({dice.choice(scenario.definitions).name}))
    is_big = chance.seed % _BIG_COMPANY_EVERY == _BIG_COMPANY_EVERY - 1
    if is_big or dice.random() < _LARGE_TYPES_SHARE:
        scenario = _with_large_types(scenario)
    return _with_hundreds_of_jobs(dice, scenario) if is_big else scenario


def _with_machines(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the company have machines of its own, capacity providers, or both."""
    machines, has_providers = draw_machines(chance.stream("scenario/machines"), INSTANCE_TYPES, ZONES)
    if not machines.types:
        return scenario
    if any(each.instance_type in LARGE_TYPES.values() for each in scenario.providers):
        machines = machines.with_types([LARGE_TYPES[name] for name in machines.types])
    if len(scenario.events) >= _HUNDREDS:
        # With fewer, hundreds of jobs take days.
        machines = replace(machines, limits=replace(machines.limits, max_machines=_MACHINES_FOR_HUNDREDS))
    providers, capacity = (scenario.providers, scenario.capacity) if has_providers else ((), {})
    # By a stream of its own, so that seeds keep what they draw otherwise.
    task_stop = chance.stream("scenario/task-stop").choice(tuple(TaskStop))
    machines = replace(machines, limits=replace(machines.limits, task_stop=task_stop))
    limits = replace(scenario.limits, machines=machines.limits)
    return replace(scenario, machines=machines, providers=providers, capacity=capacity, limits=limits)


def _with_constraints(chance: Chance, scenario: Scenario) -> Scenario:
    """Let task definitions have placement constraints, and containers a limit above what they reserve."""
    dice, machines = chance.stream("scenario/task-definitions"), scenario.machines
    own = (machines.types, machines.zones)
    prices = scenario.on_demand_usd_per_hour
    members = {
        each.name: {
            "placementConstraints": draw_constraints(dice, each, scenario.providers, own, prices),
            "container": draw_memory(dice),
        }
        for each in scenario.definitions
    }
    return replace(scenario, task_definitions=members)


def _with_limits(chance: Chance, scenario: Scenario) -> Scenario:
    """Let market policies launch the jobs of some definitions, which have a deadline or patience."""
    if chance.seed % _LIMITED_EVERY != _LIMITED_EVERY // 2:
        return scenario
    if chance.seed % _CLOSE_EVERY == _CLOSE_EVERY - _LIMITED_EVERY // 2:
        return _with_close_deadlines(chance.stream("scenario/close-deadlines"), scenario)
    limited = _with_policies(chance.stream("scenario/limits"), scenario)
    # By a stream of its own, so that seeds keep what they draw otherwise.
    return replace(limited, definitions=with_estimates(chance.stream("scenario/estimates"), limited.definitions))


def _with_returns(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs of one definition take so long that they go back to spot, which there is none of at first."""
    is_chosen = chance.seed % _RETURNING_EVERY == _FIRST_RETURNING and not is_constrained(chance.seed)
    if not is_chosen or not scenario.machines.types:
        return scenario
    dice = chance.stream("scenario/returns")
    chosen = dice.choice(scenario.definitions)
    recipe = replace(
        scenario.recipes[chosen.name],
        work_seconds=dice.uniform(9.0, 11.0) * 3_600,
        checkpoint_seconds=dice.uniform(100.0, 600.0),
        failures=0,
        leaves_on_warning=False,
    )
    definition = replace(
        chosen,
        purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
        checkpoint_uri=f"s3://{CHECKPOINTS}/{chosen.name}/",
        estimated_duration=dice.choice((None, work_of(recipe))),
        deadline=None,
        max_runtime=timedelta(hours=48),
        # One after the other they would take days.
        max_running_jobs=20,
        max_price_usd_per_hour=None,
    )
    limits = replace(scenario.machines.limits, max_machines=20, max_usd_per_hour=0.0)
    return replace(
        scenario,
        definitions=tuple(definition if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        limits=replace(scenario.limits, max_running_jobs=20, machines=limits),
        machines=replace(scenario.machines, limits=limits),
        unpullable=scenario.unpullable - {chosen.name},
        returning=chosen.name,
    )


def _with_stalled_trainings(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some jobs of one definition with checkpoints run without gaining a step, from the start or from later on."""
    saving = [each for each in scenario.definitions if each.checkpoint_uri is not None]
    if chance.seed % _STALLED_EVERY != _FIRST_STALLED or not saving:
        return scenario
    dice = chance.stream("scenario/stalled")
    chosen = dice.choice(saving)
    # One after the other they would take days.
    stalled = replace(chosen, deadline=None, max_runtime=timedelta(hours=48), max_running_jobs=5)
    work_seconds = dice.uniform(600.0, 4_000.0)
    recipe = replace(
        scenario.recipes[chosen.name],
        work_seconds=work_seconds,
        failures=0,
        leaves_on_warning=False,
        stalls_after_seconds=dice.choice((0.0, dice.uniform(0.0, 1.0) * work_seconds)),
        stalled_share=dice.choice((0.5, 1.0)),
    )
    limits = replace(scenario.machines.limits, max_machines=20, max_usd_per_hour=0.0)
    return replace(
        scenario,
        definitions=tuple(stalled if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        limits=replace(scenario.limits, max_running_jobs=20, machines=limits),
        machines=replace(scenario.machines, limits=limits),
    )


def _with_burst(chance: Chance, scenario: Scenario) -> Scenario:
    """Let more jobs of one family come within minutes than one cause may cost machines in a day, each to have one."""
    if chance.seed % _BURST_EVERY != _FIRST_BURST:
        return scenario
    dice = chance.stream("scenario/burst")
    machines = draw_any_machines(dice, INSTANCE_TYPES, ZONES)
    machines = replace(machines, limits=replace(machines.limits, max_machines=3 * _BURST))
    chosen = dice.choice(scenario.definitions)
    burst = replace(chosen, deadline=None, max_running_jobs=_BURST, max_price_usd_per_hour=None)
    recipe = replace(scenario.recipes[chosen.name], work_seconds=dice.uniform(200.0, 900.0), failures=0)
    begins_at = dice.uniform(60.0, 900.0)
    uploads = (
        PlannedEvent(begins_at + dice.uniform(0.0, 300.0), "upload", chosen.name, f"burst-{number}")
        for number in range(100, 100 + _BURST)
    )
    return replace(
        scenario,
        # Few machines get as far as a refusal at a higher rate.
        intensity=min(scenario.intensity, 0.4),
        providers=(),
        capacity={},
        definitions=tuple(burst if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        events=(*scenario.events, *uploads),
        limits=replace(scenario.limits, max_running_jobs=2 * _BURST, machines=machines.limits),
        machines=machines,
        unpullable=frozenset(),
        burst_family=chosen.task_definition,
    )


def _with_policies(dice: random.Random, scenario: Scenario) -> Scenario:
    machines = scenario.machines
    if not machines.types or not draws_moves(dice):
        return replace(scenario, definitions=draw_limits(dice, scenario.definitions, scenario.recipes))
    definitions, recipes = draw_moves(dice, scenario.definitions, scenario.recipes, CHECKPOINTS)
    limits = replace(machines.limits, max_machines=20, max_usd_per_hour=0.0)
    owned = replace(
        scenario, machines=replace(machines, limits=limits), limits=replace(scenario.limits, machines=limits)
    )
    return replace(owned, definitions=definitions, recipes=recipes)


def _with_close_deadlines(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let the company have machines of its own alone, trainings of hours, and deadlines close to their work."""
    machines = draw_any_machines(dice, INSTANCE_TYPES, ZONES)
    has_shortages = dice.random() < _SHORTAGES_SHARE
    definitions, recipes = draw_close_deadlines(
        dice, scenario.definitions, scenario.recipes, CHECKPOINTS, save_seldom=not has_shortages
    )
    return replace(
        scenario,
        intensity=min(scenario.intensity, 1.0),
        chaos_seconds=dice.uniform(9_000.0, 20_000.0),
        providers=(),
        capacity={},
        definitions=definitions,
        recipes=recipes,
        limits=replace(scenario.limits, max_running_jobs=20, machines=machines.limits),
        machines=machines,
        unpullable=frozenset(),
        has_close_deadlines=True,
        has_shortages=has_shortages,
    )


def _with_large_types(scenario: Scenario) -> Scenario:
    """Replace the instance types by those with several GPUs, which several tasks share."""
    providers = tuple(replace(each, instance_type=LARGE_TYPES[each.instance_type]) for each in scenario.providers)
    definitions = (replace(each, max_running_jobs=8, max_price_usd_per_hour=None) for each in scenario.definitions)
    return replace(
        scenario,
        providers=providers,
        definitions=tuple(definitions),
        limits=replace(scenario.limits, max_running_jobs=20),
        spot_prices=[
            SpotPrice(name, zone, price_of(name, zone, Purchase.SPOT))
            for name in LARGE_TYPES.values()
            for zone in ZONES
        ],
    )


def _with_hundreds_of_jobs(dice: random.Random, scenario: Scenario) -> Scenario:
    """Add uploads within a quarter of an hour; more tasks run at once than a page of ListTasks has (100)."""
    first = scenario.definitions[0]
    definition = replace(first, max_running_jobs=_HUNDREDS, deadline=None)
    uploads = (
        PlannedEvent(dice.uniform(60.0, 900.0), "upload", first.name, f"many-{number}")
        for number in range(1_000, 1_000 + _HUNDREDS)
    )
    recipe = replace(scenario.recipes[first.name], work_seconds=dice.uniform(900.0, 1_800.0))
    return replace(
        scenario,
        # A function is killed by the step: at a higher rate a run over hundreds of jobs would never get far.
        intensity=min(scenario.intensity, 0.4),
        capacity=dict.fromkeys(scenario.capacity),
        definitions=(definition, *scenario.definitions[1:]),
        recipes={**scenario.recipes, first.name: recipe},
        events=(*scenario.events, *uploads),
        limits=replace(scenario.limits, max_running_jobs=2 * _HUNDREDS),
        provisioning_quota=500,
        group_size=_HUNDREDS,
        unpullable=scenario.unpullable - {first.name},
    )


def _vary_timing(chance: Chance, timing: Timing) -> Timing:
    """Vary the pull time, how long ECS waits for capacity, and how long it creates a revision."""
    timing = replace(timing, revision_creation=chance.stream("scenario/revisions").uniform(0.2, 3.0))
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
