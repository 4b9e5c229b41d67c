from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch_local.ecs import Clock
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.scenario import Scenario


def drawn(seed: int) -> Scenario:
    return draw_scenario(Chance(seed, Clock().now), has_gangs=True)


def is_reserved(scenario: Scenario) -> bool:
    """Return whether there is a gang on machines of our own, and reservations of its size or near it."""
    gangs = [each for each in scenario.definitions if each.nodes > 1]
    return bool(gangs) and bool(scenario.machines.reservations)


def test_some_gangs_take_what_is_reserved_and_those_of_the_first_seeds_do_not() -> None:
    assert not any(is_reserved(drawn(seed)) for seed in range(40))
    reserved = [each for each in map(drawn, range(400, 520)) if is_reserved(each)]

    assert 15 <= len(reserved) <= 50
    sizes: set[int] = set()
    blocks: set[bool] = set()
    for scenario in reserved:
        gang = max(scenario.definitions, key=lambda each: each.nodes)
        assert PurchaseOption.RESERVED in gang.purchase.options
        sizes |= {each.total - gang.nodes for each in scenario.machines.reservations}
        blocks |= {each.is_block for each in scenario.machines.reservations}
    assert {-1, 0, 1, 2} <= sizes
    assert blocks == {False, True}


def test_who_takes_nothing_else_has_a_reservation_that_lasts_and_is_large_enough() -> None:
    for scenario in map(drawn, range(400, 700)):
        gang = max(scenario.definitions, key=lambda each: each.nodes)
        if scenario.machines.reservations and gang.purchase.options == {PurchaseOption.RESERVED}:
            assert any(each.lasts and each.total >= gang.nodes for each in scenario.machines.reservations)
