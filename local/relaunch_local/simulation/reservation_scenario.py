"""The capacity reservations of some companies: blocks and others, that begin, end, are cancelled, or are shared."""

import random
from dataclasses import replace

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import Target
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.machine_scenario import MachineScenario, PlannedReservation
from relaunch_local.simulation.scenario import Scenario

_SHARE = 0.08
_GANG_SHARE = 0.35
_FIRST_GANG = 400
"""The first seed whose gang may take what is reserved; those before it are as without."""
_IDS = ("cr-0a11c0a11c0a11c00", "cr-0de0de0de0de0de00")
"""Another block is announced in other seeds too: `capacity-block-of-others-ends`."""
_POLICIES = {
    PurchasePolicy.SPOT: PurchasePolicy.RESERVED_THEN_SPOT,
    PurchasePolicy.ON_DEMAND: PurchasePolicy.RESERVED_THEN_ON_DEMAND,
    PurchasePolicy.SPOT_THEN_ON_DEMAND: PurchasePolicy.RESERVED_THEN_SPOT_THEN_ON_DEMAND,
}
_TAKING_SHARE = 0.75
_ALONE_SHARE = 0.15
_UNLIMITED_SHARE = 0.8
_UNREADABLE_SHARE = 0.4
_BLOCKS_SHARE = 0.5
_LONG_SHARE = 0.5
_HOUR = 3_600.0


def with_reservations(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some companies with machines of their own have reservations; not where times are promised to the minute."""
    dice = chance.stream("scenario/reservations")
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.has_shortages or scenario.burst_family
    if is_spared or not scenario.machines.types or dice.random() >= _SHARE:
        return scenario
    names = _IDS[: dice.randint(1, 2)]
    planned = tuple(_draw_reservation(dice, name, scenario.machines, scenario.chaos_seconds) for name in names)
    unreadable: tuple[tuple[float, float], ...] = ()
    if dice.random() < _UNREADABLE_SHARE:
        begins_at = dice.uniform(0.0, 0.5) * scenario.chaos_seconds
        unreadable = ((begins_at, begins_at + 60.0 * 180.0 ** dice.random()),)
    machines = scenario.machines
    if dice.random() < _UNLIMITED_SHARE:
        # What is chosen is compared with what else there is only where the price per hour has no limit.
        machines = replace(machines, limits=replace(machines.limits, max_usd_per_hour=0.0), has_close_quota=False)
    machines = replace(
        machines,
        reservations=planned,
        raises_reservation_errors=dice.random() < 0.5,
        unreadable=unreadable,
    )
    definitions = tuple(_take(dice, each, planned) for each in scenario.definitions)
    recipes = {name: _draw_longer(dice, recipe) for name, recipe in scenario.recipes.items()}
    limits = replace(scenario.limits, machines=machines.limits)
    # Few machines get as far as the end of a block at a higher rate.
    intensity = min(scenario.intensity, 0.4)
    drawn = replace(scenario, intensity=intensity, machines=machines, limits=limits)
    return replace(drawn, definitions=definitions, recipes=recipes)


def with_reserved_gang(chance: Chance, scenario: Scenario) -> Scenario:
    """Let what is reserved be for the job of several nodes, in some companies that have one."""
    gang = next((each for each in scenario.definitions if each.nodes > 1 and each.target is Target.ECS), None)
    dice = chance.stream("scenario/gang-reservations")
    is_spared = gang is None or chance.seed < _FIRST_GANG or bool(scenario.machines.reservations)
    if is_spared or gang is None or dice.random() >= _GANG_SHARE:
        return scenario
    machines = scenario.machines
    names = _IDS[: dice.randint(1, 2)]
    planned = tuple(
        replace(
            _draw_reservation(dice, name, machines, scenario.chaos_seconds),
            total=dice.choice((gang.nodes, gang.nodes, gang.nodes + 1, 2 * gang.nodes, gang.nodes - 1)),
        )
        for name in names
    )
    unreadable: tuple[tuple[float, float], ...] = ()
    if dice.random() < _UNREADABLE_SHARE / 2:
        begins_at = dice.uniform(0.0, 0.5) * scenario.chaos_seconds
        unreadable = ((begins_at, begins_at + 60.0 * 60.0 ** dice.random()),)
    definitions = tuple(
        _take(dice, each, planned, share=1.0 if each is gang else _TAKING_SHARE / 3) for each in scenario.definitions
    )
    recipes = {**scenario.recipes, gang.name: _draw_longer(dice, scenario.recipes[gang.name])}
    machines = replace(
        machines, reservations=planned, raises_reservation_errors=dice.random() < 0.5, unreadable=unreadable
    )
    intensity = min(scenario.intensity, dice.choice((0.4, 1.0)))
    return replace(scenario, intensity=intensity, machines=machines, definitions=definitions, recipes=recipes)


def _draw_longer(dice: random.Random, recipe: Recipe) -> Recipe:
    """Let half of the trainings take so long that a block may end meanwhile."""
    hours = dice.uniform(1.0, 3.0)
    is_long = dice.random() < _LONG_SHARE and recipe.checkpoint_seconds is not None
    return replace(recipe, work_seconds=max(recipe.work_seconds, hours * _HOUR)) if is_long else recipe


def _draw_reservation(
    dice: random.Random, name: str, machines: MachineScenario, chaos_seconds: float
) -> PlannedReservation:
    starts_at = dice.choice((-_HOUR, -_HOUR, dice.uniform(0.0, 0.6) * chaos_seconds))
    reservation = PlannedReservation(
        name,
        dice.choice(machines.types),
        dice.choice(machines.zones),
        total=dice.choice((1, 1, 2, 4)),
        is_block=dice.random() < _BLOCKS_SHARE,
        starts_at=starts_at,
        is_shared=dice.random() < 0.4,
        shown_late=dice.choice((0.0, dice.uniform(0.0, 300.0))),
    )
    ends_at = max(starts_at, 0.0) + dice.uniform(1.2, 2.6) * _HOUR
    if reservation.is_block:
        return replace(reservation, ends_at=ends_at)
    way = dice.random()
    if way < 0.35:
        return replace(reservation, ends_at=ends_at, expires_late=dice.uniform(0.0, _HOUR))
    return replace(reservation, cancelled_at=ends_at) if way < 0.7 else reservation


def _take(
    dice: random.Random,
    definition: JobDefinition,
    planned: tuple[PlannedReservation, ...],
    share: float = _TAKING_SHARE,
) -> JobDefinition:
    draw = dice.random()
    alone = dice.random() < _ALONE_SHARE and any(each.lasts and each.total >= definition.nodes for each in planned)
    policy = _POLICIES.get(definition.purchase)
    if policy is None or draw >= share:
        return definition
    definition = replace(definition, deadline=definition.deadline if dice.random() < 0.3 else None)
    # Who takes nothing else waits until it is extended, or the next one begins, which may take weeks.
    return replace(definition, purchase=PurchasePolicy.RESERVED if alone else policy)
