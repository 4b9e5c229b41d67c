"""Draws the scenario of a seed."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

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
from relaunch.ports import CapacityProviderOffer
from relaunch_local.ecs import Purchase, SpotPrice, Timing
from relaunch_local.simulation.aws.outages import EVENTS, SERVICES, SSM, Kind, Outage
from relaunch_local.simulation.aws.recipes import MACHINE_EXIT_CODE, Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.cluster_gang_scenario import gains_cluster, has_cluster_gang, with_cluster_gang
from relaunch_local.simulation.cluster_scenario import with_cluster
from relaunch_local.simulation.company_scenario import (
    vary_company,
    with_constraints,
    with_estimates,
    with_machines,
    with_neuron,
    with_sidecars,
)
from relaunch_local.simulation.definition_scenario import is_constrained
from relaunch_local.simulation.gang_scenario import has_gang, with_gang
from relaunch_local.simulation.gpu_share_scenario import with_gpu_shares
from relaunch_local.simulation.group_scenario import with_groups
from relaunch_local.simulation.instance_types import ON_DEMAND_USD_PER_HOUR
from relaunch_local.simulation.job_scenario import (
    with_burst,
    with_limits,
    with_returns,
    with_seldom_saves,
    with_stalled_trainings,
)
from relaunch_local.simulation.notice_scenario import with_notices
from relaunch_local.simulation.other_trigger_scenario import with_other_triggers
from relaunch_local.simulation.reservation_scenario import with_reservations, with_reserved_gang
from relaunch_local.simulation.scenario import (
    BUCKET,
    CHECKPOINTS,
    IMAGES,
    INSTANCE_TYPES,
    SHARED,
    ZONES,
    PlannedEvent,
    Scenario,
    price_of,
)
from relaunch_local.simulation.speed_scenario import with_speeds
from relaunch_local.simulation.trigger_scenario import with_triggers

_COMMAND = ("train", "--fast")
_INPUTS = {"batch-size": InputRule("[0-9]+", "32"), "note": InputRule(".*", "")}
"""The command and the inputs of some definitions; the other trainings run the command of their task definition."""
_OUTAGES_SHARE = 0.12
_EVENTS_OUTAGES_SHARE = 0.1
_EVENT_FAULTS_SHARE = 0.2
_SSM_OUTAGES_SHARE = 0.05
_SMALL_PAGES_SHARE = 0.2
_REFRESHES_SHARE = 0.15
_COMMANDS_SHARE = 0.4
_LARGEST_PAGE = 100
_NAMES = ("resnet", "whisper", "bert")


def draw_scenario(chance: Chance, *, has_gangs: bool = False) -> Scenario:
    """Draw a scenario from the seed; in some, with `has_gangs` in each, jobs of one definition have several nodes."""
    drawn = _draw_scenario(chance)
    if has_cluster_gang(chance.seed) or (has_gangs and (drawn.cluster is not None or gains_cluster(chance.seed))):
        drawn = with_cluster_gang(chance, drawn)
    if has_gangs or has_gang(chance.seed):
        drawn = with_reserved_gang(chance, with_gang(chance, drawn))
    return with_speeds(chance, drawn)


def _draw_scenario(chance: Chance) -> Scenario:
    dice = chance.stream("scenario")
    providers = _draw_providers(dice)
    definitions = []
    recipes = {}
    for name in _NAMES[: dice.randint(1, 3)]:
        definition, recipe = _draw_definition(dice, name, providers)
        definitions.append(definition)
        recipes[name] = recipe
    _vary(chance.stream("scenario/varieties"), definitions, recipes)
    chaos_seconds = dice.uniform(4_000.0, 12_000.0)
    scenario = Scenario(
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
    limited = with_limits(chance, with_machines(chance, vary_company(chance, scenario)))
    limited = with_returns(chance, with_stalled_trainings(chance, limited))
    limited = with_burst(chance, with_seldom_saves(chance, limited))
    drawn = with_outages(chance.stream("scenario/outages"), with_sidecars(chance.stream("scenario/sidecars"), limited))
    retry = RetryRules(machine_exit_codes=(MACHINE_EXIT_CODE,))
    drawn = replace(drawn, definitions=tuple(replace(each, retry=retry) for each in drawn.definitions))
    drawn = with_cluster(chance, with_triggers(chance, drawn))
    drawn = _with_ssm_outage(chance.stream("scenario/ssm"), drawn)
    drawn = _with_events_outage(chance.stream("scenario/events"), drawn)
    drawn = with_groups(chance, with_estimates(chance.stream("scenario/estimates"), drawn))
    # Where jobs go back to spot, they would not where EC2's placement scores call it scarce.
    has_refreshes = chance.stream("scenario/refreshes").random() < _REFRESHES_SHARE and not drawn.returning
    has_commands = chance.stream("scenario/commands").random() < _COMMANDS_SHARE
    drawn = replace(drawn, has_refreshes=has_refreshes, has_commands=has_commands)
    drawn = with_notices(chance, drawn)
    drawn = replace(drawn, page_size=_draw_page_size(chance.stream("scenario/pages"), drawn))
    constrained = is_constrained(chance.seed)
    drawn = with_constraints(chance, drawn) if constrained else with_neuron(chance.stream("scenario/neuron"), drawn)
    drawn = with_gpu_shares(chance.stream("scenario/gpu-shares"), drawn)
    return with_reservations(chance, with_other_triggers(chance, drawn))


def with_outages(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let a service be away in some seeds, for a minute to three hours; not where times are promised to the minute."""
    if scenario.has_close_deadlines or scenario.returning or dice.random() >= _OUTAGES_SHARE:
        return scenario
    seconds = 60.0 * 180.0 ** dice.random()
    begins_at = dice.uniform(0.0, scenario.chaos_seconds)
    return replace(scenario, outages=(Outage(dice.choice(SERVICES), begins_at, seconds, dice.choice(tuple(Kind))),))


def _with_ssm_outage(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let Systems Manager, which names the AMI of machines of our own, be away in some runs without other outages."""
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.outages or not scenario.machines.types
    if is_spared or dice.random() >= _SSM_OUTAGES_SHARE:
        return scenario
    seconds = 60.0 * 180.0 ** dice.random()
    begins_at = dice.uniform(0.0, scenario.chaos_seconds * 0.6)
    return replace(scenario, outages=(Outage(SSM, begins_at, seconds, dice.choice(tuple(Kind))),))


def _with_events_outage(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let calls of PutEvents fail in some runs, in some without other outages for most of the time with faults."""
    draw = dice.random()
    scenario = replace(scenario, has_event_faults=draw < _EVENT_FAULTS_SHARE)
    if scenario.outages or draw >= _EVENTS_OUTAGES_SHARE:
        return scenario
    begins_at = dice.uniform(0.0, 0.3) * scenario.chaos_seconds
    seconds = dice.uniform(0.3, 1.0) * scenario.chaos_seconds
    return replace(scenario, outages=(Outage(EVENTS, begins_at, seconds, dice.choice(tuple(Kind))),))


def _draw_page_size(dice: random.Random, scenario: Scenario) -> int | None:
    """Draw how small the pages of lists are; None in most runs: as large as AWS gives them, which has room for all."""
    # Hundreds of tasks have a second page anyway, and in small ones would take more calls than a sweep has time for.
    is_small = dice.random() < _SMALL_PAGES_SHARE and len(scenario.events) < _LARGEST_PAGE
    return dice.randint(1, 4) if is_small else None


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
            definitions[index] = replace(definitions[index], command=_COMMAND, inputs=_INPUTS)
        recipe = replace(recipes[definition.name], leaves_on_warning=dice.random() < 0.35)
        if dice.random() < 0.08:
            recipe = replace(recipe, failures=4, failure_after_seconds=dice.uniform(0.5, 3.0))
        recipes[definition.name] = recipe


def _draw_on_demand_prices(dice: random.Random) -> Mapping[str, float]:
    """Draw the known on-demand prices: in some runs that of one type is not."""
    unpriced = dice.choice(INSTANCE_TYPES) if dice.random() < 0.15 else None
    return {name: price for name, price in ON_DEMAND_USD_PER_HOUR.items() if name != unpriced}


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
        definition = dice.choice(definitions)
        at_seconds = dice.uniform(5.0, chaos_seconds * 0.5)
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
