"""What the companies of some seeds have: machines of their own, large instances, hundreds of jobs, sidecars."""

import random
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import AcceleratorRequirement, NeuronPurpose, NeuronRequirement
from relaunch.core.machines.limits import TaskStop
from relaunch.core.offerings.instance_types import AmiKind
from relaunch_local.ecs import Purchase, SpotPrice
from relaunch_local.ecs.processes.port import SIGTERM_EXIT
from relaunch_local.simulation.aws.recipes import Sidecar
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.definition_scenario import draw_constraints, draw_memory
from relaunch_local.simulation.instance_types import LARGE_TYPES, NEURON_TYPES, NEURON_USD_PER_HOUR
from relaunch_local.simulation.machine_scenario import draw_machines
from relaunch_local.simulation.scenario import INSTANCE_TYPES, ZONES, PlannedEvent, Scenario, price_of

_UNPULLABLE_SHARE = 0.1
_LARGE_TYPES_SHARE = 0.2
# A big company takes as long to simulate as dozens of others.
_BIG_COMPANY_EVERY = 100
_SIDECARS_SHARE = 0.1
_NEURON_SHARE = 0.08
_ESTIMATES_SHARE = 0.15
_HUNDREDS = 250
_MACHINES_FOR_HUNDREDS = 20


def with_sidecars(dice: random.Random, scenario: Scenario) -> Scenario:
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


def vary_company(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies have images that cannot be pulled, instances of several GPUs, or hundreds of jobs."""
    dice = chance.stream("scenario/company")
    if dice.random() < _UNPULLABLE_SHARE:
        scenario = replace(scenario, unpullable=frozenset({dice.choice(scenario.definitions).name}))
    is_big = chance.seed % _BIG_COMPANY_EVERY == _BIG_COMPANY_EVERY - 1
    if is_big or dice.random() < _LARGE_TYPES_SHARE:
        scenario = _with_large_types(scenario)
    return _with_hundreds_of_jobs(dice, scenario) if is_big else scenario


def with_machines(chance: Chance, scenario: Scenario) -> Scenario:
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


def with_constraints(chance: Chance, scenario: Scenario) -> Scenario:
    """Let task definitions have placement constraints, and containers a limit above what they reserve."""
    dice = chance.stream("scenario/task-definitions")
    machines = scenario.machines
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


def with_neuron(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let some companies run on Neuron devices instead of GPUs: on types with one, or with six, that tasks share."""
    names = {each.instance_type for each in scenario.providers} | set(scenario.machines.types)
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.has_shortages or scenario.burst_family
    # The simulated EC2 describes no Neuron devices.
    if is_spared or scenario.has_refreshes or names & set(LARGE_TYPES.values()) or dice.random() >= _NEURON_SHARE:
        return scenario
    neuron = AcceleratorRequirement(neuron=NeuronRequirement(devices=1, purpose=NeuronPurpose.INFERENCE))
    machines = replace(
        scenario.machines.with_types([NEURON_TYPES[name] for name in scenario.machines.types]),
        ami=AmiKind.NEURON,
        has_close_quota=False,
    )
    return replace(
        scenario,
        machines=machines,
        limits=replace(scenario.limits, machines=machines.limits),
        providers=tuple(replace(each, instance_type=NEURON_TYPES[each.instance_type]) for each in scenario.providers),
        definitions=tuple(
            replace(each, accelerator=neuron, max_price_usd_per_hour=None) for each in scenario.definitions
        ),
        on_demand_usd_per_hour=NEURON_USD_PER_HOUR,
        spot_prices=[
            SpotPrice(name, zone, price_of(name, zone, Purchase.SPOT)) for name in NEURON_USD_PER_HOUR for zone in ZONES
        ],
    )


def with_estimates(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let some definitions say how long their trainings take, more or less right."""
    if scenario.has_close_deadlines or scenario.returning or dice.random() >= _ESTIMATES_SHARE:
        return scenario
    definitions = []
    for each in scenario.definitions:
        seconds = min(scenario.recipes[each.name].work_seconds, 4_000.0) * dice.uniform(0.4, 1.6)
        definitions.append(each if each.deadline else replace(each, estimated_duration=timedelta(seconds=seconds)))
    return replace(scenario, definitions=tuple(definitions))


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
